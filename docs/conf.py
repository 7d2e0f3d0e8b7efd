"""Sphinx configuration: every broken reference is an error (`nox -s docs`)."""

project = "kafkaio"
copyright = "the kafkaio authors"  # noqa: A001 - Sphinx wants this name
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinxcontrib.mermaid",
]
html_theme = "furo"
html_title = "kafkaio"
exclude_patterns = ["_build"]
autodoc_mock_imports = ["pyarrow", "pyspark"]  # an extra, which the docs can do without
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # signatures carry them; nitpicking them twice helps nobody
napoleon_google_docstring = True
napoleon_use_ivar = True
default_role = "any"  # `name` in a docstring is a reference, and has to lead somewhere
nitpicky = True
nitpick_ignore_regex = [
    # References in docstrings to what has no page: of other packages, and private.
    (r"any", r"(anyio|asyncio|collections|datetime|pyarrow|pytest|ssl|typing)\..*"),
    (r"any", r"kafkaio\.(_|.*\._).*"),
    # Types in signatures that have no page of their own: the standard library's,
    # type variables, and the private halves of public names.
    (r"py:(class|obj|data|exc|func|meth|attr)", r"(?!kafkaio\.).*"),
    (r"py:.*", r"kafkaio\.(_|.*\._).*"),
    (r"py:obj", r"kafkaio\.serde\.T(_\w+)?"),
    # The public name is kafkaio.Record, of either codec.
    (r"py:class", r"kafkaio\.types\.Record"),
    (
        r"py:(class|attr)",
        r"kafkaio\.(protocol|config|client|consumer|producer|testing)\..*",
    ),
    # Type variables, and the path of a record in what annotations are made of.
    (r"py:obj", r"kafkaio\.\w+\.(K|V|T)"),
    (r"py:class", r"kafkaio\.types\.Record"),
]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_fence_as_directive = ["mermaid"]
myst_heading_anchors = 3
