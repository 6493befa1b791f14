"""Fuzz targets: functions from bytes to nothing, which fail if the library crashes, hangs or raises another error.

``make fuzz`` runs each of them with atheris (coverage-guided); ``make fuzz NAME=kernel SECONDS=60`` runs one.
`tests/fuzz/corpus` holds inputs of each target, which the ordinary tests run too.
"""
