"""Sphinx configuration: every broken reference is an error (`nox -s docs`)."""

import ast
import builtins
import contextlib
import enum
import importlib
import inspect
import os
import re
import sys
import typing
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.ext.autodoc.mock import mock
from sphinx.ext.napoleon import Config, GoogleDocstring
from sphinx.util import logging
from sphinx.util.inspect import signature, stringify_signature

# The classes of the codec in Python have the types that those of the compiled one lack.
os.environ["KAFKAIO_CODEC"] = "python"

import kafkaio

project = "kafkaio"
author = "the kafkaio authors"
copyright = "the kafkaio authors"  # noqa: A001 - Sphinx wants this name
release = version = kafkaio.__version__
is_released = "dev" not in release
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.linkcode",
    "sphinx_copybutton",
    "sphinxcontrib.mermaid",
]
exclude_patterns = ["_build"]

# Where the pages and the source are. The host of the documentation builds each release
# under its number, the newest release as "stable", and the main branch as "latest".
SOURCE = "https://github.com/kafkaio/kafkaio"
STABLE = "https://kafkaio.readthedocs.io/en/stable/"
html_baseurl = os.environ.get("READTHEDOCS_CANONICAL_URL", STABLE)
if "READTHEDOCS" in os.environ:
    html_context = {
        "READTHEDOCS": True
    }  # the theme makes room for its list of versions
linkcheck_timeout = 20
linkcheck_retries = 2
linkcheck_workers = 4
# These answer programs with 403 or 429, or only exist when something runs.
linkcheck_ignore = [r"http://localhost.*", r"http://127\.0\.0\.1.*"]

html_theme = "furo"
html_title = f"kafkaio {release}"
STATIC = Path(__file__).parent / "_static"
html_static_path = ["_static"] if STATIC.exists() else []

html_css_files = ["kafkaio.css"]
html_theme_options = {
    "source_repository": SOURCE,
    "source_branch": "main",
    "source_directory": "docs/",
    "footer_icons": [],
}
if not is_released:
    html_theme_options["announcement"] = (
        f"These pages describe kafkaio {release}, which is not released. "
        f'<a href="{STABLE}">The newest release has its own.</a>'
    )

# Signatures, with the types as short as they are in code.
autodoc_mock_imports = ["pyarrow", "pyspark"]  # extras, which the docs can do without
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_type_aliases = {
    "Destination": "kafkaio.Destination",
    "Headers": "kafkaio.types.Headers",
}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80
python_display_short_literal_types = True
toc_object_entries_show_parents = "hide"

default_role = (
    "py:obj"  # `name` in a docstring is a reference, and has to lead somewhere
)
nitpicky = True

myst_enable_extensions = ["colon_fence", "deflist"]
myst_fence_as_directive = ["mermaid"]
myst_heading_anchors = 3

#: Python's classes that stand on another page than that of their module.
PYTHON_PAGES = {
    **dict.fromkeys(("bool", "float", "int", "object", "type"), "functions"),
    "asyncio.AbstractEventLoop": "asyncio-eventloop",
    "asyncio.CancelledError": "asyncio-exceptions",
    "asyncio.Future": "asyncio-future",
    "asyncio.Task": "asyncio-task",
    "asyncio.TaskGroup": "asyncio-task",
    "None": "constants",
}
#: Pages of other libraries, by the first part of the name.
OTHER_PAGES = {
    "anyio": "https://anyio.readthedocs.io/en/stable/api.html#{name}",
    "opentelemetry": "https://opentelemetry-python.readthedocs.io/en/latest/api/{page}.html#{name}",
    "prometheus_client": "https://prometheus.github.io/client_python/",
    "pyarrow": "https://arrow.apache.org/docs/python/generated/{name}.html",
    "pyspark": "https://spark.apache.org/docs/latest/api/python/reference/pyspark.sql/api/{name}.html",
}
#: Types that are described nowhere, and errors of the embedded broker's own.
WITHOUT_PAGE = {
    "InvalidAcl",
    "Refusal",
    "StreamingQueryProgress",
    "Wire",
    "kafkaio.protocol.messages.metadata.MetadataResponse",
}
#: Names in signatures that Python cannot evaluate, because a library is not there.
SHORT_NAMES = {"UUID": "uuid.UUID"}
#: The modules whose names have a place in the reference.
PUBLIC = [
    "kafkaio",
    *(
        f"kafkaio.{name}"
        for name in (
            *("admin", "aiokafka", "aiokafka.admin", "aiokafka.admin.config_resource"),
            *("aiokafka.admin.responses", "aiokafka.errors", "aiokafka.structs"),
            *("arrow", "errors", "metrics.opentelemetry"),
            *("metrics.prometheus", "registry", "security", "serde", "spark"),
            *("testing", "testing.kafka", "types"),
        )
    ),
]
AIOKAFKA_ERRORS = importlib.import_module("kafkaio.aiokafka.errors")
logger = logging.getLogger(__name__)


