"""Sphinx configuration. `make docs` runs every example and builds the pages."""

import importlib.metadata

project = "Calibrant"
author = "The Calibrant developers"
copyright = "2026, the Calibrant developers"
release = version = importlib.metadata.version("calibrant")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.mathjax",
    "numpydoc",
]
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
autodoc_typehints = "none"
default_role = "py:obj"
rst_prolog = ".. currentmodule:: calibrant\n"  # names on pages without a module of their own
exclude_patterns = ["_build"]

doctest_test_doctest_blocks = ""  # the examples of docstrings are run by pytest
doctest_global_setup = "import numpy as np\nimport calibrant as cb"
trim_doctest_flags = True

html_theme = "pydata_sphinx_theme"
html_title = "Calibrant"
html_show_sourcelink = False
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False}
html_sidebars = {
    page: []
    for page in (
        "index",
        "quickstart",
        "tutorial",
        "howto",
        "concepts",
        "kinds",
        "metrics",
        "inference",
        "sample_size",
        "diagrams",
        "recalibration",
        "costs",
        "regression",
        "data_sources",
        "spark_and_databases",
        "monitor",
        "command_line",
        "report",
        "other_libraries",
        "performance",
        "exactness",
        "errata",
        "reproduction/index",
        "reproduction/tce_errata",
        "reproduction/costs",
        "reproduction/bella",
        "studies/calibrators",
        "studies/multicalibration",
        "studies/regression",
        "studies/scikit_learn",
    )
}  # pages without subpages
