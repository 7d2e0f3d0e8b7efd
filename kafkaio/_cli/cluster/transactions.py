"""``kafkaio transactions``: what is open, what hangs, and how to end it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from kafkaio._cli.shell.command import YES, Group, asynchronous
from kafkaio._cli.shell.session import Session
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

_LISTED: Final = ("transactional_id", "producer_id", "state", "coordinator")
_DESCRIBED: Final = (
    *("transactional_id", "coordinator", "state", "producer_id", "producer_epoch"),
    *("timeout_ms", "start_time", "partitions"),
)
_HANGING: Final = (
    *("topic", "partition", "start_offset", "producer_id", "producer_epoch"),
    *("last_time", "transactional_id"),
)
_FENCED: Final = ("transactional_id", "producer_id", "epoch")


transactions: Group = Group("transactions", help="List, describe and end transactions.")


@transactions.command("list")
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
    session: Session,
    state: tuple[str, ...],
    producer_id: tuple[int, ...],
    open_for: str | None,
    pattern: str | None,
) -> None:
    """List the transactional ids of the cluster."""
    async with session.admin() as admin:
        found = await admin.list_transactions(
            states=state or None,
            producer_ids=producer_id or None,
            duration_ms=None if open_for is None else _milliseconds(open_for),
            pattern=pattern,
        )
    rows = [{name: getattr(it, name) for name in _LISTED} for it in found]
    session.show({"transactions": rows}, Table(rows, _LISTED))


@transactions.command("describe")
@click.argument("transactional_id", nargs=-1, required=True)
@asynchronous
async def _describe(session: Session, transactional_id: tuple[str, ...]) -> None:
    """Describe transactional ids: how far the transaction is, and where it wrote."""
    async with session.admin() as admin:
        results = await outcomes(
            admin.describe_transactions(list(dict.fromkeys(transactional_id)))
        )
    found = session.good(results).values()
    rows = [_described(it) for it in found]
    documents = [
        _described(it)
        | {"partitions": [partition_row(tp) for tp in sorted(it.partitions)]}
        for it in found
    ]
    session.show({"transactions": documents}, Table(rows, _DESCRIBED))


@transactions.command("hanging")
@click.option("--broker", type=int, metavar="ID", help="Only where it leads.")
@click.option("--topic", multiple=True, metavar="NAME", help="Only there.")
@click.option(
    "--max-transaction-timeout",
    default="15m",
    show_default=True,
    metavar="DURATION",
    help="The brokers' transaction.max.timeout.ms.",
)
@asynchronous
async def _find_hanging(
    session: Session,
    broker: int | None,
    topic: tuple[str, ...],
    max_transaction_timeout: str,
) -> None:
    """Find transactions that are open in a partition, and that nobody will end."""
    async with session.admin() as admin:
        if broker is not None:
            await brokers_there(admin, [broker])
        found = await admin.find_hanging_transactions(
            broker=broker,
            topics=topic or None,
            max_transaction_timeout_ms=_milliseconds(max_transaction_timeout),
        )
    rows = [_hanging(it) for it in found]
    session.show({"transactions": rows}, Table(rows, _HANGING))


@transactions.command("abort")
@click.argument("partition", metavar="TOPIC:PARTITION")
@click.argument("start_offset", type=click.IntRange(min=0))
@click.option("--force", is_flag=True, help="Do not ask the coordinators first.")
@YES
@asynchronous
async def _abort(
    session: Session, partition: str, start_offset: int, *, force: bool, yes: bool
) -> None:
    """Abort a transaction that hangs in a partition, as ``hanging`` finds it."""
    tp = partition_of(partition)
    async with session.admin() as admin:
        name = partition_name(tp)
        effect = f"abort: the transaction in {name} from offset {start_offset}"
        session.confirm([effect], yes=yes)
        await admin.abort_transaction(tp, start_offset, force=force)
    row = {**partition_row(tp), "start_offset": start_offset}
    session.show({"aborted": [row]}, Table([row], tuple(row)))


@transactions.command("fence")
@click.argument("transactional_id", nargs=-1, required=True)
@YES
@asynchronous
async def _fence(
    session: Session, transactional_id: tuple[str, ...], *, yes: bool
) -> None:
    """End the producers of transactional ids, and abort what they have open."""
    ids = list(dict.fromkeys(transactional_id))
    async with session.admin() as admin:
        session.confirm([f"fence: the producer of {each}" for each in ids], yes=yes)
        results = await outcomes(admin.fence_producers(ids))
    _show_fenced(session, session.good(results))


@transactions.command("terminate")
@click.argument("transactional_id")
@YES
@asynchronous
async def _terminate(session: Session, transactional_id: str, *, yes: bool) -> None:
    """Abort the open transaction of a transactional id, and fence its producer.

    An id that is unknown is refused, so that no new one is made by mistake.
    """
    from kafkaio.admin import ProducerIdAndEpoch

    async with session.admin() as admin:
        await admin.describe_transactions([transactional_id])
        effect = f"terminate: the transaction of {transactional_id}"
        session.confirm([effect], yes=yes)
        await admin.force_terminate_transaction(transactional_id)
        described = await admin.describe_transactions([transactional_id])
    it = described[transactional_id]
    fenced = ProducerIdAndEpoch(it.producer_id, it.producer_epoch)
    _show_fenced(session, {transactional_id: fenced})


def _show_fenced(session: Session, found: dict[str, ProducerIdAndEpoch]) -> None:
    rows = [
        {"transactional_id": name, "producer_id": it.producer_id, "epoch": it.epoch}
        for name, it in found.items()
    ]
    session.show({"fenced": rows}, Table(rows, _FENCED))


def _described(it: TransactionDescription) -> dict[str, object]:
    row: dict[str, object] = {name: getattr(it, name, None) for name in _DESCRIBED}
    names = [partition_name(tp) for tp in sorted(it.partitions)]
    return row | {"start_time": time_at(it.start_time_ms), "partitions": names}


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
