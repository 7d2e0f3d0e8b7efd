"""The task that finds a position for every partition that has none, and validates it.

Committed offsets are looked up first, all in one request. A partition without one is
reset by ``auto_offset_reset``, or by the policy for new partitions if it is one
(`NewcomerLookup`): each leader gets one request for all of its partitions, and the
leaders are asked at the same time, so that a slow one does not delay the partitions of
others. Partitions that fail together are retried together. A partition without a known
leader waits for metadata instead of a back-off.

A position that was found under another leader than the present one is validated in the
same way (KIP-320): the leader is asked where the epoch of the last record read ends in
its log. If that is before the position, the log has lost records that were read, and
the position goes back.

A partition that stays without a position (it has no leader, or the leader does not
answer) does not delay others. The look-up is repeated; once the partition is overdue,
the observer is notified of the reason, and `Consumer.start` stops waiting for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from kafkaio._client.fanout import Results
from kafkaio._client.offsets import OffsetLookup
from kafkaio._config import ConsumerConfig
from kafkaio._consumer.fetch.resets import NewcomerLookup
from kafkaio._machines.backoff import Backoff
from kafkaio._machines.offsets import OffsetLedger
from kafkaio._machines.positions import (
    Overdue,
    Positions,
    PositionStage,
    PositionToken,
    Reset,
    Unvalidated,
)
from kafkaio._runtime.clock import now, roll
from kafkaio._runtime.supervisor import Child
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.errors import AuthorizationError, KafkaError, KafkaTimeout, MembershipError
from kafkaio.types import OffsetAndMetadata, OffsetAndTimestamp, TopicPartition

if TYPE_CHECKING:
    from kafkaio._client.ports import ClusterPort
    from kafkaio._fetching.epochs import EpochEnd, EpochLookup

#: Looks committed offsets up, within some seconds; None where there is none.
FetchCommitted = Callable[
    [Collection[TopicPartition], float],
    Awaitable[Results[TopicPartition, OffsetAndMetadata | None]],
]

T = TypeVar("T")

_WHAT: Final = "look-up of positions"
#: Stands for the group coordinator, or the offset store, in place of a node id.
_COORDINATOR: Final = -1


class PositionedReaderPort(Protocol):
    """The reader, as far as positions concern it.

    Attributes:
        positions: has the partitions that need a position.
        ledger: takes the positions found.
    """

    positions: Positions
    ledger: OffsetLedger

    def fail(self, error: BaseException) -> None:
        """Raise an error from the user's next step."""

    def interrupt(self) -> None:
        """Make the user's next step notice a partition that cannot be read."""

    def truncated(self, tp: TopicPartition) -> None:
        """Note that the log lost records of a partition that were handed out."""