def setup(app):
    """Connect what Sphinx has no option for."""
    app.connect("autodoc-process-docstring", with_sections)
    app.connect("autodoc-process-signature", shown_signature)
    app.connect("autodoc-skip-member", is_left_out)
    app.connect("source-read", with_version)
    app.connect("doctree-read", resolve_what_is_outside)
    app.connect("object-description-transform", shorten_contents)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def with_version(app, page, text):
    """Show the version on the front page, which is also read without Sphinx."""
    text[0] = text[0].replace("<!-- version -->", f"Version {release} | ")


def load_types():
    """Load what signatures name, also what modules import for type checkers alone."""
    with mock(autodoc_mock_imports):
        for name in PUBLIC:
            module = importlib.import_module(name)
            for each in module.__all__:
                getattr(module, each)
        blocks = [
            (node.body, module)
            for module in [m for name, m in sys.modules.items() if "kafkaio" in name]
            for node in _nodes(module)
            if isinstance(node, ast.If) and not node.orelse
            if ast.unparse(node.test) == "TYPE_CHECKING"
        ]
        # Twice: one block may import an alias that another one makes.
        for body, module in blocks * 2:
            _run(body, module)


def _nodes(module):
    path = getattr(module, "__file__", None) or ""
    text = Path(path).read_text("utf-8") if path.endswith(".py") else ""
    return ast.parse(text).body if "\nif TYPE_CHECKING:" in text else []


def _run(statements, module):
    """Run statements in a module, as far as what they import is installed."""
    for statement in statements:
        code = compile(ast.Module([statement], []), str(module.__file__), "exec")
        with contextlib.suppress(ImportError):
            exec(code, vars(module))  # noqa: S102 - an import of our own module


def with_sections(app, what, name, obj, options, lines):
    """Make fields of the sections of a docstring (``Args:``, ``Raises:``).

    `sphinx.ext.napoleon` does the same, but takes the beginning of a property's
    docstring for a type if there is a colon after it.
    """
    kind = "method" if what in {"attribute", "data", "property"} else what
    config = Config(napoleon_use_ivar=False)
    text = re.sub(
        # Napoleon takes what is before a colon for the type, which the signature has.
        r"^(?:Returns|Yields):\n +(.*(?:\n +.*)*)",
        r":returns: \1",
        "\n".join(lines),
        flags=re.MULTILINE,
    )
    parsed = GoogleDocstring(text, config, None, kind, name, obj, options)
    theirs = f"{name}.".startswith("kafkaio.aiokafka.")
    found = [_with_public_error(line, theirs=theirs) for line in parsed.lines()]
    lines[:] = _typed_attributes(found)


def _typed_attributes(lines):
    """Return lines in which attributes have their types beside their names."""
    text = "\n".join(lines)
    blocks = re.split(r"(?m)^(?=\.\. attribute::)", text)
    return "".join(map(_typed_attribute, blocks)).split("\n")


def _typed_attribute(block):
    found = re.match(
        r"(\.\. attribute:: \w+)\n\n( +)(\w?)((?:.|\n)*?)\n\n +(:type: .*)\n", block
    )
    if not found:
        return block
    head, indent, first, rest, kind = found.groups()
    after = block[found.end() :]
    return f"{head}\n{indent}{kind}\n\n{indent}{first.upper()}{rest}\n{after}"


def _with_public_error(line, *, theirs):
    """Return the line of a docstring with the path of an error that it raises."""
    if found := re.match(r":raises (\w+):", line):
        text = line[found.end() :].strip()
        if theirs and found[1] in AIOKAFKA_ERRORS.__all__:
            return f":raises ~kafkaio.aiokafka.errors.{found[1]}: {text}"
        if found[1] in kafkaio.errors.__all__:
            return f":raises ~kafkaio.{found[1]}: {text}"
    return line


def shown_signature(app, what, name, obj, options, arguments, returned):  # noqa: PLR0913 - Sphinx's
    """Return a signature as a reader wants it; one without types is an error."""
    if arguments is None:
        return None
    if what in {"class", "exception"}:
        return _constructor(obj, arguments), returned
    if what in {"function", "method"} and not _is_typed(obj):
        logger.warning("%s is shown without types: %s", name, arguments)
    return _readable(arguments), returned


def _is_typed(function):
    """Whether each parameter but ``self`` has a type, and what is returned."""
    if not getattr(function, "__module__", "").startswith("kafkaio"):
        return True  # inherited from another library
    found = inspect.signature(inspect.unwrap(getattr(function, "__func__", function)))
    parameters = found.parameters.values()
    return found.return_annotation is not found.empty and all(
        parameter.annotation is not parameter.empty or parameter.name in {"self", "cls"}
        for parameter in parameters
    )


def _constructor(kind, arguments):
    """Return the signature of a class; nothing if users do not make its objects."""
    if isinstance(kind, type(enum.Enum)) or getattr(kind, "_is_protocol", False):
        return ""
    if "__signature__" in vars(kind):  # `**options` in place of sixty options
        arguments = stringify_signature(
            signature(kind.__init__, bound_method=True),
            show_return_annotation=False,
            unqualified_typehints=True,
            short_literals=True,
        )
    arguments = _readable(arguments)
    return "" if re.search(r"\bkafkaio\._|\b_[A-Z]", arguments) else arguments


