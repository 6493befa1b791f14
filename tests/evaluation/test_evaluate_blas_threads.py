"""Results do not depend on the threads of BLAS."""

import os
import subprocess
import sys

CODE = """
import hashlib, json, warnings
import numpy as np
import calibrant as cb

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
p = rng.random(40_000)
y = (rng.random(p.size) < p**1.02).astype(int)
z = p + rng.standard_normal(p.size)
q = rng.dirichlet(np.ones(4), p.size)
label = (q.cumsum(axis=1) < rng.random((p.size, 1))).sum(axis=1)
other = q**1.1 / (q**1.1).sum(axis=1, keepdims=True)
options = {"random_state": 0, "n_resamples": 9}
results = [
    cb.evaluate(y, p, **options),
    cb.evaluate(y, p, sample_weight=1 + p, **options),
    cb.evaluate(y, p, cluster=np.arange(p.size) // 10, **options),
    cb.compare(y, {"a": p, "b": p**1.1}, **options),
    cb.evaluate(z, cb.Point(p), sample_weight=1 + p, **options),
    cb.evaluate(z, cb.Gaussian(p, np.ones(p.size)), **options),
    cb.compare(label, {"a": q, "b": other}, **options),
]
for each in results:
    text = json.dumps(each.to_dict(), sort_keys=True, default=str)
    print(each.kind if hasattr(each, "kind") else "compare", hashlib.sha256(text.encode()).hexdigest())
"""


def results(threads):
    environment = os.environ | dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"), threads)
    return subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True, env=environment)


def test_results_do_not_depend_on_the_threads_of_blas():
    one, two = (results(threads).stdout.splitlines() for threads in ("1", "2"))
    assert len(one) == 7
    assert one == two
