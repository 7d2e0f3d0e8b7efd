"""Where a consumer reads, and what it commits: the half of `Consumer` about offsets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

from kafkaio._machines.offsets import Commit
from kafkaio._machines.positions import Reset, ResetTo
from kafkaio._runtime.clock import now
from kafkaio._runtime.unclosed import Closeable
from kafkaio.config.configs import iso_duration_ms
from kafkaio.consumer.arguments import offset_of, partition_of
from kafkaio.consumer.batch import Batch
from kafkaio.consumer.core import Core
from kafkaio.consumer.fetch.answers import LogEnds
from kafkaio.consumer.fetch.lookup import EARLIEST, LATEST
from kafkaio.errors import ClosedError, PartitionLost, RequestTimeout, UsageError
from kafkaio.protocol.broker_errors import broker_error
from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafkaio.types import (
    OffsetAndMetadata,
    OffsetAndTimestamp,
    Record,
    TopicPartition,
)

if TYPE_CHECKING:
    from kafkaio.consumer.threaded.handoff import Moment

__all__ = ["Places", "RewindTo", "ToCommit"]

#: What may be committed: a record or batch that is done, offsets of next records, or
#: partitions of which everything that was handed out is done.
ToCommit: TypeAlias = (
    Record
    | Batch
    | Mapping[TopicPartition, int | OffsetAndMetadata]
    | TopicPartition
    | Collection[TopicPartition]
)

#: Where a group may be rewound to.
RewindTo: TypeAlias = int | OffsetAndMetadata | str


class Places(Closeable):
    """What `Consumer` offers about offsets.

    Args:
        core: the consumer's inner works.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._reader = core.reader
        self._timeout = core.config.default_api_timeout_ms / 1000

    def _left_open(self) -> str | None:
        core: Core | None = getattr(self, "_core", None)
        return None if core is None else core.left_open

    def _forgotten(self) -> None:
        core = self._core
        if core.home is not None:
            core.home.soon(core.abandon)

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions assigned now; none of a subscription that has ended.

        What `unsubscribe` gives up is not among them from that call on, though
        ``on_revoked``, which is called a little later, may still commit for it.
        """
        return self._core.assigned.assignment

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
        tp = partition_of(partition)
        return await self._position(tp, self._within(timeout))

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Read on at an offset; it takes effect with the next record handed out.

        Raises:
            UsageError: the partition is not assigned, or the offset is negative.
        """
        (tp,) = self._assigned([partition])
        where = _readable(offset)
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
        values: Iterable[object] = times.values()
        if not all(isinstance(time, int) and time >= 0 for time in values):
            raise UsageError("times are milliseconds since 1970, and not negative")
        chosen = {partition_of(tp): time for tp, time in times.items()}
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

    # What fetches told, without asking anybody

    def high_watermark(self, partition: TopicPartition) -> int | None:
        """Offset after the last record of a partition that consumers may see.

        As the last fetch of the partition told, so it is known once the partition was
        fetched, and is out of date while it is not (paused, or being revoked):
        `end_offsets` asks the leader. None before the first fetch was answered.

        Raises:
            UsageError: the partition is not assigned.
        """
        ends = self._ends_told(partition)
        return None if ends is None or ends.high_watermark < 0 else ends.high_watermark

    def last_stable_offset(self, partition: TopicPartition) -> int | None:
        """Offset of the first record of a transaction that is still open.

        Where none is open that is the high watermark. With ``read_committed`` nothing
        from there on is handed out. Known as `high_watermark` is.

        Raises:
            UsageError: the partition is not assigned.
        """
        ends = self._ends_told(partition)
        return None if ends is None or ends.last_stable < 0 else ends.last_stable

    def current_lag(self, partition: TopicPartition) -> int | None:
        """How many offsets the position is behind the end, as the last fetch told.

        The end is the high watermark, or the last stable offset with
        ``read_committed``; the position is that of `position`. None before the first
        fetch was answered, and while there is no position. `lag` asks the leaders.

        Raises:
            UsageError: the partition is not assigned.
        """
        ends, at = self._ends_told(partition), self._place(TopicPartition(*partition))
        if ends is None or at < 0:
            return None
        committed = self._core.config.isolation_level == "read_committed"
        end = ends.last_stable if committed else ends.high_watermark
        return None if end < 0 else max(0, end - at)

    def _ends_told(self, partition: TopicPartition) -> LogEnds | None:
        (tp,) = self._assigned([partition])
        return self._core.fetcher.ends_of(tp)

    def _place(self, tp: TopicPartition) -> int:
        # The position, -1 while there is none.
        reader = self._reader
        reader.sync()
        entry = reader.positions.get(tp)
        if entry is None:
            raise UsageError(f"{tp.topic}-{tp.partition} is not assigned")
        untaken = None if reader.window is None else reader.window.next_offset(tp)
        return entry.position if untaken is None or entry.position < 0 else untaken

    # What topics there are

    async def topics(
        self,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> frozenset[str]:
        """Names of all topics that this client may see, asked of a broker now.

        Internal ones are among them with ``exclude_internal_topics=False``.

        Raises:
            RequestTimeout: nobody could be asked in time.
            ClosedError: the consumer is not running.
        """
        core = self._core
        core.check(is_parting_ok=True)
        request = MetadataRequest(topics=None)
        answer = await core.cluster.request(request, timeout=self._within(timeout))
        hides_internal = core.config.exclude_internal_topics
        return frozenset(
            topic.name
            for topic in answer.topics
            if topic.name is not None and not (topic.is_internal and hides_internal)
        )

    async def partitions_for_topic(
        self,
        topic: str,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> frozenset[int]:
        """Numbers of a topic's partitions, asked of a broker now; it creates no topic.

        Raises:
            UnknownTopicOrPartition: there is no such topic.
            AuthorizationError: the topic may not be described to this client.
            BrokerError: no topic can have that name.
            RequestTimeout: nobody could be asked in time.
            ClosedError: the consumer is not running.
        """
        core = self._core
        core.check(is_parting_ok=True)
        wanted = [MetadataRequestTopic(name=topic)]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        answer = await core.cluster.request(request, timeout=self._within(timeout))
        for found in answer.topics:
            if found.error_code not in {0, ErrorCode.LEADER_NOT_AVAILABLE}:
                raise broker_error(found.error_code, f"partitions of topic {topic!r}")
        return frozenset(p.partition_index for t in answer.topics for p in t.partitions)

    # Offsets of the group

    async def commit(
        self,
        what: ToCommit | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> None:
        """Commit offsets for the group; returns when the coordinator has them.

        Without arguments, everything that was handed out so far is committed, as by
        Java's ``commitSync()``: calling it says that all of it is done, and automatic
        commits go on from there. A program that works on several partitions at once
        names those that it is done with, ``commit(partitions)``. While `run` is at
        work, its handlers say what is done: both commit only up to the first record
        of a partition whose handler has not ended. `partitions` divides the records
        as well: ``commit()`` covers what all lanes have handed out, `Lane.commit`
        that of one lane.

        Commits take effect in the order of the calls; those called for while one is on
        its way go out together, and each is told of its own partitions. If the call is
        cancelled, the offsets may be committed all the same. One whose connection broke
        may come through late, and set back what was committed after it: Kafka tells the
        two apart by the generation of the group only.

        With ``enable_auto_commit``, what is committed here of a partition stands until
        something more of it is finished.

        Args:
            what: None for everything that was handed out; or partitions of which
                everything that was handed out is done, a single one or a collection;
                or a record or batch that is done, which commits the offset after it;
                or offsets of the next record by partition. A consumer that is not a
                member (for example after `unsubscribe`) can commit offsets of any
                partition while the group has no members.
            timeout: seconds, ``default_api_timeout_ms`` by default.

        Raises:
            PartitionLost: a partition does not belong to this consumer any more.
            RebalanceInProgress: read on to take part in it, then commit again.
            CommitFailed: the group has moved on without this member.
            BrokerError: the coordinator refused for another reason.
            RequestTimeout: time ran out; the offsets may be committed all the same.
            UsageError: there is no group, a partition is named alone that is not
                assigned, or ``what`` is nothing that can be committed.
        """
        await self._commit(what, timeout, None)

    async def _commit(
        self, what: ToCommit | None, limit: float | None, moment: Moment | None
    ) -> None:
        core, within = self._core, self._within(limit)
        partitions = None if what is None else _named_alone(what)
        try:
            core.check(is_parting_ok=True)
        except ClosedError:
            core.fence.check_closed(partitions or _partitions(what))
            raise
        if what is None or partitions is not None:
            core.fence.check_handed(partitions or ())
            await core.commit_handed(within, partitions, moment)
            return
        commit = self._commit_of(what)
        core.fence.check(commit.offsets)
        await core.commit(commit, within)

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
        core = self._core
        core.check(is_parting_ok=True)
        named = self.assignment if partitions is None else partitions
        chosen = [partition_of(tp) for tp in named]
        committer = core.group_committer()
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
        core = self._core
        core.check()
        if core.rewinder is None or not core.wanted.is_subscription:
            raise UsageError("only a group that is subscribed to topics can be rewound")
        deadline = now() + self._within(timeout)
        offsets = await self._targets(to, deadline)
        if offsets:
            with core.assigned.rewinding():
                await core.rewinder.rewind(offsets, deadline - now())

    async def _targets(
        self, to: Mapping[TopicPartition, RewindTo], deadline: float
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        resets = dict[TopicPartition, Reset]()
        offsets = dict[TopicPartition, OffsetAndMetadata]()
        for tp, place in to.items():
            if not isinstance(place, str):
                offsets[partition_of(tp)] = _readable(place)
            elif (reset := _reset_of(place)) is not None:
                resets[partition_of(tp)] = reset
            else:
                raise UsageError(f"{place!r} is no place to rewind to")
        core, wanted = self._core, [*offsets, *resets]
        await core.cluster.wait_for_partitions(wanted, deadline - now())
        found = await core.lookup.places(resets, within=deadline - now())
        return offsets | {tp: OffsetAndMetadata(at) for tp, at in found.items()}

    async def _position(self, tp: TopicPartition, within: float) -> int:
        core, reader, deadline = self._core, self._reader, now() + within
        while True:
            if (at := self._place(tp)) >= 0:
                return at
            core.check()
            reader.raise_stranded(tp)
            if not await core.repositioned(deadline):
                raise RequestTimeout(
                    f"the position of {tp.topic}-{tp.partition} is not known yet"
                )

    def _within(self, timeout: float | None) -> float:
        return self._timeout if timeout is None else timeout

    def _assigned(self, partitions: Collection[TopicPartition]) -> list[TopicPartition]:
        chosen = [partition_of(tp) for tp in partitions]
        for tp in chosen:
            if tp not in self._reader.positions:
                raise UsageError(
                    f"{tp.topic}-{tp.partition} is not assigned to this consumer"
                )
        return chosen

    async def _look_up(
        self, times: Mapping[TopicPartition, int], within: float
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        core = self._core
        core.check(is_parting_ok=True)
        deadline = now() + within
        await core.cluster.wait_for_partitions(times, within)
        return await core.lookup.offsets(times, within=deadline - now())

    async def _ends(
        self, partitions: Iterable[TopicPartition], which: int, within: float | None
    ) -> dict[TopicPartition, int]:
        times = {partition_of(tp): which for tp in partitions}
        found = await self._look_up(times, self._within(within))
        return {tp: end.offset for tp, end in found.items() if end is not None}

    def _commit_of(self, what: ToCommit) -> Commit:
        divider = self._reader.divider
        if not (isinstance(what, Mapping) or divider is None or divider.has_order):
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
            self._core.fence.check_record(what)
            after = OffsetAndMetadata(what.offset + 1, leader_epoch=what.leader_epoch)
            return ledger.commit_of({what.topic_partition: after})
        if not isinstance(what, Mapping):
            raise UsageError(
                f"commit() takes partitions, a record, a batch or offsets by "
                f"partition, and no {type(what).__name__} like {what!r:.100}"
            )
        return ledger.commit_of(
            {partition_of(tp): offset_of(at) for tp, at in what.items()}
        )


def _partitions(what: ToCommit | None) -> Collection[TopicPartition]:
    if isinstance(what, Record | Batch):
        return {what.topic_partition}
    return {partition_of(tp) for tp in what} if isinstance(what, Mapping) else ()


def _named_alone(what: ToCommit) -> frozenset[TopicPartition] | None:
    """The partitions that are named without offsets: None where it is not those."""
    if _is_partition(what):
        return frozenset([partition_of(what)])
    if isinstance(what, Record | Batch | Mapping) or not isinstance(what, Collection):
        return None
    if not all(map(_is_partition, what)):
        return None
    return frozenset(map(partition_of, what))


def _is_partition(what: object) -> TypeGuard[tuple[str, int]]:
    return isinstance(what, tuple) and list(map(type, what)) == [str, int]


def _reset_of(place: str) -> Reset | None:
    kind, _, duration = place.partition(":")
    is_junk = kind == "by_duration" and iso_duration_ms(duration) is None
    return None if is_junk else Reset.of(place)


def _readable(offset: int | OffsetAndMetadata) -> OffsetAndMetadata:
    where = offset_of(offset)
    if where.offset < 0:
        raise UsageError(f"there is no offset {where.offset} to read at")
    return where
