"""Moves a group to other offsets while it runs, whichever members own the partitions.

The partitions are *withheld*: as in any rebalance their owners release them, and no
member gets them. Those that no member owns are *free*, and their offsets are committed.
By then the work of the old owners is finished, and a commit of theirs is refused. When
the partitions are assigned again, their new owners begin at the committed offsets.

Each partition succeeds or fails for itself: one whose topic is gone, whose leader does
not answer, whose owner holds on to it or whose commit is refused does not keep the
others from being moved.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from kafkaio._client.fanout import Results
from kafkaio._client.offsets import OffsetLookup
from kafkaio._client.retry import Attempts
from kafkaio._consumer.commits.committer import OffsetCommitter
from kafkaio._consumer.group.member import ConsumerMember
from kafkaio._machines.positions import Reset
from kafkaio._runtime.clock import now
from kafkaio._runtime.group import TaskGroup
from kafkaio._runtime.scopes import CancelScope, move_on_after
from kafkaio.errors import (
    AdminErrors,
    CommitFailed,
    KafkaError,
    PartitionLost,
    RequestTimeout,
    RewindRefused,
    UnknownTopicOrPartition,
)
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.types import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kafkaio._client.ports import ClusterPort

#: The result for each partition: where the group goes on, or why not.
Moved: TypeAlias = Results[TopicPartition, OffsetAndMetadata]

#: The part of the time that looking up topics, and looking up offsets, may each take.
#: Most of the time belongs to the owners, who have to finish their work.
_LOOKING: float = 1 / 4
#: Seconds before the end, and at most which part of the time, at which free partitions
#: are committed without the others.
_COMMITTING: float = 1.0
_COMMITTING_PART: float = 1 / 4
#: Seconds after which a commit is tried again that the group's next generation refused.
_AGAIN: float = 0.1


class Rewinder:
    """Rewinds a group; one rewind at a time.

    Args:
        member: this consumer's member of the group.
        committer: commits the offsets of the group.
        cluster: has the topics.
        lookup: finds offsets.
    """

    def __init__(
        self,
        member: ConsumerMember,
        committer: OffsetCommitter,
        cluster: ClusterPort,
        lookup: OffsetLookup,
    ) -> None:
        self._member = member
        self._committer = committer
        self._cluster = cluster
        self._lookup = lookup
        self._lock = asyncio.Lock()

    # ---- where to --------------------------------------------------------------------

    async def find(
        self, to: Mapping[TopicPartition, OffsetAndMetadata | Reset], within: float
    ) -> Moved:
        """Find the offset for each partition, in a part of the time.

        Args:
            to: by partition, an offset, or where to find one.
            within: seconds that the whole rewind has.
        """
        moved: Moved = Results()
        known = await self._known(to, moved, within * _LOOKING)
        moved.found |= {
            tp: place for tp in known if isinstance(place := to[tp], OffsetAndMetadata)
        }
        resets = {tp: place for tp in known if isinstance(place := to[tp], Reset)}
        await self._look_up(resets, moved, within * _LOOKING)
        return moved

    async def _known(
        self, partitions: Iterable[TopicPartition], moved: Moved, within: float
    ) -> list[TopicPartition]:
        by_topic: dict[str, list[TopicPartition]] = {}
        for tp in partitions:
            by_topic.setdefault(tp.topic, []).append(tp)
        known: list[TopicPartition] = []

        async def check(asked: list[TopicPartition]) -> None:
            try:
                await self._cluster.wait_for_partitions(asked, within)
            except UnknownTopicOrPartition as error:
                if len(asked) == 1:
                    moved.failed[asked[0]] = error
                for tp in asked if len(asked) > 1 else ():
                    await check([tp])
            except KafkaError as error:
                moved.failed |= dict.fromkeys(asked, error)
            else:
                known.extend(asked)

        async with TaskGroup() as tasks:
            for asked in by_topic.values():
                tasks.start_soon(check, asked)
        return known

    async def _look_up(
        self, resets: Mapping[TopicPartition, Reset], moved: Moved, within: float
    ) -> None:
        attempts = Attempts(
            "look up the offsets to go to", self._cluster.retry_policy, within
        )
        left = dict(resets)
        while left:
            result = await self._lookup.resets(left, within=attempts.within(within))
            moved.failed |= result.failed
            for tp, place in result.found.items():
                if place is None:
                    moved.failed[tp] = _nowhere(tp)
                else:
                    moved.found[tp] = OffsetAndMetadata(place.offset)
            left = {tp: left[tp] for tp in result.again}
            try:
                for error in result.again.values():
                    await attempts.pause(error)
                    break
            except RequestTimeout as error:
                moved.failed |= dict.fromkeys(left, error)
                return

    # ---- moving ----------------------------------------------------------------------

    async def rewind(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], within: float
    ) -> Moved:
        """Commit the offsets, each while no member owns its partition.

        A partition fails with RewindRefused if the group's assignor cannot withhold it,
        with RequestTimeout if its owner did not release it in time, with what its
        commit raised, and with ClosedError if this consumer has left the group.

        Args:
            offsets: offsets of the next records to read.
            within: seconds for all of it, the wait for an earlier rewind included.
        """
        moved: Moved = Results()
        deadline = now() + within
        with CancelScope(deadline=deadline):
            async with self._lock:
                self._member.withhold(frozenset(offsets))
                try:
                    late = deadline - min(_COMMITTING, within * _COMMITTING_PART)
                    await self._move(offsets, moved, late, deadline)
                except KafkaError as error:  # the membership has ended
                    left = [tp for tp in offsets if tp not in moved]
                    moved.failed |= dict.fromkeys(left, error)
                finally:
                    self._member.withhold(frozenset())
        left = [tp for tp in offsets if tp not in moved]
        if left:
            timeout = RequestTimeout(
                f"the owners of {_names(left)} in group {self._member.group_id!r} "
                f"did not release them within {within:g} s"
            )
            moved.failed |= dict.fromkeys(left, timeout)
        return moved

    async def _move(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        moved: Moved,
        late: float,
        deadline: float,
    ) -> None:
        while left := {tp: at for tp, at in offsets.items() if tp not in moved}:
            free = {tp: at for tp, at in left.items() if tp in self._member.free}
            is_late = now() >= late
            if free.keys() == left.keys() or (free and is_late):
                await self._commit(free, moved, deadline)
            elif self._member.ignores_withholding:
                self._refuse(left.keys(), moved)
            elif is_late:
                return
            else:
                with CancelScope(deadline=late):
                    await self._member.changed.wait()

    async def _commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        moved: Moved,
        deadline: float,
    ) -> None:
        # A little less than all: the error of the commit has the reason.
        left = 0.95 * (deadline - now())
        try:
            await self._committer.commit(offsets, timeout=max(0.0, left))
        except (PartitionLost, CommitFailed):
            # The group began another generation meanwhile, in which a member may own
            # the partitions.
            with move_on_after(_AGAIN):
                await self._member.changed.wait()
            return
        except KafkaError as error:
            if len(offsets) == 1:
                moved.failed |= dict.fromkeys(offsets, error)
                return
        else:
            moved.found |= offsets
            return
        # The committer sends them together again, and each call gets its own error.
        async with TaskGroup() as tasks:
            for tp, at in offsets.items():
                tasks.start_soon(self._commit, {tp: at}, moved, deadline)

    def _refuse(self, partitions: Collection[TopicPartition], moved: Moved) -> None:
        others = frozenset(partitions)
        if self._member.uses_member_epoch:
            others -= self._member.assignment.keys() | self._member.free.keys()
        refusal = RewindRefused(self._why_refused(others))
        moved.failed |= dict.fromkeys(others, refusal)
        self._member.withhold(frozenset(partitions) - others)

    def _why_refused(self, partitions: Iterable[TopicPartition]) -> str:
        group = f"group {self._member.group_id!r}"
        if self._member.uses_member_epoch:
            return (
                f"the partitions of {group} are assigned by the brokers, which cannot "
                f"withhold {_names(partitions)}: rewind each on the member that owns "
                f'it, or use group_protocol="classic"'
            )
        return (
            f"the partitions of {group} are assigned by a broker, or by a member with "
            f"another client library, which cannot withhold {_names(partitions)}"
        )


def outcome(asked: Iterable[TopicPartition], moved: Moved) -> dict[TopicPartition, int]:
    """Return where each partition went, in the order asked.

    Raises:
        KafkaError: one partition failed, or several for one reason; it has the offsets
            of the others as its ``results``.
        AdminErrors: several failed for several reasons.
    """
    asked = list(asked)
    found = {tp: moved.found[tp].offset for tp in asked if tp in moved.found}
    failed = {tp: moved.failed[tp] for tp in asked if tp in moved.failed}
    if not failed:
        return found
    results = dict[object, object](found.items())
    reasons = {id(error): error for error in failed.values()}
    if len(reasons) == 1:
        (error,) = reasons.values()
        error.results = results
        if len(failed) == 1:
            (error.item,) = failed
        raise error
    for tp, error in failed.items():
        error.item = tp
    raise AdminErrors.of("rewind", list(reasons.values()), results)


def _nowhere(tp: TopicPartition) -> KafkaError:
    what = f"{tp.topic}-{tp.partition} has no offset to go to"
    return broker_error(ErrorCode.OFFSET_NOT_AVAILABLE, what)


def _names(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(f"{tp.topic}-{tp.partition}" for tp in sorted(partitions))
