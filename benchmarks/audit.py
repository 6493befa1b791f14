"""Speed and memory of audits: 1,000,000 rows by 30 features in memory, and a Parquet file block by block.

python -m benchmarks audit         # in memory: time of the search, with and without the multicalibration error
python -m benchmarks audit_file    # 6,000,000 rows by 3 features: peak memory beside the size of the columns
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

import calibrant as cb


def features(rng, n, count):
    """Return half numbers, half categories."""
    return {
        f"x{i}": rng.normal(size=n) if i % 2 else np.array(list("abcdef"))[rng.integers(0, 6, n)] for i in range(count)
    }


def outcomes(rng, columns, n):
    """Return scores and events; the model underestimates where two numbers are large."""
    logit = rng.normal(-1, 1, n)
    off = 0.5 * ((columns["x1"] > 1) & (columns["x3"] > 0)) if "x3" in columns else 0.5 * (columns["x1"] > 1)
    return 1 / (1 + np.exp(-logit)), rng.random(n) < 1 / (1 + np.exp(-logit - off))


def in_memory(n=1_000_000, count=30):
    rng = np.random.default_rng(0)
    columns = features(rng, n, count)
    p, y = outcomes(rng, columns, n)
    for resamples in (0, 199):
        wall, cpu = time.perf_counter(), time.process_time()
        audit = cb.audit(y, p, columns, n_resamples=resamples)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(f"{n:,} rows x {count} features, {resamples} resamples: {wall:.1f} s, {cpu:.1f} s of CPU")
        print(f"  {audit.segments[0].rule}, {audit.verdict}")


def from_file(n=6_000_000, count=3, batch=500_000):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path, writer = Path(folder) / "rows.parquet", None
        for _ in range(n // batch):
            columns = features(rng, batch, count)
            p, y = outcomes(rng, columns, batch)
            table = pa.table({**columns, "p": p, "y": y.astype(np.int8)})
            writer = writer or pq.ParquetWriter(path, table.schema)
            writer.write_table(table)
        writer.close()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        wall, cpu = time.perf_counter(), time.process_time()
        audit = cb.audit(path, y="y", forecast="p", features=list(columns), n_resamples=19)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{n:,} rows x {count} features in a file of {path.stat().st_size / 2**20:.0f} MiB: {wall:.1f} s, "
            f"{cpu:.1f} s of CPU; peak {peak:.0f} MiB, {before:.0f} MiB of them before"
        )
        print(f"  {audit.segments[0].rule}, {audit.verdict}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--file", action="store_true")
    from_file() if parser.parse_args().file else in_memory()
