"""Where a consumer reads, and what it commits: the half of `Consumer` about offsets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias

from kafkaio._machines.offsets import Commit
from kafkaio._machines.positions import Reset, ResetTo
from kafkaio._runtime.clock import now
from kafkaio._runtime.unclosed import Closeable
from kafkaio.config.checks import iso_duration_ms
from kafkaio.consumer.batch import Batch
from kafkaio.consumer.engine import Engine
from kafkaio.consumer.fetch.lookup import EARLIEST, LATEST
from kafkaio.consumer.presence import wait_for_partitions
from kafkaio.errors import ClosedError, PartitionLost, RequestTimeout, UsageError
from kafkaio.types import (
    OffsetAndMetadata,
    OffsetAndTimestamp,
    Record,
    TopicPartition,
)

__all__ = ["Places", "RewindTo", "ToCommit"]

#: What may be committed: a record or batch that is done, or offsets of next records.
ToCommit: TypeAlias = Record | Batch | Mapping[TopicPartition, int | OffsetAndMetadata]

#: Where a group may be rewound to.
RewindTo: TypeAlias = int | OffsetAndMetadata | str


class Places(Closeable):
    """What `Consumer` offers about offsets.

    Args:
        engine: the consumer's inner works.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._reader = engine.reader
        self._timeout = engine.config.default_api_timeout_ms / 1000

    def _left_open(self) -> str | None:
        engine: Engine | None = getattr(self, "_engine", None)
        return None if engine is None else engine.left_open

    def _forgotten(self) -> None:
        engine = self._engine
        if engine.home is not None:
            engine.home.soon(engine.abandon)

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions assigned now."""
        return frozenset(self._reader.positions)

    # Where to read

    async def position(
        self,
        partition: TopicPartition,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> int:
        """Offset of the next record to be handed out, once it is known.

        A partition that the group has asked back has one until it is given up.

        Raises:
            UsageError: the partition is not assigned.
            RequestTimeout: it is not known in time.
            OffsetOutOfRange: there is none, and no policy to find one.
        """
        tp = TopicPartition(*partition)
        return await self._position(tp, self._within(timeout))

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Read on at an offset; it takes effect with the next record handed out.

        Raises:
            UsageError: the partition is not assigned, or the offset is negative.
        """
        (tp,) = self._assigned([partition])
        where = _checked(offset)
        self._reader.seek(tp, where.offset, where.leader_epoch)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Read on at the first record kept, of these or of all partitions."""
        for tp in self._assigned(partitions or self.assignment):
            self._reader.seek_to(tp, Reset(ResetTo.EARLIEST))

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Read on after the last record, of these or of all partitions."""
        for tp in self._assigned(partitions or self.assignment):
            self._reader.seek_to(tp, Reset(ResetTo.LATEST))

    async def offsets_for_times(
        self,
        times: Mapping[TopicPartition, int],
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first offset of each partition whose record is not older than a time.

        Args:
            times: milliseconds since the Unix epoch.
            timeout: seconds, ``default_api_timeout_ms`` by default.

        Returns:
            None where every record is older.

        Raises:
            UnknownTopicOrPartition: there is no such partition.
            RequestTimeout: time ran out.
        """
        if any(time < 0 for time in times.values()):
            raise UsageError("times are milliseconds since 1970, and not negative")
        chosen = {TopicPartition(*tp): time for tp, time in times.items()}
        return await self._look_up(chosen, self._within(timeout))

    async def beginning_offsets(
        self,
        partitions: Collection[TopicPartition],
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> dict[TopicPartition, int]:
        """Offset of the first record kept, of any partitions.

        Raises:
            UnknownTopicOrPartition: there is no such partition.
            RequestTimeout: time ran out.
        """
        return await self._ends(partitions, EARLIEST, timeout)

    async def end_offsets(
        self,
        partitions: Collection[TopicPartition],
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> dict[TopicPartition, int]:
        """Offset after the last record that can be read, of any partitions.

        With ``read_committed`` that is the last stable offset.

        Raises:
            UnknownTopicOrPartition: there is no such partition.
            RequestTimeout: time ran out.
        """
        return await self._ends(partitions, LATEST, timeout)

    async def lag(
        self,
        *partitions: TopicPartition,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> dict[TopicPartition, int]:
        """How many offsets the position is behind the end, as the leaders say now.

        Args:
            partitions: assigned ones; all that are assigned by default.
            timeout: seconds, ``default_api_timeout_ms`` by default.
        """
        deadline = now() + self._within(timeout)
        chosen = self._assigned(partitions or self.assignment)
        ends = await self._ends(chosen, LATEST, deadline - now())
        return {
            tp: max(0, ends[tp] - await self._position(tp, deadline - now()))
            for tp in chosen
            if tp in self._reader.positions
        }

    # Offsets of the group

    async def commit(
        self,
        what: ToCommit | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> None:
        """Commit offsets for the group; returns when the coordinator has them.

        Commits take effect in the order of the calls; those called for while one is on
        its way go out together, and each is told of its own partitions. If the call is
        cancelled, the offsets may be committed all the same. One whose connection broke
        may come through late, and set back what was committed after it: Kafka tells the
        two apart by the generation of the group only.

        With ``enable_auto_commit``, what is committed here of a partition stands until
        something more of it is finished.

        Args:
            what: a record or batch that is done, which commits the offset after it;
                or offsets of the next record by partition; or None for every record
                that is finished, which leaves out those handed out last. Who is no
                member (after `unsubscribe`, say) may commit any offsets while the group
                has no members at all.
            timeout: seconds, ``default_api_timeout_ms`` by default.

        Raises:
            PartitionLost: a partition does not belong to this consumer any more.
            RebalanceInProgress: read on to take part in it, then commit again.
            CommitFailed: the group has moved on without this member.
            BrokerError: the coordinator refused for another reason.
            RequestTimeout: time ran out; the offsets may be committed all the same.
            UsageError: there is no group, or ``what`` is nothing that can be committed.
        """
        engine = self._engine
        try:
            engine.check(is_parting_ok=True)
        except ClosedError:
            engine.host.fence_lost(_partitions(what))
            raise
        if what is None:
            await engine.commit_finished(self._within(timeout))
            return
        commit = self._commit_of(what)
        engine.host.fence(commit.offsets)
        await engine.commit(commit, self._within(timeout))

    async def committed(
        self,
        partitions: Collection[TopicPartition] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What is committed for the group; None where nothing is.

        Args:
            partitions: any partitions; those assigned by default.
            timeout: seconds, ``default_api_timeout_ms`` by default.

        Raises:
            BrokerError: the coordinator refused.
            RequestTimeout: time ran out.
            UsageError: there is no group.
        """
        engine = self._engine
        engine.check(is_parting_ok=True)
        named = self.assignment if partitions is None else partitions
        chosen = [TopicPartition(*tp) for tp in named]
        committer = engine.group_committer()
        if not chosen:
            return {}
        return dict(await committer.fetch(chosen, timeout=self._within(timeout)))

    async def rewind(
        self,
        to: Mapping[TopicPartition, RewindTo],
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> None:
        """Move the whole group to other offsets while it runs, back or ahead.

        Whoever owns the partitions gives them up as in any rebalance: work on their
        records is finished, holds and delays count, `RevokeRequested` and `Revoked`
        tell of it. While nobody has them the offsets are committed; then they are
        given out again. So when this returns, each record of them that any member is
        handed comes from there on, and no commit of an old owner can follow. What
        was paused comes back unpaused. ``offset_store`` has to be shared by members.

        Called in the task that reads, this counts as done with what it was handed,
        which is not finished by that. Do not call it where a partition to be moved is
        worked on by `run` or `partitions`: that work would wait for itself.

        Where the brokers divide a group (KIP-848) a member can move what it owns, and
        in a classic group the member that leads has to be of kafkaio; the others may
        be of any client. If cancelled, the offsets may be committed all the same.

        Args:
            to: offsets of the next records to read; or ``earliest``, ``latest`` or
                ``by_duration:``, as for ``auto_offset_reset``.
            timeout: seconds, ``default_api_timeout_ms`` by default.

        Raises:
            RewindRefused: the owners cannot be asked.
            UnknownTopicOrPartition: there is no such partition.
            RequestTimeout: they did not give them up in time; nothing was moved.
            BrokerError: the coordinator refused the commit.
            OffsetStoreError: the ``offset_store`` failed.
            UsageError: nothing is subscribed to as a member of a group, or an offset
                cannot be.
        """
        engine = self._engine
        engine.check()
        if engine.rewinder is None or not engine.wish.is_subscription:
            raise UsageError("only a group that is subscribed to topics can be rewound")
        deadline = now() + self._within(timeout)
        offsets = await self._targets(to, deadline)
        if offsets:
            with engine.host.rewinding():
                await engine.rewinder.rewind(offsets, deadline - now())

    async def _targets(
        self, to: Mapping[TopicPartition, RewindTo], deadline: float
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        resets = dict[TopicPartition, Reset]()
        offsets = dict[TopicPartition, OffsetAndMetadata]()
        for tp, place in to.items():
            if not isinstance(place, str):
                offsets[TopicPartition(*tp)] = _checked(place)
            elif (reset := _reset_of(place)) is not None:
                resets[TopicPartition(*tp)] = reset
            else:
                raise UsageError(f"{place!r} is no place to rewind to")
        engine, wanted = self._engine, [*offsets, *resets]
        await wait_for_partitions(engine.client, wanted, deadline - now())
        found = await engine.lookup.places(resets, within=deadline - now())
        return offsets | {tp: OffsetAndMetadata(at) for tp, at in found.items()}

    async def _position(self, tp: TopicPartition, within: float) -> int:
        engine, reader, deadline = self._engine, self._reader, now() + within
        while True:
            reader.sync()
            entry = reader.positions.get(tp)
            if entry is None:
                raise UsageError(f"{tp.topic}-{tp.partition} is not assigned")
            if entry.position >= 0:
                window = reader.window
                untaken = None if window is None else window.next_offset(tp)
                return entry.position if untaken is None else untaken
            engine.check()
            reader.raise_stranded(tp)
            if not await engine.repositioned(deadline):
                raise RequestTimeout(
                    f"the position of {tp.topic}-{tp.partition} is not known yet"
                )

    def _within(self, timeout: float | None) -> float:
        return self._timeout if timeout is None else timeout

    def _assigned(self, partitions: Collection[TopicPartition]) -> list[TopicPartition]:
        for tp in partitions:
            if tp not in self._reader.positions:
                raise UsageError(f"{tp[0]}-{tp[1]} is not assigned to this consumer")
        return [TopicPartition(*tp) for tp in partitions]

    async def _look_up(
        self, times: Mapping[TopicPartition, int], within: float
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        engine = self._engine
        engine.check(is_parting_ok=True)
        deadline = now() + within
        await wait_for_partitions(engine.client, times, within)
        return await engine.lookup.offsets(times, within=deadline - now())

    async def _ends(
        self, partitions: Iterable[TopicPartition], which: int, within: float | None
    ) -> dict[TopicPartition, int]:
        times = {TopicPartition(*tp): which for tp in partitions}
        found = await self._look_up(times, self._within(within))
        return {tp: end.offset for tp, end in found.items() if end is not None}

    def _commit_of(self, what: ToCommit) -> Commit:
        sharing = self._reader.sharing
        if not (isinstance(what, Mapping) or sharing is None or sharing.has_order):
            raise UsageError(
                "run() commits by itself, in order: that a record is done says nothing "
                "of those before it"
            )
        self._reader.sync()
        ledger = self._reader.ledger
        if isinstance(what, Batch):
            tp = what.topic_partition
            if what.assignment != ledger.number(tp):
                raise PartitionLost(
                    f"{tp.topic}-{tp.partition} was taken since the batch was read"
                )
            what = what.last
        if isinstance(what, Record):
            self._engine.host.fence_record(what)
            after = OffsetAndMetadata(what.offset + 1, leader_epoch=what.leader_epoch)
            return ledger.commit_of({what.topic_partition: after})
        if not isinstance(what, Mapping):
            raise UsageError(
                f"commit() takes a record, a batch or offsets by partition, and no "
                f"{type(what).__name__}"
            )
        return ledger.commit_of(
            {TopicPartition(*tp): _next_record(at) for tp, at in what.items()}
        )


def _partitions(what: ToCommit | None) -> Collection[TopicPartition]:
    if isinstance(what, Record | Batch):
        return {what.topic_partition}
    return {TopicPartition(*tp) for tp in what or ()}


def _reset_of(place: str) -> Reset | None:
    kind, _, duration = place.partition(":")
    is_junk = kind == "by_duration" and iso_duration_ms(duration) is None
    return None if is_junk else Reset.of(place)


def _checked(offset: int | OffsetAndMetadata) -> OffsetAndMetadata:
    where = _next_record(offset)
    if where.offset < 0:
        raise UsageError(f"there is no offset {where.offset} to read at")
    return where


def _next_record(offset: int | OffsetAndMetadata) -> OffsetAndMetadata:
    return OffsetAndMetadata(offset) if isinstance(offset, int) else offset
