#!/usr/bin/env bash
# Pins all that make test and the build install, with hashes, for all Pythons and systems, in requirements-dev.lock.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
"$python" -m pip install --quiet --disable-pip-version-check --group lock
.venv/bin/uv pip compile pyproject.toml --extra sklearn --extra plot --extra cli --group dev --group spark --group build \
    --universal --python-version 3.11 --generate-hashes --upgrade --quiet \
    --no-header --no-annotate --no-emit-index-url --no-emit-find-links --output-file requirements-dev.lock
