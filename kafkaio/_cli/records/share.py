"""``kafkaio consume --share``: prints records of a queue, and accepts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import click

from kafkaio._cli.records.decoded import ShownRecord
from kafkaio._cli.records.decoding import RecordChooser, UndecodableRecord
from kafkaio._cli.shell.progress import ProgressBar
from kafkaio._cli.text.exits import CommandFailed

if TYPE_CHECKING:
    from kafkaio._cli.records.sinks import RecordSinkPort
    from kafkaio._records.batch import ShareRecord
    from kafkaio._share import ShareBatch, ShareConsumer

#: Options of ``consume`` without a meaning for a queue, by their parameter, and what
#: serves instead.
_REFUSED: Final[Mapping[str, tuple[str, str]]] = {
    "group": ("--group", "--share names the group"),
    "partition": ("--partition", "the group says which partitions a worker reads"),
    "offset": (
        "--offset",
        "the group has one place for all its workers: kafkaio share-groups reset "
        "{group} moves it, and kafkaio configs set group {group} "
        "share.auto.offset.reset=earliest says where a new group begins",
    ),
    "stop": (
        "--exit",
        "a queue has no end, for records that others have may come back: use --count",
    ),
    "keep": (
        "--filter",
        "what it leaves out would be accepted unseen, or come back for ever: filter "
        "what is printed",
    ),
    "to_arrow": (
        "--to-arrow",
        "a record is accepted when it is printed, and a file is whole only at its end: "
        "use --jsonl",
    ),
    "to_parquet": (
        "--to-parquet",
        "a record is accepted when it is printed, and a file is whole only at its end: "
        "use --jsonl",
    ),
    "read_committed": (
        "--read-committed",
        "that is a config of the group: kafkaio configs set group {group} "
        "share.isolation.level=read_committed",
    ),
}
#: The most records between two flushes of what is printed.
_AT_ONCE: Final = 500


def check_share(group: str, given: Mapping[str, object]) -> None:
    """Refuse options that have no meaning for a share group.

    Args:
        group: the group.
        given: the options that are not as by default, by their parameters.

    Raises:
        UsageError: there is one; it says what serves instead.
    """
    for name, (option, reason) in _REFUSED.items():
        if name in given:
            instead = reason.format(group=group)
            raise click.UsageError(f"--share has no {option}: {instead}")


def share_settings(group: str, count: int | None) -> dict[str, object]:
    """Return the options of the consumer that prints a number of records."""
    settings: dict[str, object] = {"group_id": group, "acknowledgement": "explicit"}
    if count is not None:
        # No more than are wanted: others need not wait for what is given back.
        settings |= {"acquire_mode": "record_limit"}
        settings |= {"max_in_flight": min(count, _AT_ONCE)}
    return settings


class SharePrinter:
    """Prints records of a share group, and accepts those that are printed.

    Args:
        sink: writes records, and flushes what it wrote.
        chooser: decodes them.
        progress: counts them.
        count: how many to print; None for no limit.
        rejects: whether records that cannot be decoded are rejected, and not released.
    """

    def __init__(
        self,
        sink: RecordSinkPort,
        chooser: RecordChooser,
        progress: ProgressBar,
        *,
        count: int | None,
        rejects: bool,
    ) -> None:
        self._sink = sink
        self._chooser = chooser
        self._progress = progress
        self._left = count
        self._rejects = rejects

    async def run(self, share: ShareConsumer) -> None:
        """Print until the number of records is reached, or until it is cancelled.

        Raises:
            CommandFailed: a record cannot be decoded; those before it are printed and
                accepted.
            RegistryError: the registry failed; nothing of the batch is printed.
        """
        async for batch in share.batches(max_records=_AT_ONCE):
            await self._print(batch)
            if self._left == 0:
                break

    async def _print(self, batch: ShareBatch) -> None:
        printed: list[ShareRecord] = []
        shown: list[ShownRecord] = []
        undecodable: list[ShareRecord] = []
        failure: UndecodableRecord | None = None
        for record in batch.records:
            if len(printed) == self._left:
                break
            try:
                found = [each async for each in self._chooser.chosen([record], None)]
            except UndecodableRecord as error:
                undecodable.append(record)
                failure = error
                break
            if not found:
                undecodable.append(record)
                continue
            printed.append(record)
            shown += found
        # If this fails, for example because nobody reads the output any more, nothing
        # is accepted, and leaving the loop releases the batch.
        self._sink.write(shown)
        self._progress.add(len(shown))
        self._decide(batch, printed, undecodable)
        if self._left is not None:
            self._left -= len(printed)
        if failure is not None:
            raise CommandFailed(str(failure)) from failure

    def _decide(
        self,
        batch: ShareBatch,
        printed: Sequence[ShareRecord],
        undecodable: Sequence[ShareRecord],
    ) -> None:
        for record in printed:
            # Others get it as well: it was printed too late to be accepted.
            if not record.is_lost:
                record.ack()
        if self._rejects:
            for record in undecodable:
                if not record.is_lost:
                    record.reject()
        batch.release()
