"""What mypy and pyright say of whole programs: refused ones, docs and examples.

Each checker runs once over all of them.
"""

from __future__ import annotations

import ast
import builtins
import json
import os
import re
import subprocess
import sys
import textwrap
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PRELUDE: Final = """\
import json
from collections.abc import Awaitable
from dataclasses import dataclass
import kafkaio
from kafkaio import Consumer, Producer, Record, Topic, Transaction
from kafkaio.serde import DeserializationContext, SerializationContext

@dataclass
class Order:
    id: int

@dataclass
class Payment:
    amount: int

def dump(order: Order) -> bytes:
    return json.dumps({"id": order.id}).encode()

def load(data: bytes) -> Order:
    return Order(**json.loads(data))

class Orders:
    async def serialize(self, value: Order, context: SerializationContext) -> bytes:
        return dump(value)
    async def deserialize(self, data: bytes, context: DeserializationContext) -> Order:
        return load(data)

class Payments:
    def serialize(
        self, value: Payment, context: SerializationContext
    ) -> bytes | Awaitable[bytes]:
        return str(value.amount).encode()
    def deserialize(
        self, data: bytes, context: DeserializationContext
    ) -> Payment | Awaitable[Payment]:
        return Payment(int(data))

orders = Topic("orders", value=Orders())
payments = Topic("payments", value=Payments())

async def handle(record: Record[bytes | None, Order]) -> None:
    print(record.value.id + 1)
"""
#: Each is one error, in its last statement.
REFUSED: Final = {
    "a value of another type": """
        async def main(producer: Producer[str, Order]) -> None:
            await producer.send("orders", "no order")
    """,
    "a value of another type than the serializer's": """
        async def main() -> None:
            async with Producer("x:1", value_serializer=dump) as producer:
                await producer.send("orders", "no order")
    """,
    "a value of another type than an object's": """
        async def main() -> None:
            async with Producer("x:1", value_serializer=Payments()) as producer:
                await producer.send("payments", Order(1))
    """,
    "text for bytes": """
        async def main(producer: Producer) -> None:
            await producer.send("orders", "text")
    """,
    "a key of another type": """
        async def main(producer: Producer[str, Order]) -> None:
            await producer.enqueue("orders", Order(1), key=b"k")
    """,
    "nowait, a value of another type": """
        def main(producer: Producer[str, Order]) -> None:
            print(producer.enqueue_nowait("orders", Payment(1)))
    """,
    "one of many values": """
        async def main(producer: Producer[str, Order]) -> None:
            await producer.send_many("orders", [Order(1), Payment(1)])
    """,
    "a value that a topic does not have": """
        async def main(producer: Producer) -> None:
            await producer.send(orders, Payment(1))
    """,
    "bytes for a topic of objects": """
        async def main(producer: Producer) -> None:
            await producer.send(orders, b"bytes")
    """,
    "a key for a topic without a serde of keys": """
        async def main(producer: Producer[str, Order]) -> None:
            await producer.send(orders, Order(1), key="text")
    """,
    "a value of a transaction": """
        async def main(producer: Producer[str, Order]) -> None:
            async with producer.transaction() as tx:
                await tx.send("orders", Payment(1))
    """,
    "a producer of something else": """
        def write(producer: Producer[bytes, Order]) -> None: ...
        def main(producer: Producer[bytes, Payment]) -> None:
            write(producer)
    """,
    "a serializer that returns text": """
        Producer("x:1", value_serializer=json.dumps)
    """,
    "an object that does not serialize": """
        Producer("x:1", value_serializer=Order(1))
    """,
    "a deserializer of text": """
        def main(read: Topic[bytes | None, Order]) -> None: ...
        main(Topic("payments", value=Payments()))
    """,
    "an attribute that the value does not have": """
        async def main() -> None:
            async with Consumer("x:1", topics=orders) as consumer:
                async for record in consumer:
                    print(record.value.amount)
    """,
    "an attribute that a deserialized value does not have": """
        async def main() -> None:
            async with Consumer("x:1", value_deserializer=load) as consumer:
                print((await anext(consumer)).value.amount)
    """,
    "an attribute that an awaited value does not have": """
        async def main() -> None:
            consumer = Consumer("x:1", value_deserializer=Orders())
            print((await anext(consumer)).value.amount)
    """,
    "bytes that may be None": """
        async def main(consumer: Consumer) -> None:
            print((await anext(consumer)).value.decode())
    """,
    "a handler of other values": """
        async def main(consumer: Consumer[bytes | None, Payment]) -> None:
            await consumer.run(handle)
    """,
    "a handler that is no coroutine function": """
        async def main(consumer: Consumer) -> None:
            await consumer.run(print)
    """,
    "exactly once, a handler of other values": """
        async def work(tx: Transaction, records: list[Record[str, Order]]) -> None: ...
        async def main(consumer: Consumer[str, Payment], producer: Producer) -> None:
            await kafkaio.exactly_once(consumer, producer, work)
    """,
    "another topic than the consumer's": """
        def main(consumer: Consumer[bytes | None, Order]) -> None:
            consumer.subscribe(payments)
    """,
    "a batch of other values": """
        async def main(consumer: Consumer[str, Order]) -> list[Payment]:
            batch = await anext(consumer.batches())
            return batch.values()
    """,
    "a lane of other values": """
        async def main(consumer: Consumer[str, Order]) -> Payment:
            lane = await anext(consumer.partitions())
            return (await anext(lane)).value
    """,
    "a word that is no policy": """
        Consumer("x:1", topics="t", auto_offset_reset="eariest")
    """,
    "a word that is no codec": """
        Producer("x:1", compression_type="zst")
    """,
    "an ordering that is none": """
        async def main(consumer: Consumer[bytes | None, Order]) -> None:
            await consumer.run(handle, ordering="keys")
    """,
    "a place that is none": """
        async def main(consumer: Consumer, tp: kafkaio.TopicPartition) -> None:
            await consumer.rewind({tp: "begin"})
    """,
    "an option of another class": """
        Producer("x:1", group_id="g")
    """,
}
#: Other files of the programs of a page, and libraries that are not installed here.
MISSING: Final = (
    *("billing", "service", "shop", "kafka", "fastapi", "faststream", "uvicorn"),
    *("pandas", "polars", "pyiceberg", "deltalake", "duckdb", "fastavro"),
    *("structlog", "uvloop", "taskiq", "taskiq_aio_kafka"),
)
_FENCE = re.compile(r"^( *)```python\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def file_name(text: str) -> str:
    return re.sub(r"\W+", "_", text).strip("_").lower()


class Names(ast.NodeVisitor):
    """The names that a program binds, anywhere, and those that it uses."""

    def __init__(self, code: str) -> None:
        self.bound, self.used = set[str](dir(builtins)), set[str]()
        self.visit(ast.parse(code))

    def visit_Name(self, node: ast.Name) -> None:
        names = self.used if isinstance(node.ctx, ast.Load) else self.bound
        names.add(node.id)

    def visit_arg(self, node: ast.arg) -> None:
        self.bound.add(node.arg)
        self.generic_visit(node)

    def visit_alias(self, node: ast.alias) -> None:
        self.bound.add((node.asname or node.name).partition(".")[0])

    def visit_definition(self, node: ast.AST) -> None:
        self.bound.add(str(vars(node)["name"]))
        self.generic_visit(node)

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_definition
    visit_ExceptHandler = visit_MatchAs = visit_definition


def is_program(code: str) -> bool:
    """Whether code runs by itself: it imports what it needs, and awaits nothing."""
    try:
        compile(code, "program", "exec")
    except SyntaxError:
        return False
    has_imports = re.search(r"^(import|from) ", code, re.MULTILINE)
    return bool(has_imports) and code.count("\n") > 1


def programs() -> Iterator[tuple[str, str]]:
    """The whole programs of the pages, by the page and the number of the block.

    A block that goes on from what the page has before, in code or in words, is none:
    it uses names that it does not bind.
    """
    for page in pages():
        blocks = _FENCE.findall(page.read_text(encoding="utf-8"))
        for number, (_, block) in enumerate(blocks):
            code = textwrap.dedent(block)
            if is_program(code):
                names = Names(code)
                if names.used <= names.bound:
                    yield f"{page.relative_to(ROOT)} {number}", code


EXAMPLES: Final = sorted((ROOT / "examples").rglob("*.py"))
PAGES: Final = {file_name(name): code for name, code in programs()}
PROGRAMS: Final = PAGES | {
    file_name(str(path.relative_to(ROOT))): path.read_text(encoding="utf-8")
    for path in EXAMPLES
}
WRONG: Final = {
    f"refused_{file_name(name)}": PRELUDE + textwrap.dedent(code)
    for name, code in REFUSED.items()
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("programs")
    for name, code in {**PROGRAMS, **WRONG}.items():
        made.joinpath(f"{name}.py").write_text(code)
    return made


def about_libraries() -> Iterator[str]:
    """What the project's own configuration says about libraries without types."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    more = [name + end for name in MISSING for end in ("", ".*")]
    overrides = project["tool"]["mypy"]["overrides"]
    for override in [*overrides, {"module": more, "ignore_missing_imports": True}]:
        modules = override.pop("module")
        yield f"[mypy-{','.join(modules)}]"
        yield from (f"{key} = {value}" for key, value in override.items())


@pytest.fixture(scope="module")
def by_mypy(folder: Path) -> Mapping[str, list[str]]:
    """The errors of ``mypy --strict``, by program."""
    config = folder / "mypy.ini"
    config.write_text(
        f"[mypy]\nstrict = true\nmypy_path = {ROOT}\n"
        # The decorators of a library that is not installed have no types.
        f"[mypy-{','.join(PAGES)}]\ndisable_error_code = untyped-decorator\n"
        + "\n".join(about_libraries())
    )
    cache = ROOT / ".mypy_cache" / "programs"
    command = [sys.executable, "-m", "mypy", "--config-file", str(config)]
    command += ["--cache-dir", str(cache), "--no-error-summary", "."]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder
    )
    assert not done.stderr, done.stderr
    found = defaultdict[str, list[str]](list)
    for line in done.stdout.splitlines():
        if ": error:" in line:
            path, _, rest = line.partition(":")
            found[Path(path).stem].append(rest)
    return found


@pytest.fixture(scope="module")
def by_pyright(folder: Path) -> Mapping[str, set[int]]:
    """The lines with errors of pyright, by program."""
    command = [sys.executable, "-m", "pyright", "--outputjson"]
    command += ["--pythonpath", sys.executable]
    command += [str(folder / f"{name}.py") for name in WRONG]
    command += [str(path) for path in sorted(Path(__file__).parent.glob("check_*.py"))]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    found = defaultdict[str, set[int]](set)
    for each in json.loads(done.stdout)["generalDiagnostics"]:
        if each["severity"] == "error":
            line = each["range"]["start"]["line"]
            found[Path(each["file"]).stem].add(line + 1)
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_the_docs_has_types(
    name: str, by_mypy: Mapping[str, list[str]]
) -> None:
    assert not by_mypy[name], "\n".join(by_mypy[name])


def test_the_docs_have_programs() -> None:
    assert len(PAGES) > 35
    assert len(EXAMPLES) > 15
    assert any(name.startswith("readme") for name in PAGES)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_program_is_refused_by_mypy(
    name: str, by_mypy: Mapping[str, list[str]]
) -> None:
    (error,) = by_mypy[name]
    assert int(error.partition(":")[0]) == len(WRONG[name].rstrip().splitlines())


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_program_is_refused_by_pyright(
    name: str, by_pyright: Mapping[str, set[int]]
) -> None:
    assert by_pyright[name] == {len(WRONG[name].rstrip().splitlines())}


@pytest.mark.parametrize("path", sorted(Path(__file__).parent.glob("check_*.py")))
def test_pyright_agrees_with_mypy(
    path: Path, by_pyright: Mapping[str, set[int]]
) -> None:
    assert not by_pyright[path.stem]