def _readable(arguments):
    """Return a signature without what is no Python, and without private paths."""
    arguments = re.sub(
        r"~?kafkaio\.(?:_generic|serde)\.([A-Z]|KeyT|ValueT)(?:_\w+)?\b",
        r"\1",
        arguments,
    )
    arguments = re.sub(r"<class '([\w.]+)'>", r"\1", arguments)
    arguments = re.sub(r"<function (\w+)>", r"\1", arguments)
    # Defaults that have no text: a factory, and objects of no class with a text.
    return re.sub(
        r"<factory>|<function \S+>|<[\w.]+ object(?: at \w+)?>", "...", arguments
    )


def is_left_out(app, what, name, obj, skip, options):
    """Leave out what Python adds to a named tuple; other classes describe fields."""
    if type(obj).__name__ == "_tuplegetter":
        return True
    return None


def resolve_what_is_outside(app, document):
    """Resolve references to Python's own names, and show type variables plainly.

    Before Sphinx does, which takes ``type`` for an attribute of that name.
    """
    for node in list(document.findall(addnodes.pending_xref)):
        name = re.sub(r"^pa\.", "pyarrow.", node.get("reftarget", ""))
        name = SHORT_NAMES.get(name, name)
        if node.get("refdomain") == "py":
            text = node.astext()
            if _is_type_variable(name) or "._" in name or name in WITHOUT_PAGE:
                text = re.sub(r"_(co|contra)$", "", name.rpartition(".")[2])
                node.replace_self(nodes.inline("", text))
            elif address := _address(name):
                content = nodes.inline("", name.rpartition(".")[2])
                if isinstance(node[0], nodes.literal):
                    content = nodes.literal("", text)
                made = nodes.reference("", "", content, internal=False, refuri=address)
                node.replace_self(made)
            else:
                _specify(node, name)


def _specify(node, name):
    """Let a reference find names of other modules, too."""
    if (full := _of_two(name, node.get("py:module") or "")) != name:
        node["reftarget"] = full
    elif node["reftype"] == "obj":
        # Also names of other classes and modules, as far as they are unique.
        node["refspecific"] = True


def _of_two(name, module):
    """Return the full name where kafkaio and `kafkaio.aiokafka` have one each."""
    for theirs in (n for n in PUBLIC if n.startswith("kafkaio.aiokafka")):
        found = getattr(sys.modules[theirs], name, None)
        ours = getattr(kafkaio, name, None)
        if isinstance(found, type) and isinstance(ours, type) and found is not ours:
            kind = found if module.startswith("kafkaio.aiokafka") else ours
            return f"{kind.__module__}.{name}"
    return name


def _is_type_variable(name):
    module, _, last = name.rpartition(".")
    found = getattr(sys.modules.get(module), last, None)
    return isinstance(found, typing.TypeVar) or re.fullmatch(
        r"(K|V|T|[A-Z][a-z]+T)(_\w+)?", name
    )


def _address(name):
    """Return where a name of Python or of another library is described."""
    first, _, rest = name.partition(".")
    if first in OTHER_PAGES:
        return OTHER_PAGES[first].format(name=name, page=rest.rpartition(".")[0])
    found = getattr(builtins, name, None)
    if isinstance(found, type) and issubclass(found, BaseException):
        page = "exceptions"
    elif isinstance(found, type) or name in PYTHON_PAGES:
        page = PYTHON_PAGES.get(name, "stdtypes")
    elif first in sys.stdlib_module_names:
        module = name.rpartition(".")[0]
        while module and module not in sys.modules:
            module = module.rpartition(".")[0]
        page = module or first
    else:
        return None
    return f"https://docs.python.org/3/library/{page}.html#{name}"


def shorten_contents(app, domain, kind, content):
    """Leave attributes out of a page's contents, but for options.

    There are hundreds of them, and the contents of all pages are copied for each page.
    """
    for sign in content.parent:
        is_field = kind in {"attribute", "property"}
        if is_field and not sign.get("class", "").endswith("Config"):
            sign["_toc_name"] = ""


def linkcode_resolve(domain, info):
    """Return the address of the source of a class or function."""
    if domain != "py" or not info["module"].startswith("kafkaio"):
        return None
    found = sys.modules.get(info["module"])
    for part in info["fullname"].split("."):
        found = getattr(found, part, None)
    found = found.fget if isinstance(found, property) else found
    code = getattr(inspect.unwrap(found), "__code__", None) if callable(found) else None
    if code is None or "kafkaio" not in code.co_filename:
        return None
    path = code.co_filename.rpartition("/kafkaio/")[2]
    branch = f"v{release}" if is_released else "main"
    return f"{SOURCE}/blob/{branch}/kafkaio/{path}#L{code.co_firstlineno}"


load_types()
