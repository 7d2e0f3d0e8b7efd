"""The shape of the tree, checked like any other behaviour."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "kafkaio"
PURE = ("protocol", "_records", "_machines", "config")
GENERATED = ROOT / "protocol" / "messages"
GENERATED_FILES = {ROOT / "protocol" / n for n in ("error_codes.py", "api_keys.py")}
OWNER_OF_TASKS = ROOT / "_runtime" / "supervisor.py"
MAX_FUNCTION_LINES = 50
ASYNC_NODES = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)


def modules() -> Iterator[Path]:
    for path in ROOT.rglob("*.py"):
        if GENERATED not in path.parents and path not in GENERATED_FILES:
            yield path


def named(paths: Iterator[Path]) -> list[object]:
    return [pytest.param(p, id=str(p.relative_to(ROOT))) for p in sorted(paths)]


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text()))


@pytest.mark.parametrize(
    "path", named(p for p in modules() if p.relative_to(ROOT).parts[0] in PURE)
)
def test_pure_modules_never_await(path: Path) -> None:
    assert not [n.lineno for n in nodes(path) if isinstance(n, ASYNC_NODES)]


@pytest.mark.parametrize("path", named(p for p in modules() if p != OWNER_OF_TASKS))
def test_only_the_supervisor_creates_tasks(path: Path) -> None:
    calls = (n.func for n in nodes(path) if isinstance(n, ast.Call))
    assert not [
        f.lineno
        for f in calls
        if isinstance(f, ast.Attribute) and f.attr == "create_task"
    ]


@pytest.mark.parametrize("path", named(modules()))
def test_functions_are_short(path: Path) -> None:
    functions = (
        n for n in nodes(path) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    assert not [f.name for f in functions if body_lines(f) > MAX_FUNCTION_LINES]


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
        and "_speedups" in ast.unparse(node)
    }
    assert importers == {"_records/_impl.py"}


UNFINISHED = ("TO" + "DO", "FIX" + "ME", "XX" + "X:")


@pytest.mark.parametrize("path", named(modules()))
def test_nothing_is_left_for_later(path: Path) -> None:
    text = path.read_text()
    assert not [word for word in UNFINISHED if word in text]
