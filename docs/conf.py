"""The site: `make docs` builds it into site/, from these pages and from the docstrings."""

project = "Foresail"
html_title = "Foresail"
project_copyright = "the Foresail authors, Apache-2.0"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
exclude_patterns = ["dev"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "mixed"
napoleon_numpy_docstring = False
python_use_unqualified_type_names = True
maximum_signature_line_length = 90
suppress_warnings = [
    "myst.xref_missing"
]  # links to files beside the site; tests/unit/test_documentation.py checks them
