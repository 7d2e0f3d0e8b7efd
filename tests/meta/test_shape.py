"""The shape of the tree, checked like any other behaviour."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2] / "kafkaio"
PURE = ("protocol", "_records", "_machines", "_config")
GENERATED = ROOT / "protocol" / "messages"
GENERATED_FILES = {ROOT / "protocol" / n for n in ("_error_codes.py", "_api_keys.py")}
#: A group of tasks waits for its own. `kafkaio.aiokafka` stands on the public API,
#: which has no supervisor: an object there that needs a task gets it from its
#: `util.create_task`, and ends it in its `close`.
OWNERS_OF_TASKS = {
    ROOT / "_runtime" / "group.py",
    ROOT / "_runtime" / "supervisor.py",
    ROOT / "aiokafka" / "util.py",
}
MAX_FUNCTION_LINES = 50
#: It passes forty options on, each by its name.
LONG_CONSTRUCTOR = ROOT / "aiokafka" / "consumer" / "consumer.py"
ASYNC_NODES = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)


def modules() -> Iterator[Path]:
    for path in ROOT.rglob("*.py"):
        if GENERATED not in path.parents and path not in GENERATED_FILES:
            yield path


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(parsed(path))


def place(path: Path, node: ast.stmt | ast.expr) -> str:
    return f"{path.relative_to(ROOT)}:{node.lineno}"


def test_pure_modules_never_await() -> None:
    assert not [
        place(path, node)
        for path in modules()
        if path.relative_to(ROOT).parts[0] in PURE
        for node in nodes(path)
        if isinstance(node, ASYNC_NODES)
    ]


def test_options_know_ssl_as_a_type_alone() -> None:
    # import-linter counts imports for type checkers, and is told to ignore these. What
    # makes signatures for people needs the type itself.
    assert "ssl" not in {
        name
        for module in sources()
        if f"{module}.".startswith("kafkaio._config.")
        and module != "kafkaio._config.signature"
        for name in names_imported_at_runtime(sources()[module])
    }


def names_imported_at_runtime(node: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        is_for_types = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(
            child.test
        )
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            yield child.module or ""
        elif not is_for_types:
            yield from names_imported_at_runtime(child)


def test_only_the_supervisor_creates_tasks() -> None:
    assert not [
        place(path, node)
        for path in set(modules()) - OWNERS_OF_TASKS
        for node in nodes(path)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "create_task"
    ]


def test_functions_are_short() -> None:
    long = [
        (path, node.name)
        for path in modules()
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and body_lines(node) > MAX_FUNCTION_LINES
    ]
    assert long == [(LONG_CONSTRUCTOR, "__init__")]


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first, *rest = function.body
    if ast.get_docstring(function) and rest:
        first = rest[0]
    return (function.end_lineno or function.lineno) - first.lineno + 1


def test_one_door_leads_to_the_compiled_codec() -> None:
    # An extension module is no Python source, so import-linter cannot see it.
    importers = {
        path.relative_to(ROOT).as_posix()
        for path in modules()
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom | ast.Import)
        and "_speedups" in imported_paths(node)
    }
    assert importers == {"_records/_impl.py"}


def imported_paths(node: ast.ImportFrom | ast.Import) -> set[str]:
    """The parts of every path that a statement imports."""
    whole = [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        whole.append(node.module or "")
    return {part for name in whole for part in name.split(".")}


@cache
def sources() -> Mapping[str, ast.Module]:
    """Every module of kafkaio by its dotted name; packages by theirs."""
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = parsed(path)
    return found


def packages() -> list[str]:
    found = {name.rpartition(".")[0] for name in sources()} - {""}
    return sorted(found - {"kafkaio.protocol.messages"})


@cache
def imports(module: str) -> Mapping[str, int]:
    """The modules of kafkaio that a module imports, and a line that does so.

    Imports for types and within functions count, and so do the names that a package
    offers lazily: they are imported for types there.
    """
    found = {}
    for node in ast.walk(sources()[module]):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in sources() else node.module for name in inner]
        for name in names:
            if name in sources() and name != module:
                found.setdefault(name, node.lineno)
    return found


def circles(package: str) -> set[str]:
    """One line for each circle of the members of a package: modules and subpackages.

    A subpackage is one member with all that is in it. The package's own ``__init__``
    is a member too.
    """
    edges: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for module in sources():
        if f"{module}.".startswith(f"{package}."):
            source = member(module, package)
            for name, line in imports(module).items():
                if f"{name}.".startswith(f"{package}."):
                    target = member(name, package)
                    if target != source:
                        edges[source].setdefault(target, f"{module}:{line} -> {name}")
    found = set()
    while circle := a_circle(edges):
        steps = list(pairwise(circle))
        found.add("; ".join(edges[one][other] for one, other in steps))
        one, other = steps[-1]
        del edges[one][other]
    return found


def member(module: str, package: str) -> str:
    """The direct child of a package that a module is or is in."""
    rest = module.removeprefix(package).removeprefix(".")
    return rest.partition(".")[0] or "__init__"


def a_circle(edges: Mapping[str, Iterable[str]]) -> list[str]:
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        # graphlib goes against the arrows.
        return list(reversed(error.args[1]))
    return []


@cache
def classes(module: str) -> Mapping[str, ast.ClassDef]:
    tree = sources()[module]
    return {
        node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    }


@cache
def imported_names(module: str) -> Mapping[str, tuple[str, str]]:
    """The module and the name there of what a module imports by name."""
    return {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(sources()[module])
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


def bases(module: str, node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """The module and the name of each base; builtins are in ``builtins``."""
    named = imported_names(module)
    for base in node.bases:
        name = ast.unparse(base).partition("[")[0]
        if name in classes(module):
            yield module, name
        elif name in named:
            yield named[name]
        elif "." in name:  # by its module
            package, _, inner = name.rpartition(".")
            yield ".".join(named.get(package, (package,))), inner
        else:
            yield "builtins", name


def is_a_kind(module: str, name: str) -> bool:
    """Whether a class is a Protocol or an ABC itself, or an exception."""
    if module not in sources():
        kind = getattr(import_module(module), name)
        return isinstance(kind, type) and issubclass(kind, BaseException)
    node = classes(module).get(name)
    if node is None:
        return False
    above = list(bases(module, node))
    is_abstract = any(inner in {"ABC", "Protocol"} for _, inner in above)
    is_meta = any(ast.unparse(word.value) == "ABCMeta" for word in node.keywords)
    return is_abstract or is_meta or any(is_a_kind(*base) for base in above)


def cut_classes(package: str) -> set[str]:
    """Classes of a package's modules that inherit from a sibling module's class."""
    return {
        f"{module}.{node.name} from {home}.{name}"
        for module in sources()
        if module.rpartition(".")[0] == package
        for node in classes(module).values()
        for home, name in bases(module, node)
        if home != module
        and home.rpartition(".")[0] == package
        and not is_a_kind(home, name)
        and (module, name) not in OF_THE_CODEC
        and (home, name) not in OF_THE_LANGUAGE
        and (module, node.name) not in SUBJECTS_OF_ADMIN
    }


#: What stands for a base of the standard library.
OF_THE_LANGUAGE = {
    ("kafkaio._generic", "Generic"),
    ("kafkaio._named_tuple", "NamedTuple"),
}


#: Classes of the codec in use, compiled or pure, to which a module of `_records` adds
#: what needs no speed. Composition would cost a call for each record or batch.
OF_THE_CODEC = {
    ("kafkaio._records.builder", "RecordWriter"),
    ("kafkaio._records.view", "BatchHeader"),
}


#: `Admin` has 70 operations, which have nothing in common but a cluster and a deadline.
#: Each subject is whole in its module, and the public object inherits them.
SUBJECTS_OF_ADMIN = {
    ("kafkaio.admin._admin", "Admin"),
    ("kafkaio.admin._topics", "Topics"),
    ("kafkaio.admin._partitions", "Partitions"),
    ("kafkaio.admin._configs", "Configs"),
    ("kafkaio.admin._groups", "Groups"),
    ("kafkaio.admin._share_groups", "ShareGroups"),
    ("kafkaio.admin._streams_groups", "StreamsGroups"),
    ("kafkaio.admin._acls", "Acls"),
    ("kafkaio.admin._quotas", "Quotas"),
    ("kafkaio.admin._users", "Users"),
    ("kafkaio.admin._tokens", "Tokens"),
    ("kafkaio.admin._cluster", "ClusterOperations"),
    ("kafkaio.admin._transactions", "Transactions"),
}


def test_no_imports_go_in_a_circle() -> None:
    found = {circle for package in packages() for circle in circles(package)}
    assert not found, "\n".join(sorted(found))


def test_no_class_inherits_from_a_sibling_module() -> None:
    found = {each for package in packages() for each in cut_classes(package)}
    assert not found, "\n".join(sorted(found))


UNFINISHED = ("TO" + "DO", "FIX" + "ME", "XX" + "X:")


def test_nothing_is_left_for_later() -> None:
    texts = {path: path.read_text() for path in modules()}
    assert not [
        (path, word)
        for path, text in texts.items()
        for word in UNFINISHED
        if word in text
    ]
