"""Sphinx configuration. `make docs` runs every example and builds the pages, without a network."""

import importlib.metadata
import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_extensions"))

import inventories  # noqa: E402

project = "Calibrant"
author = "The Calibrant developers"
copyright = "2026, the Calibrant developers"
release = version = importlib.metadata.version("calibrant")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.intersphinx",
    "numpydoc",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "myst_parser",
    "mathml",
    "references",
    "signatures",
]
autosummary_generate = True
autodoc_typehints = "none"
autodoc_class_signature = "mixed"
numpydoc_show_class_members = False
numpydoc_attributes_as_param_list = True
numpydoc_xref_param_type = False
default_role = "py:obj"
nitpicky = True
rst_prolog = ".. currentmodule:: calibrant\n"  # names on pages without a module of their own
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "gallery/sources", "tutorials/sources", "**/sg_execution_times.rst"]
intersphinx_mapping = inventories.mapping(DOCS / "_build" / "inventories")
html_math_renderer = "mathml"

doctest_test_doctest_blocks = ""  # the examples of docstrings are run by pytest
doctest_global_setup = "import numpy as np\nimport calibrant as cb"
trim_doctest_flags = True

sphinx_gallery_conf = {
    "examples_dirs": ["gallery/sources", "tutorials/sources"],
    "gallery_dirs": ["gallery", "tutorials"],
    "filename_pattern": r"\.py$",
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1_000,
    "abort_on_example_error": True,
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": None,
    "download_all_examples": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "Calibrant"
html_static_path = ["_static"]
html_css_files = ["calibrant.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "navigation_depth": 2,
    "collapse_navigation": True,
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
}
# One page per object: the list of all of them is on the page of the reference.
html_sidebars = {"index": [], "reference/generated/**": [], "reference": [], "changelog": []}
