"""Writers and readers of one path: ``python concurrent_writers.py PATH READS SEED`` writes, reads and checks by turns.

Each version of the file has its own size and content, so that a mixture of two versions, or a part of one, is noticed.
"""

import sys
from collections import Counter
from pathlib import Path

import numpy as np

import calibrant as cb
from calibrant._support.file_writing import write_file

VERSIONS = 7


def table(version):
    """Return a table of 500 to 3,500 scores; all its counts name the version."""
    score = np.linspace(0, 1, 500 * (version + 1))
    return cb.ScoreTable.from_counts(score=score, n=np.full(score.size, version + 10), k=np.full(score.size, version))


TABLES = [table(version) for version in range(VERSIONS)]
TEXTS = [f"{version}\n" * (4000 * (version + 1)) for version in range(VERSIONS)]


def write_table(path, version):
    TABLES[version].to_parquet(path)


def read_table(path):
    return cb.ScoreTable.from_parquet(path) in TABLES


def write_text(path, version):
    write_file(path, TEXTS[version])


def read_text(path):
    return Path(path).read_text() in TEXTS


KINDS = {".parquet": (write_table, read_table), ".html": (write_text, read_text)}


def write_and_read(path, reads, seed):
    """Write random versions, three reads after each, and return the numbers of whole and damaged reads."""
    write, read = KINDS[Path(path).suffix]
    rng, count = np.random.default_rng(seed), Counter()
    while count.total() < reads:
        write(path, int(rng.integers(VERSIONS)))
        for _ in range(3):
            try:
                count["whole" if read(path) else "damaged"] += 1
            except (OSError, ValueError) as error:
                sys.stderr.write(f"{error!r} from {error.__cause__!r}\n")
                count["damaged"] += 1
    return count


if __name__ == "__main__":
    counts = write_and_read(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    sys.stdout.write(f"{counts['whole']} {counts['damaged']}\n")
