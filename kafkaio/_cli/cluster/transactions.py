"""``kafkaio transactions``: open and hanging transactions, and how to end them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from kafkaio._cli.shell.command import YES, Group, asynchronous
from kafkaio._cli.shell.session import CommandSession
from kafkaio._cli.text.document import (
    INTEGER,
    PARTITION,
    TEXT,
    TIME_OR_NULL,
    Document,
    picked,
    rows,
)
from kafkaio._cli.text.named import (
    brokers_there,
    outcomes,
    partition_name,
    partition_of,
)
from kafkaio._cli.text.output import Table
from kafkaio._cli.text.values import duration_of, partition_row, time_at

if TYPE_CHECKING:
    from kafkaio.admin import (
        HangingTransaction,
        ProducerIdAndEpoch,
        TransactionDescription,
    )

_LISTED: Final = Document(
    transactions=rows(
        transactional_id=TEXT, producer_id=INTEGER, state=TEXT, coordinator=INTEGER
    )
)
_DESCRIBED: Final = Document(
    transactions=rows(
        transactional_id=TEXT,
        coordinator=INTEGER,
        state=TEXT,
        producer_id=INTEGER,
        producer_epoch=INTEGER,
        timeout_ms=INTEGER,
        start_time=TIME_OR_NULL,
        partitions=rows(**PARTITION),
    )
)
#: The start offset identifies the transaction for ``abort``, because brokers report the
#: producers of a partition with the first offset of their open transaction (KIP-664).
_HANGING: Final = Document(
    transactions=rows(
        **PARTITION,
        start_offset=INTEGER,
        producer_id=INTEGER,
        producer_epoch=INTEGER,
        last_time=TIME_OR_NULL,
        transactional_id=TEXT.or_null,
    )
)
_ABORTED: Final = Document(aborted=rows(**PARTITION, start_offset=INTEGER))
_FENCED: Final = Document(
    fenced=rows(transactional_id=TEXT, producer_id=INTEGER, epoch=INTEGER)
)


transactions: Group = Group("transactions", help="List, describe and end transactions.")


@transactions.command("list", prints=_LISTED)
@click.option(
    "--state",
    multiple=True,
    type=click.Choice(
        [
            *("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit"),
            *("CompleteAbort", "Dead", "PrepareEpochFence"),
        ],
        case_sensitive=False,
    ),
    help="Only in these states; can be repeated.",
)
@click.option("--producer-id", type=int, multiple=True, help="Only of these producers.")
@click.option(
    "--open-for",
    metavar="DURATION",
    help="Only those open for that long (Kafka 3.8).",
)
@click.option("--pattern", metavar="REGEX", help="Only these ids (Kafka 4.1, RE2).")
@asynchronous
async def _list(
    session: CommandSession,
    state: tuple[str, ...],
    producer_id: tuple[int, ...],
    open_for: str | None,
    pattern: str | None,
) -> None:
    """List the transactional ids of the cluster."""
    from kafkaio.admin import TransactionState

    async with session.admin() as admin:
        found = await admin.list_transactions(
            states=[*map(TransactionState, state)] or None,
            producer_ids=producer_id or None,
            duration_ms=None if open_for is None else _milliseconds(open_for),
            pattern=pattern,
        )
    session.show(_LISTED, transactions=[picked(_LISTED.row, it) for it in found])


@transactions.command("describe", prints=_DESCRIBED)
@click.argument("transactional_id", nargs=-1, required=True)
@asynchronous
async def _describe(session: CommandSession, transactional_id: tuple[str, ...]) -> None:
    """Describe transactional ids: how far the transaction is, and where it wrote."""
    async with session.admin() as admin:
        results = await outcomes(
            admin.describe_transactions(list(dict.fromkeys(transactional_id)))
        )
    found = session.good(results).values()
    table = Table([_described(it) for it in found], _DESCRIBED.row.columns())
    # In JSON the partitions are objects; a cell of the table has their names.
    documents = [
        _described(it)
        | {"partitions": [partition_row(tp) for tp in sorted(it.partitions)]}
        for it in found
    ]
    session.show(_DESCRIBED, table, transactions=documents)


@transactions.command("hanging", prints=_HANGING)
@click.option("--broker", type=int, metavar="ID", help="Only where it leads.")
@click.option("--topic", multiple=True, metavar="NAME", help="Only there.")
@click.option(
    "--max-transaction-timeout",
    # The brokers' default.
    default="15m",
    show_default=True,
    metavar="DURATION",
    help="The brokers' transaction.max.timeout.ms.",
)
@asynchronous
async def _find_hanging(
    session: CommandSession,
    broker: int | None,
    topic: tuple[str, ...],
    max_transaction_timeout: str,
) -> None:
    """Find transactions that are open in a partition, and that no coordinator ends."""
    async with session.admin() as admin:
        if broker is not None:
            await brokers_there(admin, [broker])
        found = await admin.find_hanging_transactions(
            broker=broker,
            topics=topic or None,
            max_transaction_timeout_ms=_milliseconds(max_transaction_timeout),
        )
    session.show(_HANGING, transactions=[_hanging(it) for it in found])


@transactions.command("abort", prints=_ABORTED)
@click.argument("partition", metavar="TOPIC:PARTITION")
@click.argument("start_offset", type=click.IntRange(min=0))
@click.option("--force", is_flag=True, help="Do not ask the coordinators first.")
@YES
@asynchronous
async def _abort(
    session: CommandSession,
    partition: str,
    start_offset: int,
    *,
    force: bool,
    yes: bool,
) -> None:
    """Abort a transaction that hangs in a partition, as ``hanging`` finds it."""
    # Without --force Admin asks the coordinators first whether one of them will end it.
    tp = partition_of(partition)
    async with session.admin() as admin:
        name = partition_name(tp)
        effect = f"abort: the transaction in {name} from offset {start_offset}"
        session.confirm([effect], yes=yes)
        await admin.abort_transaction(tp, start_offset, force=force)
    row = {**partition_row(tp), "start_offset": start_offset}
    session.show(_ABORTED, aborted=[row])


@transactions.command("fence", prints=_FENCED)
@click.argument("transactional_id", nargs=-1, required=True)
@YES
@asynchronous
async def _fence(
    session: CommandSession, transactional_id: tuple[str, ...], *, yes: bool
) -> None:
    """Fence the producers of transactional ids, and abort their open transactions."""
    ids = list(dict.fromkeys(transactional_id))
    async with session.admin() as admin:
        session.confirm([f"fence: the producer of {each}" for each in ids], yes=yes)
        results = await outcomes(admin.fence_producers(ids))
    _show_fenced(session, session.good(results))


@transactions.command("terminate", prints=_FENCED)
@click.argument("transactional_id")
@YES
@asynchronous
async def _terminate(
    session: CommandSession, transactional_id: str, *, yes: bool
) -> None:
    """Abort the open transaction of a transactional id, and fence its producer.

    An unknown id is refused, so no new one is created by mistake.
    """
    from kafkaio.admin import ProducerIdAndEpoch

    async with session.admin() as admin:
        # Terminating an unknown id would create it; the description fails for one.
        await admin.describe_transactions([transactional_id])
        effect = f"terminate: the transaction of {transactional_id}"
        session.confirm([effect], yes=yes)
        await admin.force_terminate_transaction(transactional_id)
        # InitProducerId is answered with the new epoch, but Admin returns nothing.
        described = await admin.describe_transactions([transactional_id])
    it = described[transactional_id]
    fenced = ProducerIdAndEpoch(it.producer_id, it.producer_epoch)
    _show_fenced(session, {transactional_id: fenced})


def _show_fenced(session: CommandSession, found: dict[str, ProducerIdAndEpoch]) -> None:
    fenced = [
        {"transactional_id": name, "producer_id": it.producer_id, "epoch": it.epoch}
        for name, it in found.items()
    ]
    session.show(_FENCED, fenced=fenced)


def _described(it: TransactionDescription) -> dict[str, object]:
    return {
        "transactional_id": it.transactional_id,
        "coordinator": it.coordinator,
        "state": it.state,
        "producer_id": it.producer_id,
        "producer_epoch": it.producer_epoch,
        "timeout_ms": it.timeout_ms,
        "start_time": time_at(it.start_time_ms),
        "partitions": [partition_name(tp) for tp in sorted(it.partitions)],
    }


def _hanging(it: HangingTransaction) -> dict[str, object]:
    return {
        **partition_row(it.partition),
        "start_offset": it.start_offset,
        "producer_id": it.producer_id,
        "producer_epoch": it.producer_epoch,
        "last_time": time_at(it.last_timestamp),
        "transactional_id": it.transactional_id,
    }


def _milliseconds(text: str) -> int:
    return round(duration_of(text).total_seconds() * 1000)
