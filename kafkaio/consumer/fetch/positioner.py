"""The task that finds a position for every partition that has none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Final

from kafkaio._machines.backoff import Backoff
from kafkaio._machines.positions import Reset, Token
from kafkaio._runtime.clock import now, roll
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.client.client import Client
from kafkaio.consumer.fetch.lookup import OffsetLookup
from kafkaio.consumer.reader import Reader
from kafkaio.errors import KafkaError, KafkaTimeout, MembershipError
from kafkaio.types import OffsetAndMetadata, TopicPartition

__all__ = ["FetchCommitted", "Positioner"]

#: Looks committed offsets up: None where there is none.
FetchCommitted = Callable[
    [Collection[TopicPartition], float],
    Awaitable[Mapping[TopicPartition, OffsetAndMetadata | None]],
]

_WHAT: Final = "look-up of positions"


class Positioner:
    """Looks up committed offsets first, then what the reset policy asks for.

    Args:
        client: the way to the cluster.
        reader: knows which partitions need a position.
        lookup: asks leaders for offsets.
        committed: looks committed offsets up; None without a group.
        on_found: called when a partition got its position.
    """

    def __init__(
        self,
        client: Client,
        reader: Reader,
        lookup: OffsetLookup,
        committed: FetchCommitted | None,
        on_found: Callable[[], None],
    ) -> None:
        self._client = client
        self._reader = reader
        self._lookup = lookup
        self._committed = committed
        self._on_found = on_found
        self._wakeup = Wakeup()
        config = client.config
        self._timeout = config.request_timeout_ms / 1000
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)

    def wake(self) -> None:
        """Look again whether a partition needs a position."""
        self._wakeup.notify()

    async def run(self) -> None:
        """Look positions up until cancelled."""
        positions = self._reader.positions
        while True:
            unpositioned = positions.unpositioned(now())
            if unpositioned:
                await self._load_committed(unpositioned)
            resetting = positions.resetting(now())
            if resetting:
                await self._reset(resetting)
            if unpositioned or resetting:
                self._on_found()
                continue
            await self._wakeup.wait(positions.next_retry(now()))

    async def _load_committed(self, tokens: Mapping[TopicPartition, Token]) -> None:
        assert self._committed is not None  # else nothing waits for a commit
        try:
            offsets = await self._committed(list(tokens), self._timeout)
        except KafkaError as error:
            # A member that was thrown out asks again when it has joined again.
            if not isinstance(error, KafkaTimeout | MembershipError):
                passes = error.retriable
                for tp in [] if passes else list(tokens)[:1]:
                    error.add_note(f"loading the committed offset of {tp}")
                    self._reader.fail(error)
            for tp, token in tokens.items():
                self._retry(tp, token, error)
            return
        for tp, token in tokens.items():
            self._on_committed(tp, token, offsets.get(tp))

    def _on_committed(
        self, tp: TopicPartition, token: Token, found: OffsetAndMetadata | None
    ) -> None:
        reader = self._reader
        if found is None:
            if reader.positions.committed_missing(tp, token):
                reader.must_look()
            return
        epoch = found.leader_epoch
        if epoch >= 0:
            self._client.learned_epoch(tp, epoch)
        if reader.positions.committed_found(tp, token, found.offset, epoch):
            reader.ledger.positioned(tp, found.offset, epoch, committed=True)

    async def _reset(
        self, wanted: Mapping[TopicPartition, tuple[Token, Reset]]
    ) -> None:
        reader = self._reader
        result = await self._lookup.resets(
            {tp: reset for tp, (_, reset) in wanted.items()}, within=self._timeout
        )
        for tp, (token, _) in wanted.items():
            found = result.found.get(tp)
            if found is not None:
                if reader.positions.reset_found(tp, token, found.offset):
                    reader.ledger.positioned(tp, found.offset, committed=False)
            elif tp in result.failed:
                reader.fail(result.failed[tp])
                self._retry(tp, token, result.failed[tp])
            else:
                missing = KafkaError(f"{tp} has no offset to begin at")
                self._retry(tp, token, result.again.get(tp, missing))

    def _retry(self, tp: TopicPartition, token: Token, error: KafkaError) -> None:
        entry = self._reader.positions.get(tp)
        if entry is None or entry.token != token:
            return
        delay = self._backoff.delay(entry.attempts, roll())
        self._reader.positions.retry_later(tp, token, now() + delay)
        self._client.observer.retrying(_WHAT, entry.attempts, delay, error)
