"""The inputs of the corpus and some random ones pass each fuzz target."""

import random
from importlib import import_module

import pytest

from calibrant import _kernels
from tests.fuzz.targets import CORPUS, TARGETS

NEEDS = {
    "calibrators": ("sklearn",),
    "tables": ("pyarrow",),
    "scans": ("pyarrow", "duckdb"),
    "commands": ("click", "rich", "sklearn", "pyarrow", "duckdb"),
    "specifications": (),
    "kernel": (),
}
RANDOM = {"scans": 30, "commands": 60}


@pytest.mark.parametrize("target", TARGETS)
def test_the_corpus_and_random_inputs_pass(target):
    for library in NEEDS[target]:
        pytest.importorskip(library)
    if target == "kernel" and _kernels.KERNEL != "compiled":
        pytest.skip("needs the compiled kernel")
    module = import_module(f"tests.fuzz.{target}")
    generator = random.Random(0)
    inputs = [path.read_bytes() for path in sorted((CORPUS / target).iterdir())] + module.seeds()
    inputs += [generator.randbytes(generator.choice((10, 40, 200))) for _ in range(RANDOM.get(target, 500))]
    for data in inputs:
        module.run(data)
