"""A process whose members copy records in transactions; see `tests.torture.worker`.

The process has one transactional id, and at most one member at a time.
"""

from __future__ import annotations

import argparse
import asyncio
import random
from collections.abc import Awaitable
from pathlib import Path
from typing import Final

from kafkaio import Consumer, Producer, Record
from kafkaio._producer.transaction import Transaction
from kafkaio.errors import Fenced
from tests.torture.confluent import copy as copy_with_confluent
from tests.torture.copying import MISTAKES, WAYS, Hiccup, another_try
from tests.torture.journal import Journal, Watch
from tests.torture.plan import JOIN_SECONDS, TRANSACTION_SECONDS, Job, Settings
from tests.torture.worker import run

_HICCUPS: Final = 0.02
_MISTAKEN_HICCUPS: Final = 0.2
_RETRY_SECONDS: Final = 0.2


class Copier:
    """A member that copies records, from its start to its end.

    Args:
        name: what it is called in the journal.
        style: how it works.
        settings: what all members have in common.
        job: what it copies.
        journal: where it tells what it does.
        turn: taken by the member of the process that lives.
    """

    def __init__(
        self,
        name: str,
        style: str,
        settings: Settings,
        job: Job,
        journal: Journal,
        turn: asyncio.Lock,
    ) -> None:
        self.name = name
        self.stopping = asyncio.Event()
        self.settings = settings
        self.job = job
        self._style = style
        self._journal = journal
        self._turn = turn
        self._rng = random.Random(f"{settings.seed} {name}")
        self._stall = 0.0

    def stall(self, seconds: float) -> None:
        """Make the next work take that long."""
        self._stall = seconds

    def tell(self, word: str, *details: object) -> None:
        self._journal.write(self.name, word, *details)

    def value(self, value: bytes) -> bytes:
        """The value of the copy of a record."""
        return b"%s %s" % (value, self.name.encode())

    def draw_pause(self, share: float = 1.0) -> float:
        """Draw how long the work takes.

        Args:
            share: the part of a transaction that this work is.

        Raises:
            Hiccup: it fails.
        """
        stall, self._stall = self._stall, 0.0
        if stall:
            self.tell("stalling", f"{stall:.1f}")
        hiccups = _MISTAKEN_HICCUPS if self.job.sabotage else _HICCUPS
        if self._rng.random() < hiccups * share:
            raise Hiccup
        return stall or self._rng.choice((0, 0, 0, 0.001, 0.01))

    async def work(self, share: float = 1.0) -> None:
        await asyncio.sleep(self.draw_pause(share))

    def copy(self, tx: Transaction, record: Record) -> Awaitable[object]:
        assert record.key is not None
        assert record.value is not None
        return tx.enqueue(
            self.job.output,
            self.value(record.value),
            key=record.key,
            partition=int(record.key) % self.job.partitions,
        )

    async def live(self, protocol: str) -> None:
        """Run the member until it is told to leave, or is fenced."""
        async with self._turn:
            self.tell("joining", self._style, protocol)
            try:
                if self.job.client == "confluent":
                    await copy_with_confluent(self, protocol)
                else:
                    await self._copy(protocol)
            except Fenced as error:
                self.tell("fenced", error)
            else:
                self.tell("left")

    async def _copy(self, protocol: str) -> None:
        options = self.settings.options(protocol)
        options |= {"client_id": self.name, "enable_auto_commit": False}
        options["isolation_level"] = "read_committed"
        way = MISTAKES.get(self.job.sabotage) or WAYS[self._style]
        while not self.stopping.is_set():
            consumer = Consumer(
                self.settings.bootstrap,
                topics=self.settings.topic,
                observer=Watch(self._journal, self.name),
                **options,
            )
            producer = Producer(
                self.settings.bootstrap,
                client_id=self.name,
                transactional_id=self.job.transactional_id,
                transaction_timeout_ms=round(TRANSACTION_SECONDS * 1000),
            )
            try:
                with another_try(self):
                    await producer.start(JOIN_SECONDS)
                    await consumer.start(JOIN_SECONDS)
                    self.tell("joined")
                    await way(self, consumer, producer)
            finally:
                await consumer.close()
                await producer.close()
            if not self.stopping.is_set():
                await asyncio.sleep(_RETRY_SECONDS)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("settings", type=Settings.loads)
    parser.add_argument("journal", type=Path)
    parser.add_argument("job", type=Job.loads)
    args = parser.parse_args()
    settings, job, journal = args.settings, args.job, Journal(args.journal)
    turn = asyncio.Lock()

    def make(name: str, style: str) -> Copier:
        return Copier(name, style, settings, job, journal, turn)

    asyncio.run(run(settings, journal, make))
    journal.close()


if __name__ == "__main__":
    main()