class Positioner:
    """Looks up committed offsets first, then the offsets of resets.

    Args:
        cluster: has the metadata, and sends requests.
        config: the consumer's options.
        reader: has the partitions that need a position.
        lookup: asks leaders for offsets.
        committed: looks committed offsets up; None without a group.
        newcomers: finds which partitions without a committed offset are new.
        on_found: called when a partition has its position.
        start_soon: starts a task in the background.
    """

    def __init__(  # noqa: PLR0913
        self,
        cluster: ClusterPort,
        config: ConsumerConfig,
        reader: PositionedReaderPort,
        lookup: OffsetLookup,
        committed: FetchCommitted | None,
        newcomers: NewcomerLookup,
        on_found: Callable[[], None],
        start_soon: Callable[[Child, str], None],
    ) -> None:
        self._cluster = cluster
        self._reader = reader
        self._lookup = lookup
        self._committed = committed
        self._newcomers = newcomers
        self._on_found = on_found
        self._start_soon = start_soon
        self._wakeup = Wakeup()
        # The look-ups under way: the kind, and the leader or _COORDINATOR.
        self._busy: set[tuple[str, int]] = set()
        self._overdue = Overdue()
        # The failure of the last look-up of each partition that still waits.
        self._failures: dict[TopicPartition, KafkaError] = {}
        # The number of the view for whose missing leaders a refresh was requested.
        self._asked_view = -1
        self._timeout = config.request_timeout_ms / 1000
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)

    def wake(self) -> None:
        """Check again whether a partition needs a position."""
        self._wakeup.notify()

    async def run(self) -> None:
        """Look positions up until cancelled."""
        positions = self._reader.positions
        while True:
            began_at = now()  # a retry that becomes due from here on is not missed
            if unpositioned := positions.unpositioned(began_at):
                load = partial(self._load_committed, unpositioned)
                self._ask("committed", _COORDINATOR, load)
            for leader, wanted in self._by_leader(positions.resetting(now())).items():
                self._ask("reset", leader, partial(self._reset, wanted))
            for leader, unvalidated in self._by_leader(self._unvalidated()).items():
                self._ask("validate", leader, partial(self._validate, unvalidated))
            self._report_overdue()
            due = positions.next_retry(began_at), self._overdue.next_report
            await self._wakeup.wait(
                min((time for time in due if time is not None), default=None)
            )

    def _ask(self, kind: str, node_id: int, question: Child) -> None:
        # One look-up of a kind per broker at a time: partitions that come later wait
        # for its end, and then go together.
        if (kind, node_id) in self._busy:
            return
        self._busy.add((kind, node_id))

        async def ask() -> None:
            try:
                await question()
            finally:
                self._busy.discard((kind, node_id))
            self._on_found()
            self.wake()

        whom = "the coordinator" if node_id == _COORDINATOR else f"broker {node_id}"
        self._start_soon(ask, f"{kind} positions at {whom}")

    def _report_overdue(self) -> None:
        waiting = self._reader.positions.waiting()
        late = self._overdue.update(waiting, now())
        self._failures = {tp: e for tp, e in self._failures.items() if tp in waiting}
        if late:
            self._report(late)
            self._on_found()  # reads stop waiting for these

    def _report(self, partitions: Collection[TopicPartition]) -> None:
        reasons = {tp: self.lack(tp) for tp in partitions}
        self._cluster.observer.positions_missing(reasons)

    def is_to_wait_for(self, found: Callable[[], bool]) -> bool:
        """Whether to wait for the partitions that have no position yet.

        Overdue partitions do not count if there is something else to read; partitions
        without authorization never count.

        Args:
            found: whether there is something else to read.
        """
        waiting = self._reader.positions.waiting()
        left = {tp: token for tp, token in waiting.items() if not self._is_refused(tp)}
        if not left:
            return False
        return not (self._overdue.has(left) and found())

    def _is_refused(self, tp: TopicPartition) -> bool:
        return isinstance(self._failures.get(tp), AuthorizationError)

    def report_missing(self) -> None:
        """Report partitions without a position before they are overdue.

        For a call whose time is over.
        """
        waiting = self._reader.positions.waiting()
        left = [tp for tp in waiting if not self._overdue.has({tp: waiting[tp]})]
        if left:
            self._report(left)

    def lacks(self) -> dict[TopicPartition, str]:
        """Return for each partition without a position why it has none."""
        return {tp: self.lack(tp) for tp in self._reader.positions.waiting()}

    def lack(self, tp: TopicPartition) -> str:
        """Return why a partition has no position, in words."""
        failure = self._failures.get(tp)
        why = "" if failure is None else f": {failure}"
        entry = self._reader.positions.get(tp)
        if entry is not None and entry.stage is PositionStage.UNPOSITIONED:
            return f"its committed offset is not known yet{why}"
        view = self._cluster.view.partition(tp)
        if view is None:
            return "the metadata does not have it"
        if view.leader < 0:
            return "it has no leader"
        if failure is None:
            return f"its leader, broker {view.leader}, has not answered yet"
        return f"its leader, broker {view.leader}, returned no offset{why}"

    def _unvalidated(self) -> dict[TopicPartition, Unvalidated]:
        # Records that were read under the present leader are in its log: no request.
        positions = self._reader.positions
        left: dict[TopicPartition, Unvalidated] = {}
        for tp, unvalidated in positions.validating(now()).items():
            view = self._cluster.view.partition(tp)
            leader_epoch = -1 if view is None else view.leader_epoch
            if view is None or leader_epoch not in {-1, unvalidated.epoch}:
                left[tp] = unvalidated
                continue
            positions.validated(tp, unvalidated.token, leader_epoch)
            self._on_found()
        return left

    def _by_leader(
        self, items: Mapping[TopicPartition, T]
    ) -> dict[int, dict[TopicPartition, T]]:
        cluster = self._cluster.view
        by_leader: dict[int, dict[TopicPartition, T]] = defaultdict(dict)
        leaderless: set[str] = set()
        for tp, wanted in items.items():
            leader = cluster.leader(tp)
            if leader is None:
                leaderless.add(tp.topic)
            else:
                by_leader[leader][tp] = wanted
        if leaderless and self._asked_view != cluster.number:
            # Each new view wakes this task: one refresh is requested for each.
            self._asked_view = cluster.number
            self._cluster.request_refresh(*sorted(leaderless))
        return by_leader

    async def _load_committed(
        self, tokens: Mapping[TopicPartition, PositionToken]
    ) -> None:
        assert self._committed is not None  # else nothing waits for a commit
        try:
            offsets = await self._committed(list(tokens), self._timeout)
        # As if each had failed: the partitions are retried, and the user is informed.
        except KafkaError as error:
            offsets = Results()
            offsets.fail(tokens, error)
        self._fail(offsets.failed)
        failures = {**offsets.failed, **offsets.again}
        self._retry({(tp, tokens[tp]): e for tp, e in failures.items() if tp in tokens})
        missing: dict[TopicPartition, PositionToken] = {}
        for tp, token in tokens.items():
            found = offsets.found.get(tp)
            if found is not None:
                self._on_committed(tp, token, found)
            elif tp not in failures:
                missing[tp] = token
        if missing:
            await self._on_uncommitted(missing)

    def _fail(self, failed: Mapping[TopicPartition, KafkaError]) -> None:
        # One error per topic and type: its partitions are refused for the same reason.
        # Several topics may even share one error object, which is raised once.
        by_topic: dict[tuple[type[KafkaError], str], TopicPartition] = {}
        for tp, error in failed.items():
            by_topic.setdefault((type(error), tp.topic), tp)
        first = {id(failed[tp]): tp for tp in reversed(by_topic.values())}
        for tp in first.values():
            error = failed[tp]
            # Transient: a time-out is retried, a member that was removed joins again.
            if not isinstance(error, KafkaTimeout | MembershipError):
                error.add_note(f"loading the committed offset of {tp}")
                self._reader.fail(error)

    async def _on_uncommitted(
        self, missing: Mapping[TopicPartition, PositionToken]
    ) -> None:
        reader = self._reader
        why = KafkaError("the metadata does not have its topic yet")
        try:
            are_new = await self._newcomers.among(missing)
        except KafkaError as error:
            if not error.retriable:
                self._fail(dict.fromkeys(missing, error))
            are_new, why = {}, error
        for tp, is_new in are_new.items():
            if reader.positions.committed_missing(tp, missing[tp], is_new=is_new):
                reader.interrupt()
        left = missing.keys() - are_new.keys()
        self._retry({(tp, missing[tp]): why for tp in missing if tp in left})

    def _on_committed(
        self, tp: TopicPartition, token: PositionToken, found: OffsetAndMetadata
    ) -> None:
        reader = self._reader
        epoch = found.leader_epoch
        if epoch >= 0:
            self._cluster.learned_epoch(tp, epoch)
        if reader.positions.committed_found(tp, token, found.offset, epoch):
            reader.ledger.positioned(tp, found.offset, epoch, committed=True)

    async def _reset(
        self, wanted: Mapping[TopicPartition, tuple[PositionToken, Reset]]
    ) -> None:
        result = await self._lookup.resets(
            {tp: reset for tp, (_, reset) in wanted.items()}, within=self._timeout
        )
        self._take(wanted, result)

    def _take(
        self,
        wanted: Mapping[TopicPartition, tuple[PositionToken, Reset]],
        result: Results[TopicPartition, OffsetAndTimestamp | None],
    ) -> None:
        reader = self._reader
        left: dict[TopicPartition, PositionToken] = {}
        for tp, (token, _) in wanted.items():
            found = result.found.get(tp)
            if found is None:
                left[tp] = token
            elif reader.positions.reset_found(tp, token, found.offset):
                reader.ledger.positioned(tp, found.offset, committed=False)
        self._not_found(left, result)

    def _not_found(
        self,
        tokens: Mapping[TopicPartition, PositionToken],
        result: Results[TopicPartition, T],
    ) -> None:
        # The user gets the errors that a retry cannot cure. The partitions are retried
        # all the same, because somebody may remove the cause, such as a missing right.
        failures: dict[tuple[TopicPartition, PositionToken], KafkaError] = {}
        for tp, token in tokens.items():
            error = result.failed.get(tp)
            if error is not None:
                self._reader.fail(error)
            else:
                missing = KafkaError(f"{tp} has no offset to begin at")
                error = result.again.get(tp, missing)
            failures[tp, token] = error
        self._retry(failures)

    @cached_property
    def _epochs(self) -> EpochLookup:
        # Needed once a leader has changed.
        from kafkaio._fetching.epochs import EpochLookup

        return EpochLookup(self._cluster, self._timeout)

    async def _validate(self, wanted: Mapping[TopicPartition, Unvalidated]) -> None:
        epochs = {tp: unvalidated.epoch for tp, unvalidated in wanted.items()}
        result = await self._epochs.ask(epochs)
        left: dict[TopicPartition, PositionToken] = {}
        for tp, unvalidated in wanted.items():
            if tp in result.found:
                self._on_epoch_end(tp, unvalidated, result.found[tp])
            else:
                left[tp] = unvalidated.token
        self._not_found(left, result)

    def _on_epoch_end(
        self, tp: TopicPartition, unvalidated: Unvalidated, end: EpochEnd | None
    ) -> None:
        reader, token = self._reader, unvalidated.token
        if end is None or end.offset >= unvalidated.offset:
            # A broker older than 2.3 cannot answer: the position counts as valid.
            view = self._cluster.view.partition(tp)
            asked = -1 if view is None else view.leader_epoch
            epoch = asked if end is None else end.leader_epoch
            reader.positions.validated(tp, token, epoch)
            return
        cut = reader.positions.diverged(
            tp, token, end.offset, end.epoch, end.leader_epoch
        )
        if cut is None:
            return
        # The ledger goes back, too: an offset beyond the end of the log must not be
        # committed.
        if reader.positions[tp].position >= 0:
            reader.ledger.positioned(tp, end.offset, end.epoch, committed=False)
        else:
            reader.ledger.unpositioned(tp)
        reader.truncated(tp)

    def _retry(
        self, failures: Mapping[tuple[TopicPartition, PositionToken], KafkaError]
    ) -> None:
        # One random number for all: partitions that failed together are retried in one
        # request.
        moment, dice = now(), roll()
        reported: set[int] = set()
        self._failures |= {tp: error for (tp, _), error in failures.items()}
        for (tp, token), error in failures.items():
            entry = self._reader.positions.get(tp)
            if entry is None or entry.token != token:
                continue
            attempt = entry.attempts
            delay = self._backoff.delay(attempt, dice)
            self._reader.positions.retry_later(tp, token, moment + delay)
            if attempt not in reported:
                reported.add(attempt)
                self._cluster.observer.retrying(_WHAT, attempt + 1, delay, error)
