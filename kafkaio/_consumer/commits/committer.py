"""The committed offsets of one group: commits in order, fenced.

A commit is fenced twice. The coordinator refuses member ids and generations that are
out of date. But within the current generation it accepts a commit of any partition,
also of one that has moved to another member. So each commit takes the `Fence` of the
assignments that it belongs to, and compares it each time before it is sent.

Offsets are in Kafka (`kafkaio._consumer.commits.kafka`) unless there is an
``offset_store``; then the committer keeps the order, and the store does the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING

from kafkaio._client.coordination import CoordinatorRpc
from kafkaio._client.fanout import Results
from kafkaio._client.retry import Attempts, RetryPolicy
from kafkaio._config import ConsumerConfig
from kafkaio._consumer.commits.kafka import (
    CommitCall,
    CommitMemberPort,
    KafkaOffsets,
)
from kafkaio._machines.coordinators import CoordinatorKind
from kafkaio._machines.membership.fence import Fence
from kafkaio._machines.patience import ASKED_FOR
from kafkaio._runtime.clock import now
from kafkaio._runtime.scopes import CancelScope
from kafkaio.errors import (
    ArgumentValueError,
    RebalanceInProgress,
    UsageError,
)
from kafkaio.protocol.messages.offset_commit import OffsetCommitResponse
from kafkaio.types import (
    GroupMetadata,
    OffsetAndMetadata,
    OffsetStore,
    TopicPartition,
)

if TYPE_CHECKING:
    from kafkaio._client.ports import ClusterPort
    from kafkaio._consumer.stores.base import InKafka

_Offsets = Mapping[TopicPartition, OffsetAndMetadata]
#: Raised as it is when the time of a commit is over.
_SURFACED = (RebalanceInProgress,)


class OffsetCommitter:
    """Commits and fetches the offsets of one group.

    One commit is in flight at a time, and commits take effect in the order of the
    calls. Calls made meanwhile are merged into one request, with the last call's offset
    of each partition; with an ``offset_store`` they follow one another. A request that
    is in flight on a connection that breaks cannot be taken back: if the broker reads
    it after the next commit, which came by another connection, it sets the offset back.

    Without a group member (`attach`) any partition can be committed, as long as the
    group has no members.

    Args:
        cluster: finds the coordinator, and connects to it.
        config: the consumer's options; they name a group.
        identity: returns the identity under which to commit now.
    """

    def __init__(
        self,
        cluster: ClusterPort,
        config: ConsumerConfig,
        identity: Callable[[], GroupMetadata],
    ) -> None:
        if config.group_id is None:
            raise UsageError("a group_id is needed to commit offsets")
        self._rpc = CoordinatorRpc(cluster, CoordinatorKind.GROUP, config.group_id)
        self._observer = cluster.observer
        self._identity = identity
        self._policy = RetryPolicy.from_config(config, cluster.observer)
        self._store = config.offset_store
        self._kafka = KafkaOffsets(self._rpc, config, identity, cluster, self._observer)
        self._what = f"a commit to {self._rpc.name}"
        # Commits to an ``offset_store`` follow one another.
        self._lock = asyncio.Lock()

    def attach(self, member: CommitMemberPort) -> None:
        """Commit from now on only what that member owns; refusals are passed to it."""
        self._kafka.member = member

    async def commit(
        self, offsets: _Offsets, *, timeout: float, doubt: float = ASKED_FOR
    ) -> None:
        """Commit, after all commits called for before, or together with them.

        Returns when each of its partitions is committed, as given here or by a later
        call that was merged over this one. A partition that is refused keeps no other
        from being committed; the error names it. Commits of others in the same request
        neither fail this call nor wait for it. If the call is cancelled, the commit
        may still take effect if it was sent, but not after a later one, unless its
        connection has broken.

        Args:
            offsets: offsets of the next records to read.
            timeout: seconds; failures that may pass are retried until then.
            doubt: seconds for partitions whose topic the coordinator does not know;
                they are given up at once if the client's metadata lacks them, too.

        Raises:
            PartitionLost: a partition is not assigned to this member (any more);
                nothing is committed.
            CommitFailed: the group began a new generation without this member, or has
                members and this consumer is none of them.
            OffsetStoreError: the ``offset_store`` failed.
            RebalanceInProgress: the group is still rebalancing when time is up.
            RequestTimeout: the coordinator did not acknowledge it in time; the text
                says why: the last failure, or a throttle.
            UnknownTopicOrPartition: the topic does not exist (any more).
            BrokerError: it was refused for another reason.
            ArgumentValueError: an offset is negative.
        """
        if not offsets:
            return
        call = self.begin(dict(offsets), timeout, doubt, now())
        try:
            await self.finish(call)
        finally:
            self.leave(call)

    def begin(
        self, offsets: _Offsets, timeout: float, doubt: float, at: float
    ) -> CommitCall:
        """Begin a commit as `commit` does it: its order is that of these calls.

        `leave` has to follow, whatever happens, and before that `finish`; or `settle`
        with the result of the ``answer`` of the call, if it has one, and `finish` only
        if that says so.

        Args:
            offsets: as for `commit`; not empty, and never changed afterwards.
            timeout: as for `commit`.
            doubt: as for `commit`.
            at: the time.

        Raises:
            PartitionLost: as in `commit`.
            ArgumentValueError: as in `commit`.
        """
        for tp, given in offsets.items():
            if given.offset < 0:  # a broker would accept it, and then have no offset
                raise ArgumentValueError(
                    f"{tp.topic}-{tp.partition} has no offset {given.offset}"
                )
        # Before anything is awaited: the call is about the assignments of this moment.
        fence = self.fence(offsets)
        attempts = Attempts(self._what, self._policy, timeout, _SURFACED, at)
        call = CommitCall(offsets, fence, attempts, doubt)
        if self._store is None:
            self._kafka.begin(call, at)
        return call

    def settle(
        self, call: CommitCall, reply: OffsetCommitResponse | None, at: float
    ) -> bool:
        """Take the answer of a call; return whether all is committed, and it has ended.

        Args:
            call: from `begin`.
            reply: the result of its ``answer``.
            at: the time.
        """
        return self._kafka.settle(call, reply, at)

    async def finish(self, call: CommitCall) -> None:
        """Wait until a call has ended; raises as `commit` does."""
        if self._store is None:
            await self._kafka.finish(call)
        else:
            await self._finish_in_store(self._store, call)

    def leave(self, call: CommitCall) -> None:
        """Forget a call, which has ended, or is given up."""
        if self._store is None:
            self._kafka.leave(call)

    async def fetch(
        self,
        partitions: Collection[TopicPartition] | None,
        *,
        timeout: float,
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offsets, once no open transaction can change them.

        Args:
            partitions: which ones; None for all that the group has.
            timeout: seconds; failures that may pass are retried until then.

        Returns:
            An entry for each partition asked for: None where nothing is committed.

        Raises:
            RequestTimeout: no answer came in time, or a transaction stayed open.
            BrokerError: it was refused.
            UnsupportedVersion: the broker cannot return all offsets of a group.
            OffsetStoreError: the ``offset_store`` failed.
            UsageError: an ``offset_store`` cannot return all offsets of a group.
        """
        wanted = None if partitions is None else frozenset(partitions)
        if wanted is not None and not wanted:
            return {}
        attempts = self._fetch_attempts(timeout)
        if self._store is not None:
            return await self._fetch_from_store(self._store, wanted, attempts)
        return await self._kafka.fetch(wanted, attempts)

    async def fetch_each(
        self, partitions: Collection[TopicPartition], within: float
    ) -> Results[TopicPartition, OffsetAndMetadata | None]:
        """Ask once for the committed offsets; each partition may fail for itself.

        An open transaction that may change the offset of one partition, or a right that
        is missing for one topic, does not keep the others from their offsets. An
        ``offset_store`` fails as a whole.

        Args:
            partitions: which ones.
            within: seconds; failures that concern them all are retried until then.

        Raises:
            KafkaError: as in `fetch`, if it concerns them all.
        """
        wanted = frozenset(partitions)
        attempts = self._fetch_attempts(within)
        if self._store is None:
            return await self._kafka.fetch_each(wanted, attempts)
        found = await self._fetch_from_store(self._store, wanted, attempts)
        return Results(found=found)

    async def last_committed(
        self, partitions: Collection[TopicPartition], within: float
    ) -> Mapping[TopicPartition, OffsetAndMetadata | None]:
        """Return the last committed offsets, whatever an open transaction may change.

        Partitions that the coordinator refuses are left out.

        Args:
            partitions: which ones.
            within: seconds; failures that concern them all are retried until then.

        Raises:
            KafkaError: as in `fetch`, if it concerns them all.
        """
        wanted, attempts = frozenset(partitions), self._fetch_attempts(within)
        if self._store is not None:
            return await self._fetch_from_store(self._store, wanted, attempts)
        results = await self._kafka.fetch_each(wanted, attempts, requires_stable=False)
        return results.found

    def _fetch_attempts(self, timeout: float) -> Attempts:
        what = f"the look-up of offsets of {self._rpc.name}"
        return Attempts(what, self._policy, timeout)

    # ---- an offset store -------------------------------------------------------------

    async def _finish_in_store(self, store: OffsetStore, call: CommitCall) -> None:
        attempts = call.attempts
        # The lock is fair, so commits reach the store in the order of the calls.
        with CancelScope(deadline=attempts.deadline) as waiting:
            await self._lock.acquire()
        if waiting.cancelled_caught:
            raise attempts.expired()
        try:
            await self._commit_in_store(store, call.offsets, call.fence, attempts)
        finally:
            self._lock.release()
        # A store takes all offsets of a call, or fails as a whole.
        call.taken = call.offsets

    async def _commit_in_store(
        self,
        store: OffsetStore,
        offsets: _Offsets,
        fence: Fence | None,
        attempts: Attempts,
    ) -> None:
        # The wait for the lock may have been long. There is no await between this and
        # the call of the store; what the store does afterwards cannot be fenced.
        if fence is not None:
            fence.check()
        from kafkaio._consumer.stores.base import bound, store_errors

        kafka = self._in_kafka(fence, attempts)
        began = now()
        with (
            CancelScope(deadline=attempts.deadline) as writing,
            store_errors(store, "write"),
        ):
            await bound(store, kafka).commit(self._identity(), dict(offsets))
        if writing.cancelled_caught:
            raise attempts.expired()
        self._observer.offsets_committed(dict(offsets), now() - began)

    async def _fetch_from_store(
        self,
        store: OffsetStore,
        wanted: frozenset[TopicPartition] | None,
        attempts: Attempts,
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        if wanted is None:
            raise UsageError(f"{store!r} must be asked for partitions by name")
        from kafkaio._consumer.stores.base import bound, store_errors

        kafka = self._in_kafka(None, attempts)
        with (
            CancelScope(deadline=attempts.deadline) as reading,
            store_errors(store, "read"),
        ):
            found = await bound(store, kafka).load(self._identity(), wanted)
        if reading.cancelled_caught:
            raise attempts.expired()
        return {tp: found.get(tp) for tp in sorted(wanted)}

    def _in_kafka(self, fence: Fence | None, attempts: Attempts) -> InKafka:
        from kafkaio._consumer.stores.base import InKafka

        # Kafka within a store of two has the fence and the time of the call.
        return InKafka(
            partial(self._kafka.fetch, attempts=attempts),
            lambda offsets: self._kafka.commit(
                CommitCall(dict(offsets), fence, attempts)
            ),
        )

    # ---- fencing ---------------------------------------------------------------------

    def fence(self, offsets: _Offsets) -> Fence | None:
        """Return the fence of a commit of these offsets; None checks none.

        Raises:
            PartitionLost: a partition is not assigned to this member (any more).
        """
        member = self._kafka.member
        return None if member is None else member.fence(offsets)

    def lacks(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether the client's metadata lacks one of them, too; asks for newer.

        Args:
            partitions: unknown to the coordinator of a transaction's commit.
        """
        return bool(self._kafka.missing(partitions))

    def refused(self, code: int, identity: GroupMetadata) -> bool:
        """Whether a transaction commits again after its identity was refused.

        Args:
            code: the coordinator's error code.
            identity: the identity in the request.
        """
        return self._kafka.refused(code, identity)

    @property
    def is_fenced(self) -> bool:
        """Whether this consumer may commit only partitions that it owns."""
        member = self._kafka.member
        return member is not None and member.is_subscribed
