"""``kafkaio log-dirs``: the log directories of brokers and their replicas."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

import click

from kafkaio._cli.shell.command import asynchronous, command
from kafkaio._cli.shell.session import CommandSession
from kafkaio._cli.text.document import BOOLEAN, INTEGER, PARTITION, TEXT, Document, rows
from kafkaio._cli.text.named import brokers_there, by_name, outcomes
from kafkaio._cli.text.output import Table
from kafkaio._cli.text.values import partition_row

if TYPE_CHECKING:
    from kafkaio.admin import LogDirectory

#: A future replica is a copy on its way from another directory of the broker (KIP-113).
_REPLICAS: Final = rows(
    **PARTITION, size=INTEGER, offset_lag=INTEGER, is_future=BOOLEAN
)
_DIRECTORIES: Final = Document(
    log_dirs=rows(
        broker=INTEGER,
        path=TEXT,
        # The name of the code, such as KAFKA_STORAGE_ERROR: the disk has failed.
        error=TEXT.or_null,
        # Whether the directory takes no new replicas (KIP-1066).
        is_cordoned=BOOLEAN,
        # Null from brokers before 3.3.
        total_bytes=INTEGER.or_null,
        usable_bytes=INTEGER.or_null,
        replica_count=INTEGER,
        replica_bytes=INTEGER,
        replicas=_REPLICAS.hidden,
    )
)


@command("log-dirs", prints=_DIRECTORIES)
@click.option("--broker", type=int, multiple=True, metavar="ID", help="Only these.")
@click.option("--topic", multiple=True, metavar="NAME", help="Only replicas of these.")
@click.option("--replicas", is_flag=True, help="A line for each replica.")
@asynchronous
async def log_dirs(
    session: CommandSession,
    broker: tuple[int, ...],
    topic: tuple[str, ...],
    *,
    replicas: bool,
) -> None:
    """Show the log directories of brokers.

    With the number and the size of their replicas.
    """
    async with session.admin() as admin:
        node_ids = await brokers_there(admin, broker)
        results = await outcomes(admin.describe_log_dirs(node_ids))
    found = session.good(by_name(results, lambda node: f"broker {node}"))
    documents = [
        _document(node, it, topic)
        for node, directories in sorted(found.items())
        for it in sorted(directories.values(), key=lambda it: it.path)
    ]
    tables = []
    if replicas:
        columns = [*_DIRECTORIES.row.only("broker", "path"), *_REPLICAS.columns()]
        tables = [Table(_replica_rows(documents), columns)]
    session.show(_DIRECTORIES, *tables, log_dirs=documents)


def _document(
    node: int, it: LogDirectory, topics: Collection[str]
) -> dict[str, object]:
    there = {
        tp: replica
        for tp, replica in sorted(it.replicas.items())
        if not topics or tp.topic in topics
    }
    return {
        "broker": node,
        "path": it.path,
        "error": None if it.error is None else it.error.name,
        "is_cordoned": it.is_cordoned,
        "total_bytes": it.total_bytes,
        "usable_bytes": it.usable_bytes,
        "replica_count": len(there),
        "replica_bytes": sum(each.size for each in there.values()),
        "replicas": [
            partition_row(tp)
            | {"size": each.size, "offset_lag": each.offset_lag}
            | {"is_future": each.is_future}
            for tp, each in there.items()
        ],
    }


def _replica_rows(documents: list[dict[str, object]]) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for document in documents:
        replicas = document["replicas"]
        assert isinstance(replicas, list)
        for each in replicas:
            assert isinstance(each, Mapping)
            found.append(
                {"broker": document["broker"], "path": document["path"], **each}
            )
    return found
