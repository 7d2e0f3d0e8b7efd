"""Commits of a group's offsets in a transaction: TxnOffsetCommit.

The group's coordinator stores the offsets, and they count once the transaction is
committed. Before that, the group must be in the transaction: in TV1 the producer adds
it by AddOffsetsToTxn, in TV2 the group's coordinator does. `GroupOffsetsPort` stands
for the consumer: it knows the member's identity, and whether the partitions are still
assigned.

Brokers since Kafka 4.4 take topic ids in place of names (KIP-1319), and so refuse
offsets of a topic that was deleted and made again. A consumer's offsets come with the
ids that their topics had. Offsets that the user names for a group have names alone, and
so do all of a commit in which the id of one topic is not known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final, TypeVar

from kafkaio._client.cluster import Cluster
from kafkaio._client.coordination import CoordinatorRpc
from kafkaio._client.retry import Attempts
from kafkaio._config import ProducerConfig
from kafkaio._machines.coordinators import CoordinatorKind
from kafkaio._machines.patience import ASKED_FOR, BEFORE_RELEASE, UNKNOWN_TOPIC, Doubt
from kafkaio._machines.reactions import ReactionStep, reaction
from kafkaio._machines.transaction import (
    ADDING,
    FORGOTTEN,
    Protocol as TxnProtocol,
    TransactionMachine,
)
from kafkaio._net.connection import Connection
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._producer.outcomes import forgotten, in_doubt
from kafkaio._producer.repeating import Pace, Unanswered
from kafkaio._producer.turns import Run, RunTurns
from kafkaio._producer.txn_coordinator import ASKED_AT_ONCE, TxnOwnerPort
from kafkaio._runtime.clock import now
from kafkaio._runtime.scopes import CancelScope
from kafkaio._transactional import GroupOffsetsPort
from kafkaio.errors import (
    ClosedError,
    CommitFailed,
    InternalError,
    KafkaError,
    KafkaTimeout,
    UnsupportedVersion,
)
from kafkaio.protocol import _api_numbers as apis
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import ZERO_UUID
from kafkaio.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from kafkaio.types import GroupMetadata, TopicPartition

T = TypeVar("T")

#: From this version on, a request means TV2; below it, TV1.
_OFFSETS_TV2: Final = 5
#: The last version that has topic names, and the first that has topic ids in their
#: place (KIP-1319).
_OFFSETS_NAMED: Final = 5
_OFFSETS_IDENTIFIED: Final = 6
#: From this version on, the coordinator checks the member of a commit (KIP-447).
_OFFSETS_FENCED: Final = 3
#: The group went on without the member, or moved it to another generation.
_STALE: Final = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)
#: Seconds that offsets wait for records at most; a leader that is turned away by the
#: transaction's coordinator asks again for as long.
_WRITTEN_LIMIT: Final = 0.1
#: Why a run is aborted whose offsets were refused, or whose commit was cut short.
_NOT_COMMITTED: Final = "offsets were not committed"


class TxnOffsets:
    """Commits offsets with the transactions of one producer.

    Args:
        cluster: finds the coordinators of groups, and connects to them.
        config: the producer's options, with a ``transactional_id``.
        machine: the transactions of the producer.
        turns: the run that has its turn.
        error: makes the error of a refusal; see `TxnCoordinator.error`.
        owner: the transaction manager.

    Attributes:
        interrupt: cancels the present step of a commit, if nothing of it may take
            effect; None while there is no such step.
    """

    def __init__(
        self,
        cluster: Cluster,
        config: ProducerConfig,
        machine: TransactionMachine,
        turns: RunTurns,
        error: Callable[..., KafkaError],
        owner: TxnOwnerPort,
    ) -> None:
        assert config.transactional_id is not None
        self._transactional_id = config.transactional_id
        self._cluster = cluster
        self._machine = machine
        self._turns = turns
        self._error = error
        self._owner = owner
        self._request_timeout = config.request_timeout_ms / 1000
        self._max_block = config.max_block_ms / 1000
        self._groups: dict[str, CoordinatorRpc] = {}
        # Commits of offsets follow one another. No run ends while it has one under way,
        # unless the producer is over; so one lock serves all runs.
        self._order = asyncio.Lock()
        self.interrupt: Callable[[], None] | None = None

    async def commit(self, run: Run, offsets: GroupOffsetsPort) -> None:
        """Commit the offsets of a group with the run, or note that it can only abort.

        The errors are those of `Transaction.commit_offsets`. UnsupportedVersion leaves
        the run as it was: nothing was sent. If the call is cancelled after the request
        was sent, the run can only be aborted.
        """
        owner = self._owner
        owner.check_committable(run)
        rpc = self._coordinator(offsets.identity().group_id)
        unanswered = Unanswered()
        run.commits += 1
        try:
            await self._commit_in_turn(run, rpc, offsets, unanswered)
        except UnsupportedVersion:
            raise
        except _Useless:
            if unanswered.may_arrive:
                self._machine.harmed(has_late=True)
            owner.check_committable(run)
            raise
        except KafkaError as error:
            owner.fail_run(run, error, _NOT_COMMITTED, has_harm=unanswered.may_arrive)
            raise
        except BaseException:
            if unanswered.may_arrive:
                cancelled = KafkaTimeout("the commit of offsets was cancelled")
                owner.fail_run(run, cancelled, _NOT_COMMITTED, has_harm=True)
            raise
        finally:
            run.commits -= 1
            if unanswered.was_lost:
                run.is_commit_lost = True
                self._machine.harmed(has_late=True)
            owner.end_if_drained()
        run.offsets.append(offsets)

    def _coordinator(self, group_id: str) -> CoordinatorRpc:
        rpc = self._groups.get(group_id)
        if rpc is None:
            rpc = CoordinatorRpc(self._cluster, CoordinatorKind.GROUP, group_id)
            self._groups[group_id] = rpc
        return rpc

    async def _commit_in_turn(
        self,
        run: Run,
        rpc: CoordinatorRpc,
        offsets: GroupOffsetsPort,
        unanswered: Unanswered,
    ) -> None:
        # In the order of the calls: in a transaction the last one counts.
        async with self._order:
            self._owner.check_committable(run)  # it may have failed meanwhile
            await self._check_fencing(run, rpc, offsets)
            await self._until_written()
            self._owner.check_committable(run)
            await self._until_group_added(run, rpc.key)
            if run.is_commit_lost:
                raise KafkaTimeout(
                    f"{rpc.name}: a commit of offsets in this transaction got no "
                    "answer, and may still arrive after another one"
                )
            await self._commit(run, rpc, offsets, unanswered)

    # ---- before the request ----------------------------------------------------------

    async def _check_fencing(
        self, run: Run, rpc: CoordinatorRpc, offsets: GroupOffsetsPort
    ) -> None:
        # The connection is made before the group is added, also without a member whose
        # place is to be checked: a call that is cancelled while it looks for the
        # group's coordinator must leave the transaction empty.
        connection = rpc.ready(ConnectionClass.SHARED)
        if connection is None:
            connection = await self._connected(run, rpc)
        if not offsets.is_fenced:
            return
        version = connection.versions.usable(TxnOffsetCommitRequest)
        if version < _OFFSETS_FENCED:
            raise UnsupportedVersion(
                f"{rpc.name}: its coordinator supports TxnOffsetCommit {version}, and "
                "would let a consumer commit that the group has replaced; transactions "
                f"with a subscribed consumer need version {_OFFSETS_FENCED} (Kafka 2.5)"
            )

    async def _connected(self, run: Run, rpc: CoordinatorRpc) -> Connection:
        what = f"a connection to the coordinator of {rpc.name}"
        attempts = Attempts(what, self._cluster.retry_policy, self._max_block)

        async def connect() -> Connection:
            self._check_useful(run, rpc)
            within = attempts.within(self._request_timeout)
            return await rpc.connection(ConnectionClass.SHARED, now() + within)

        check = partial(self._check_useful, run, rpc)
        return await self._while_useful(check, attempts.run(connect), Unanswered())

    async def _while_useful(
        self, check: Callable[[], None], work: Awaitable[T], unanswered: Unanswered
    ) -> T:
        # Race: the abort waits for commits of offsets. It cancels one of which nothing
        # was sent, and waits for the answer to any other.
        with CancelScope() as scope:

            def interrupt() -> None:
                if not unanswered.may_arrive:
                    scope.cancel()

            self.interrupt = interrupt
            try:
                return await work
            finally:
                self.interrupt = None
        check()
        raise InternalError("a commit of offsets was interrupted for no reason")

    def _check_useful(self, run: Run, rpc: CoordinatorRpc) -> None:
        # The abort waits for the commit, which has become useless.
        if not self._turns.has(run) or self._machine.state not in ADDING:
            raise _Useless(f"{rpc.name}: the transaction is aborted")

    async def _until_written(self) -> None:
        # The coordinator adds one thing at a time to a transaction. In TV2 the leaders
        # and the group's coordinator each ask it themselves, and the one that is turned
        # away asks again 20 ms later. So offsets wait until records were written, but
        # not for long: other tasks may go on sending.
        owner = self._owner
        if self._machine.protocol is TxnProtocol.TV1 or owner.flush():
            return
        until = now() + _WRITTEN_LIMIT
        timer = asyncio.get_running_loop().call_at(until, owner.changed.notify_all)
        try:
            while now() < until and not owner.is_drained:
                await owner.changed.wait()
        finally:
            timer.cancel()

    async def _until_group_added(self, run: Run, group_id: str) -> None:
        machine, owner = self._machine, self._owner
        owner.perform(machine.want_offsets(now(), group_id))
        while not machine.has_group(group_id):
            await owner.changed.wait()
            owner.check_committable(run)

    # ---- the request -----------------------------------------------------------------

    async def _commit(
        self,
        run: Run,
        rpc: CoordinatorRpc,
        offsets: GroupOffsetsPort,
        unanswered: Unanswered,
    ) -> None:
        machine = self._machine
        is_tv2 = machine.protocol is TxnProtocol.TV2
        within = max(0.001, min(self._max_block, machine.deadline - now()))
        attempts = Attempts(
            f"the commit of offsets to {rpc.name}", self._cluster.retry_policy, within
        )
        doubt = Doubt(ASKED_FOR)

        def code(answer: TxnOffsetCommitResponse) -> int:
            unanswered.answered()
            codes = _codes_of(answer, offsets)
            self._check_topics(codes, offsets, doubt)
            return _code_of(codes)

        def check() -> None:
            offsets.check()
            self._check_useful(run, rpc)
            if run.is_revoked:  # the group waits for the end of the transaction
                attempts.leave(BEFORE_RELEASE)

        while True:
            check()
            place = offsets.identity()
            sent = rpc.repeat(
                self._request(place, offsets),
                attempts,
                timeout=self._request_timeout,
                code=code,
                max_version=_highest(offsets) if is_tv2 else _OFFSETS_TV2 - 1,
                min_version=_OFFSETS_TV2 if is_tv2 else 0,
                pace=Pace(ASKED_AT_ONCE),
                on_sent=unanswered.sent,
                check=check,
            )
            answer = await self._while_useful(check, sent, unanswered)
            found = _code_of(_codes_of(answer, offsets))
            if not found:
                return
            await attempts.pause(self._may_pass(rpc, offsets, found, place))

    def _may_pass(
        self,
        rpc: CoordinatorRpc,
        offsets: GroupOffsetsPort,
        code: int,
        place: GroupMetadata,
    ) -> KafkaError:
        """Return the error of a refusal if the member gets another place, or raise."""
        error = self._error(
            code,
            f"TxnOffsetCommit to {rpc.name} was refused",
            api=apis.TXN_OFFSET_COMMIT,
            group=rpc.key,
        )
        if code not in _STALE:
            raise self._refused(code, error)
        if not offsets.refused(code, place):
            failed = CommitFailed(f"{rpc.name} went on without this member")
            failed.__cause__ = error
            raise failed
        return error

    def _refused(self, code: int, error: KafkaError) -> KafkaError:
        if code == ErrorCode.INVALID_PRODUCER_EPOCH:
            return in_doubt(error)
        if code == FORGOTTEN:
            return forgotten(error)
        if reaction(apis.TXN_OFFSET_COMMIT, code).step is ReactionStep.FATAL:
            self._owner.fail(error)
        return error

    def _check_topics(
        self,
        codes: Mapping[TopicPartition, int],
        offsets: GroupOffsetsPort,
        doubt: Doubt,
    ) -> None:
        """Raise if the group's coordinator does not know a topic, and will not soon.

        No repetition brings a deleted topic back. The transaction is aborted, and the
        consumer reads the other topics in the next one.
        """
        unknown = [tp for tp, code in codes.items() if code in UNKNOWN_TOPIC]
        if unknown and (doubt.is_over(now()) or offsets.lacks(unknown)):
            listed = ", ".join(f"{tp.topic}-{tp.partition}" for tp in unknown)
            group = offsets.identity().group_id
            raise self._error(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"the coordinator of group {group!r} does not know {listed}",
                api=apis.TXN_OFFSET_COMMIT,
                group=group,
            )

    def _request(
        self,
        place: GroupMetadata,
        offsets: GroupOffsetsPort,
    ) -> TxnOffsetCommitRequest:
        identity = self._machine.identity
        assert identity is not None
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for tp, at in offsets.offsets.items():
            topics.setdefault(tp.topic, []).append(
                TxnOffsetCommitRequestPartition(
                    partition_index=tp.partition,
                    committed_offset=at.offset,
                    committed_leader_epoch=at.leader_epoch,
                    committed_metadata=at.metadata,
                )
            )
        # Names and ids: the version that the broker knows decides which are sent.
        ids = offsets.topic_ids
        return TxnOffsetCommitRequest(
            transactional_id=self._transactional_id,
            group_id=place.group_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            generation_id_or_member_epoch=place.generation,
            member_id=place.member_id,
            group_instance_id=place.group_instance_id,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=name, topic_id=ids.get(name, ZERO_UUID), partitions=partitions
                )
                for name, partitions in topics.items()
            ],
        )


class _Useless(ClosedError):
    """A commit of offsets stops: its transaction is aborted."""


def _highest(offsets: GroupOffsetsPort) -> int:
    """Return the highest version that can name all topics of these offsets."""
    ids = offsets.topic_ids
    is_identified = all(tp.topic in ids for tp in offsets.offsets)
    return _OFFSETS_IDENTIFIED if is_identified else _OFFSETS_NAMED


def _codes_of(
    answer: TxnOffsetCommitResponse, offsets: GroupOffsetsPort
) -> dict[TopicPartition, int]:
    """Return the error code of each partition."""
    names = {number: name for name, number in offsets.topic_ids.items()}
    answered = {
        (topic.name or names.get(topic.topic_id), result.partition_index): (
            result.error_code
        )
        for topic in answer.topics
        for result in topic.partitions
    }
    # The offset of one that the answer leaves out is not known to be committed.
    unknown = ErrorCode.UNKNOWN_SERVER_ERROR
    return {tp: answered.get(tp, unknown) for tp in offsets.offsets}


def _code_of(codes: Mapping[TopicPartition, int]) -> int:
    refused = [code for code in codes.values() if code]
    # One that cannot be retried decides.
    final = (c for c in refused if not reaction(apis.TXN_OFFSET_COMMIT, c).retry)
    return next(final, refused[0] if refused else 0)
