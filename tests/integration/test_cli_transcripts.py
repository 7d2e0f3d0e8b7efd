"""Every command of ``kafkaio``, as transcripts: in a pipe, at a terminal, as JSON.

The transcripts are the files ``transcripts/COMMAND.txt``; `tests.support.transcripts`
says how they are written. Each runs on an embedded broker of its own, so ids, offsets
and epochs are the same in each run. ``KAFKAIO_WRITE_TRANSCRIPTS=1`` in the environment
writes the files anew: read what has changed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    nullcontext,
)
from pathlib import Path
from typing import Final

import click
import pytest

import kafkaio
from kafkaio._cli.registry import COMMANDS
from kafkaio._cli.root import root
from kafkaio.testing import Broker, SchemaRegistry
from tests.support.cli import environment
from tests.support.transcripts import Masks, Step, read, replay, text_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(60),
    pytest.mark.kafka_versions("newest"),
]

DIRECTORY = Path(__file__).parent / "transcripts"
TRANSCRIPTS = {path.stem: path for path in sorted(DIRECTORY.glob("*.txt"))}

#: How a command was shown: without a terminal, at one, as a document with its schema.
PIPE, TERMINAL, JSON = "pipe", "terminal", "json"
#: What no transcript shows, and why; ``broker`` is in tests/unit/cli/test_broker.py.
ELSEWHERE: Final[Mapping[tuple[str, str], str]] = {
    ("completion", JSON): "it prints a program for a shell",
    **dict.fromkeys(
        [
            (f"quorum {voter}", kind)
            for voter in ("add-voter", "remove-voter")
            for kind in (PIPE, TERMINAL, JSON)
        ],
        "refused by the embedded broker, and by a Kafka whose voters are static",
    ),
    **dict.fromkeys(
        [
            (f"share-groups {name}", kind)
            for name in ("describe", "delete", "offsets", "reset")
            for kind in (PIPE, TERMINAL, JSON)
            # These two need no group.
            if (name, kind)
            not in {("offsets", PIPE), ("offsets", TERMINAL), ("reset", PIPE)}
        ],
        "test_cli_ops.py, on a real Kafka, with a group that has members",
    ),
}


def leaves() -> Iterator[str]:
    """Every command that runs something, but for ``broker``, by all of its name."""
    context = click.Context(root)
    for name in (name for section in COMMANDS.values() for name in section):
        found = root.get_command(context, name)
        if isinstance(found, click.Group):
            yield from (f"{name} {sub}" for sub in found.commands)
        else:
            yield name
    yield from ("log dump", "log verify")


def kind_of(step: Step) -> str:
    """What a step shows."""
    return JSON if "--json" in step.words else step.where


@pytest.fixture
def profiles(tmp_path: Path) -> Path:
    """The directory with the config file of whoever runs the commands."""
    (tmp_path / "kafkaio").mkdir()
    return tmp_path


# ---- what there is beside the commands -----------------------------------------------

Scene = Callable[[Broker], AbstractAsyncContextManager[object]]


@asynccontextmanager
async def members(broker: Broker) -> AsyncIterator[None]:
    """Three groups of one member each, which commits nothing."""
    async with AsyncExitStack() as stack:
        for group in ("bills", "mails", "shop"):
            consumer = kafkaio.Consumer(
                broker.bootstrap_servers,
                topics=["orders"],
                group_id=group,
                client_id="kafkaio",
                enable_auto_commit=False,
            )
            await stack.enter_async_context(consumer)
        yield


@asynccontextmanager
async def transactions(broker: Broker) -> AsyncIterator[None]:
    """Producers of the ids ``a`` to ``i``, in transactions with a record each.

    All is written to ``bills``, one after the other: their ids and offsets count up.
    """
    async with AsyncExitStack() as stack:
        for name in "abcdefghi":
            producer = kafkaio.Producer(
                broker.bootstrap_servers, transactional_id=name, linger_ms=0
            )
            await producer.start()
            stack.push_async_callback(producer.close)
            transaction = producer.transaction()
            await transaction.begin()
            await transaction.send("bills", b"open")
        yield


@asynccontextmanager
async def registry(broker: Broker) -> AsyncIterator[None]:
    """A schema registry, which the environment names."""
    del broker
    async with SchemaRegistry() as registry:
        with environment(KAFKAIO_REGISTRY_URL=registry.url):
            yield


SCENES: Final[Mapping[str, Scene]] = {
    "groups": members,
    "schemas": registry,
    "transactions": transactions,
}
MASKS: Final[Mapping[str, Masks]] = {
    "bench": [(r"()\b\d+(?:[.,]\d+)*(?!\])()", "<n>")],
    "cluster": [(r"()(?<![\w-])[\w-]{22}(?![\w-])()", "<id>")],
    "completion": [
        (r"(function _kafkaio_completion;\n)(?s:.*?)(\n\ncomplete )", "<body>")
    ],
    "log": [(r"(timestamp=)\d+()", "<ms>")],
    "tokens": [(r"()(?<![\w-])[\w-]{22}(?![\w-])()", "<token>")],
}


# ---- the tests -----------------------------------------------------------------------


@pytest.mark.parametrize("name", TRANSCRIPTS)
async def test_what_is_typed_and_printed(name: str, profiles: Path) -> None:
    steps = read(TRANSCRIPTS[name].read_text())
    people = {"alice": "alice-secret"}
    topics = {"orders": 2, "bills": 1}
    is_writing = bool(os.environ.get("KAFKAIO_WRITE_TRANSCRIPTS"))
    known: dict[str, str] = {}
    async with Broker(
        nodes=3,
        first_node_id=1,
        topics=topics,
        data_dir=profiles / "data",
        sasl=True,
        acls=True,
        users=people,
    ) as broker:
        (profiles / "kafkaio" / "config.toml").write_text(
            PROFILES.format(broker.bootstrap("SASL"))
        )
        scene = SCENES.get(name, lambda _: nullcontext())
        with environment(
            XDG_CONFIG_HOME=str(profiles),
            KAFKAIO_BOOTSTRAP_SERVERS=broker.bootstrap_servers,
            KAFKAIO_NEW_PASSWORD="open sesame",
        ):
            async with scene(broker):
                for step in steps:
                    shown = await asyncio.to_thread(
                        replay, step, profiles, MASKS.get(name, ()), known
                    )
                    if is_writing:
                        step.shown = shown
                    assert shown == step.shown, step.line
    if is_writing:
        TRANSCRIPTS[name].write_text(text_of(steps))


PROFILES: Final = """
[profiles.alice]
bootstrap.servers = "{}"
security.protocol = "SASL_PLAINTEXT"
sasl.mechanism = "SCRAM-SHA-256"
sasl.username = "alice"
sasl.password = "alice-secret"
"""


def test_every_command_is_shown_in_every_way() -> None:
    shown: dict[str, set[str]] = {}
    for path in TRANSCRIPTS.values():
        for step in read(path.read_text()):
            words = step.words
            for leaf in (words[0], " ".join(words[:2])):
                if step.succeeds:
                    shown.setdefault(leaf, set()).add(kind_of(step))
    missing = {
        (leaf, kind)
        for leaf in leaves()
        for kind in (PIPE, TERMINAL, JSON)
        if kind not in shown.get(leaf, ())
    }
    assert missing == {*ELSEWHERE}


def test_transcripts_are_written_as_they_are_read() -> None:
    for path in TRANSCRIPTS.values():
        text = path.read_text()
        assert text_of(read(text)) == text, path
