"""The transaction manager: performs what the machine of transactions decides.

`TransactionMachine` (`kafkaio._machines.transaction`) decides; this module performs its
effects, and tells it what came of them. Requests to the coordinator run in short-lived
tasks, each of which repeats its request until it is answered for good. The sender
informs the manager of what became of records (`TransactionPort`), in its callbacks. So
an end that was begun goes on by itself: a caller that waits for it may be cancelled.

One transaction is a `Run`. Runs follow one another: who begins waits, first come, first
served, until the run before has ended.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from copy import copy
from functools import partial
from math import inf
from typing import Final, Generic, TypeVar

import anyio

from kafkaio._client.cluster import Cluster
from kafkaio._client.coordination import CoordinatorConnection, CoordinatorRpc
from kafkaio._client.retry import Attempts
from kafkaio._config import ProducerConfig
from kafkaio._dataclass import dataclass
from kafkaio._machines.accumulator import (
    Accumulator,
    Barrier,
    ProduceBatch,
    Receipt,
)
from kafkaio._machines.coordinators import CoordinatorKind
from kafkaio._machines.detached import DetachedTransaction
from kafkaio._machines.patience import ASKED_FOR, BEFORE_RELEASE, UNKNOWN_TOPIC, Doubt
from kafkaio._machines.reactions import Harm, ReactionStep, is_foreign, reaction
from kafkaio._machines.sequence import IdAndEpoch, ProducerIdentity
from kafkaio._machines.transaction import (
    ADDING,
    ENDING,
    FENCING,
    FORGOTTEN,
    OVER,
    AddOffsets,
    AddPartitions,
    Admit,
    Adopt,
    DropUnsent,
    Effects,
    End,
    Initialise,
    Probe,
    Protocol,
    Request,
    SendRequest,
    Started,
    TransactionMachine,
    TransactionOutcome,
    TxnEnded,
    TxnState,
)
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._producer.backpressure import BufferSpace
from kafkaio._producer.outcomes import forgotten, in_doubt
from kafkaio._producer.repeating import (
    ASK_AGAIN,
    END_TV2,
    MARKER_PACE,
    Busy,
    Doubts,
    Pace,
    Unanswered,
    end_request,
    is_doubtful,
)
from kafkaio._producer.sender import Sender
from kafkaio._runtime.broadcast import Broadcast
from kafkaio._runtime.clock import now
from kafkaio._runtime.supervisor import Child, start_detached
from kafkaio._runtime.timer import Timer
from kafkaio._transactional import GroupOffsetsPort, JoinedConsumerPort
from kafkaio.errors import (
    ClosedError,
    CommitFailed,
    ConfigurationError,
    InternalError,
    KafkaError,
    KafkaTimeout,
    OutcomeUnknown,
    RequestTimeout,
    TransactionAborted,
    UnsupportedVersion,
    UsageError,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Request as RequestMessage, Response
from kafkaio.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from kafkaio.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from kafkaio.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kafkaio.protocol.messages.init_producer_id import InitProducerIdRequest
from kafkaio.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from kafkaio.types import GroupMetadata, OffsetAndMetadata, TopicPartition

T = TypeVar("T")
ResponseT = TypeVar("ResponseT", bound=Response)

#: The feature whose level decides on the protocol (KIP-890).
_FEATURE: Final = "transaction.version"
_TV2_LEVEL: Final = 2
#: From this version on, a request means TV2; below it, TV1.
_OFFSETS_TV2: Final = 5
#: From this version on, the coordinator checks the member of a commit (KIP-447).
_OFFSETS_FENCED: Final = 3
#: From this version on, InitProducerId can ask for the next epoch (KIP-360).
_INIT_BUMP: Final = 3
#: Produce means TV2 from version 12 on.
_PRODUCE_VERSIONS: Final = {Protocol.TV1: (0, 11), Protocol.TV2: (12, 2**15 - 1)}
#: Leaders that know this version of Produce (Kafka 4.1) want a sequence to begin at 0
#: under a new epoch of TV2. Those of 4.0 take any number if they have no state of it.
_PRODUCE_CHECKED: Final = 13
#: So many looks follow one another without that pause. On a broker that has little to
#: do, the markers take less than the shortest sleep of an event loop. A process that
#: does not sleep also spends less CPU, because its caches stay warm.
_ASKED_AT_ONCE: Final = 8
#: Seconds after which a probe gives up: the leader of a partition waits as long.
_PROBE_LIMIT: Final = 0.1
#: Seconds that leaving a transaction by a cancellation waits for its abort.
_CANCELLED: Final = 1.0
#: The group went on without the member, or moved it to another generation.
_STALE: Final = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)
#: The coordinator, or a leader, has forgotten the producer.
_FORGOTTEN: Final = frozenset({ErrorCode.UNKNOWN_PRODUCER_ID, FORGOTTEN})
#: Seconds that offsets wait for records at most; a leader that is turned away by the
#: transaction's coordinator asks again for as long.
_WRITTEN_LIMIT: Final = 0.1
#: Why a run is aborted whose offsets were refused, or whose commit was cut short.
_NOT_COMMITTED: Final = "offsets were not committed"
#: States in which an abort can be asked for.
_ABORTABLE: Final = frozenset(
    {TxnState.OPEN, TxnState.COMMITTING, TxnState.DETACHING, TxnState.DOOMED}
)
#: States in which the transaction may still turn out not to be committed.
_DOOMABLE: Final = _ABORTABLE | {TxnState.ABORTING}
#: States in which records that were not sent are dropped.
_DROPPING: Final = frozenset({TxnState.DOOMED, TxnState.ABORTING})
#: States in which what an aborted transaction may still bring about is prevented.
_SETTLING: Final = frozenset({TxnState.BUMPING, TxnState.SEALING})


class Run:
    """One transaction, from its begin to its end.

    Attributes:
        is_open: whether records and offsets are taken in.
        is_revoked: whether a partition that it works on is to be revoked.
        outcome: how it ended; None while it has not.
        cause: why it was aborted; None if it was asked to, or has not ended so.
        reason: the same in a few words.
        consumer: what holds the partitions whose records it works on.
        on_closed: called when it takes no more in.
        is_detached: whether its end was left to another process.
        ended: told when the outcome is known, and the consumer was moved.
        is_late: whether EndTxn has no answer after ``max_block_ms``.
        late_at: when that is to be noted; infinity before EndTxn is sent.
        ends_since: when its end was decided on; 0 before.
    """

    __slots__ = (
        "cause",
        "commits",
        "consumer",
        "ended",
        "ends_since",
        "is_commit_lost",
        "is_detached",
        "is_done",
        "is_ending",
        "is_late",
        "is_open",
        "is_revoked",
        "late_at",
        "offsets",
        "on_closed",
        "outcome",
        "reason",
    )

    def __init__(self, on_closed: Callable[[], None]) -> None:
        self.is_open: bool = False
        self.is_revoked: bool = False
        self.outcome: TransactionOutcome | None = None
        self.cause: KafkaError | None = None
        self.reason: str = ""
        self.consumer: JoinedConsumerPort | None = None
        self.on_closed: Callable[[], None] = on_closed
        self.is_detached: bool = False
        self.ended: Broadcast = Broadcast()
        self.is_late: bool = False
        self.late_at: float = inf
        self.ends_since: float = 0.0
        # Whether its end was asked for, and whether it is complete.
        self.is_ending: bool = False
        self.is_done: bool = False
        # Commits of offsets under way, and those that were accepted.
        self.commits: int = 0
        self.is_commit_lost: bool = False
        self.offsets: list[GroupOffsetsPort] = []


class TransactionManager:
    """Runs the transactions of one producer.

    Args:
        cluster: finds the coordinators, and connects to them.
        config: the producer's options, with a ``transactional_id``.
        accumulator: the producer's records.
        identity: the producer's identity.
        space: the calls that wait for buffer memory.

    Attributes:
        transactional_id: the id under which the coordinator knows the producer.
    """

    def __init__(
        self,
        cluster: Cluster,
        config: ProducerConfig,
        accumulator: Accumulator,
        identity: ProducerIdentity,
        space: BufferSpace,
    ) -> None:
        assert config.transactional_id is not None
        self.transactional_id: str = config.transactional_id
        self._cluster = cluster
        self._config = config
        self._accumulator = accumulator
        self._identity = identity
        self._space = space
        self._sender: Sender | None = None
        # The loop's own clock, once that is known: each transaction asks it often.
        self._now: Callable[[], float] = now
        self._machine = TransactionMachine(
            config.transaction_timeout_ms / 1000,
            adds_explicitly=config.transaction_adds_explicitly,
        )
        self._rpc = CoordinatorRpc(
            cluster, CoordinatorKind.TRANSACTION, self.transactional_id
        )
        self._groups: dict[str, CoordinatorRpc] = {}
        self._request_timeout = config.request_timeout_ms / 1000
        self._transaction_timeout = config.transaction_timeout_ms / 1000
        self._max_block = config.max_block_ms / 1000
        # The run that has its turn, from its begin to its end, and who waits.
        self._run: Run | None = None
        self._waiters: deque[asyncio.Future[None]] = deque()
        # Told whenever the state has changed, or a group was added.
        self._changed = Broadcast()
        # Fires no later than needed; to fire early is harmless. It serves many runs.
        self._timer = Timer(self._time_passed)
        # When the probes of the run are given up.
        self._probes_until = inf
        # Commits of offsets follow one another. No run ends while it has one under way,
        # unless the producer is over; so one lock serves all runs.
        self._commit_order = asyncio.Lock()
        # Ends what looks for a group's coordinator, or waits to ask it again.
        self._interrupt: Callable[[], None] | None = None
        # When the first write of the run was sent, until it is answered.
        self._first_sent_at: float | None = None
        self._is_closing = False
        # Why the first InitProducerId was refused.
        self._refusal: KafkaError | None = None
        accumulator.gate.raise_barrier(Barrier.NO_TRANSACTION)

    def __repr__(self) -> str:
        return f"<TransactionManager {self.transactional_id!r} | {self._machine!r}>"

    @property
    def state(self) -> str:
        """The state of the machine, in small letters."""
        return self._machine.state.name.lower()

    # ---- life ------------------------------------------------------------------------

    async def start(self, sender: Sender, within: float) -> None:
        """Obtain the identity: a former producer of the id is fenced.

        Its open transaction, if there is one, is aborted first.

        Raises:
            AuthorizationError: the principal may not use the transactional id.
            ConfigurationError: the brokers do not allow ``transaction_timeout_ms``.
            RequestTimeout: it did not succeed in time.
            BrokerError: it was refused for another reason.
        """
        self._sender = sender
        self._now = asyncio.get_running_loop().time
        began = self._now()
        machine = self._machine
        machine.initialise()
        await self._initialise(Initialise(None), within)
        if machine.state is not TxnState.READY:
            raise self._refusal or self._why_over()
        self._report_step("init", began)

    async def close(self, deadline: float) -> None:
        """Abort what is open, and wait for the end until ``deadline``.

        No other run begins.
        """
        self._is_closing = True
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(ClosedError("the producer was closed"))
        run = self._run
        if run is not None:
            self._abort(run, ClosedError("the producer was closed"), "closed")
        self._changed.notify_all()  # for a run that waits to begin
        with anyio.CancelScope(deadline=deadline):
            while run is not None and not run.is_done:  # however late it is
                await run.ended.wait()
            while self._machine.state in _SETTLING:
                await self._changed.wait()

    def end(self, error: KafkaError) -> None:
        """Note that the producer is over; runs that have not ended end with that."""
        machine = self._machine
        if machine.state not in OVER:
            self._perform(machine.fail(error))
        self._timer.cancel()
        if self._run is not None and self._run.outcome is not None:
            # A rewind may be cut short before its first step, with the cluster.
            self._done(self._run)

    async def is_current(self, within: float) -> bool:
        """Ask the coordinator whether the producer still has its transactional id.

        If not, the producer is over, and so it is if that cannot be told: the request
        could arrive late, and end the next transaction. No run begins meanwhile.

        Args:
            within: seconds for the answer.
        """
        machine = self._machine
        if machine.state is not TxnState.READY or self._run is not None:
            return False
        run = self._run = Run(_nothing)
        request = machine.recheck()
        try:
            answer = await self._ask_again(request, within)
        except KafkaError as error:
            self._fail(error)
        except BaseException:
            self._fail(ClosedError(f"{self._rpc.name}: the check was cancelled"))
            raise
        else:
            self._rechecked(request, answer)
        finally:
            self._done(run)
        return machine.state is TxnState.READY

    def _rechecked(self, request: End, answer: EndTxnResponse) -> None:
        code = answer.error_code
        identity = IdAndEpoch(answer.producer_id, answer.producer_epoch)
        if self._machine.rechecked(request, code, identity):
            return
        error = self._error(code, f"{_what(request)} again", api=ApiKey.END_TXN)
        if code in FENCING:
            self._perform(self._machine.fence(error))
        else:
            self._fail(error)

    async def _ask_again(self, request: End, within: float) -> EndTxnResponse:
        is_harmless = request is self._machine.last_end
        unanswered = Unanswered()

        def code(answer: EndTxnResponse) -> int:
            unanswered.answered()
            return answer.error_code

        def check() -> None:
            if unanswered.is_pending and not is_harmless:
                raise ClosedError(f"{self._rpc.name}: {_what(request)} got no answer")

        return await self._rpc.repeat(
            self._end_request(request),
            self._attempts(_what(request), within),
            timeout=self._request_timeout,
            code=code,
            max_version=self._end_version(request),
            min_version=END_TV2 if request.protocol is Protocol.TV2 else 0,
            pace=Pace(_ASKED_AT_ONCE),
            on_sent=unanswered.sent,
            check=check,
        )

    # ---- runs ------------------------------------------------------------------------

    async def begin(self, run: Run) -> None:
        """Begin a run, after all that were asked for before.

        Raises:
            KafkaTimeout: the end of the run before is not known in ``max_block_ms``.
            KafkaError: the producer is over: Fenced, for example.
        """
        self._check_over()
        began = self._now()
        if self._run is not None:
            await self._turn()
        self._run = run
        try:
            if self._is_closing or self._machine.state is not TxnState.READY:
                await self._until_ready()
            protocol = self._protocol()
            if self._machine.needs_bump(protocol):
                self._perform(self._machine.bump())
                await self._until_ready()
                protocol = self._protocol()
        except BaseException:
            self._next_turn()
            raise
        run.is_open = True
        self._accumulator.gate.remove_barrier(Barrier.NO_TRANSACTION)
        self._perform(self._machine.begin(self._now(), protocol))
        self._report_step("begin", began)

    def not_begun(self, run: Run) -> None:
        """Note that the begin of a run has failed: nothing of it was written."""
        run.outcome = TransactionOutcome.ABORTED
        run.is_done = True
        run.ended.notify_all()

    async def _turn(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        if self._run is not None and self._run.is_late:
            self._bound(waiter)
        try:
            await waiter
        except BaseException:
            # Race: its turn had come, and the task was cancelled before it ran.
            if waiter.done() and not waiter.cancelled() and not waiter.exception():
                self._next_turn()
            elif waiter in self._waiters:
                self._waiters.remove(waiter)
            raise

    def _next_turn(self) -> None:
        # _run stays set while there is another turn: nobody must come in between.
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._run = None

    def _bound(self, waiter: asyncio.Future[None]) -> None:
        # The outcome of the run before is unknown, perhaps for long.
        def fail() -> None:
            if not waiter.done():
                waiter.set_exception(self._unknown())

        timer = asyncio.get_running_loop().call_later(self._max_block, fail)
        waiter.add_done_callback(lambda _: timer.cancel())

    async def _until_ready(self) -> None:
        machine = self._machine
        deadline = inf
        while machine.state is not TxnState.READY or self._is_closing:
            if self._is_closing:  # since the turn was given to it, or meanwhile
                raise ClosedError("the producer was closed")
            self._check_over()
            deadline = min(deadline, self._now() + self._max_block)
            with anyio.move_on_after(deadline - self._now()) as waiting:
                await self._changed.wait()
            if waiting.cancelled_caught:
                raise KafkaTimeout(
                    f"{self._rpc.name}: the end of the transaction before is not known "
                    f"after max_block_ms={self._config.max_block_ms}"
                )

    def _protocol(self) -> Protocol:
        level = self._cluster.feature_level(_FEATURE)
        return Protocol.TV2 if level >= _TV2_LEVEL else Protocol.TV1

    def check(self, run: Run) -> None:
        """Raise unless records and offsets can be taken into the run.

        Raises:
            UsageError: it was not begun, or its end was asked for.
            TransactionAborted: it cannot be committed any more.
            KafkaError: the producer is over.
        """
        if run.is_open and self.is_committable(run):
            return  # as for nearly every record
        self._check_over()
        if not run.is_open or not self._has_turn(run):
            raise UsageError(
                "the transaction has ended, or was not begun: everything that is sent "
                "in it must be sent before the end of its block"
            )
        self._check_committable(run)

    def _check_committable(self, run: Run) -> None:
        self._check_over()
        if not self.is_committable(run):
            raise self._aborted(run)

    def is_committable(self, run: Run) -> bool:
        """Whether the run is open, and nothing has happened that dooms it."""
        return (
            self._machine.state is TxnState.OPEN
            and run is self._run
            and run.outcome is None
        )

    def begin_commit(self, run: Run) -> None:
        """Take nothing more in, and let what was taken in leave."""
        self._check_over()
        self._close_run(run)
        self._let_leave()

    async def commit(self, run: Run) -> None:
        """Commit a run, after `begin_commit`.

        If the call is cancelled before EndTxn is sent, the run is aborted, and the call
        waits a second for that; later the commit goes on behind.

        Raises:
            TransactionAborted: it could not be committed; its cause is the reason.
            OutcomeUnknown: EndTxn was not answered in ``max_block_ms``.
            KafkaError: the producer is over: Fenced, for example.
        """
        if self._has_turn(run):
            if self._machine.state is TxnState.DOOMED:
                self._abort(run, run.cause, run.reason)
            elif self._machine.state is TxnState.OPEN:
                self._machine.commit()
                self._look()
        try:
            await self._wait_done(run)
        except BaseException:
            if self._has_turn(run) and self._machine.state is TxnState.COMMITTING:
                await self.abort_behind(run, "cancelled")
            raise
        self._raise_outcome(run)

    async def detach(self, run: Run) -> DetachedTransaction:
        """Leave the end of a run to another process, after `begin_commit`.

        If the call is cancelled, the run is aborted, and the call waits a second for
        that.

        Raises:
            TransactionAborted: it could not be committed; its cause is the reason.
            KafkaError: the producer is over: Fenced, for example.
        """
        machine = self._machine
        if self._has_turn(run):
            if machine.state is TxnState.DOOMED:
                self._abort(run, run.cause, run.reason)
            elif machine.state is TxnState.OPEN:
                machine.detach()
                self._look()
        try:
            while self._has_turn(run) and machine.state is TxnState.DETACHING:
                # Race: the step is made here and not where the last answer arrives.
                # So a call that is cancelled never leaves a transaction open of which
                # its caller knows nothing.
                if machine.is_detachable:
                    return self._detached(run)
                await self._changed.wait()
            await self._wait_done(run)
        except BaseException:
            if self._has_turn(run) and machine.state is TxnState.DETACHING:
                await self.abort_behind(run, "cancelled")
            raise
        self._check_over()
        raise self._aborted(run)

    def _detached(self, run: Run) -> DetachedTransaction:
        machine = self._machine
        assert machine.identity is not None
        end = End(machine.identity, machine.protocol, is_commit=True)
        detached = DetachedTransaction.of(
            self.transactional_id, end, is_empty=not machine.is_started
        )
        over = UsageError(
            f"{self._rpc.name}: the end of its transaction was left to another process "
            "(detach); this producer can only be closed"
        )
        self._perform(machine.detached(over))
        self._accumulator.expire_at(inf)
        self._report_step("detach", run.ends_since)
        run.is_detached = True
        run.outcome = TransactionOutcome.UNKNOWN
        self._done(run)
        return detached

    async def abort(self, run: Run) -> None:
        """Abort a run.

        If the call is cancelled, the abort goes on behind, and the call waits a second
        for it.

        Raises:
            RequestTimeout: it was not acknowledged in ``max_block_ms``; it goes on.
            KafkaError: the producer is over: Fenced, for example.
        """
        self._abort(run, None, "by the user")
        try:
            await self._wait_done(run)
        except BaseException:
            await self.abort_behind(run, "cancelled")
            raise
        if not run.is_done:
            raise RequestTimeout(
                f"{self._rpc.name}: the abort was not acknowledged within "
                f"max_block_ms={self._config.max_block_ms}; it goes on"
            )
        self._check_over()

    async def abort_behind(self, run: Run, reason: str) -> None:
        """Abort a run, and wait for that a second at most."""
        self._abort(run, None, reason)
        with anyio.CancelScope(shield=True), anyio.move_on_after(_CANCELLED):
            await self._wait_done(run)

    async def outcome(self, run: Run) -> TransactionOutcome:
        """Wait until the outcome of a run is known.

        Raises:
            OutcomeUnknown: it will never be known: the producer was closed, or fenced,
                while EndTxn had no answer; or the run was detached.
        """
        while not run.is_done:
            await run.ended.wait()
        assert run.outcome is not None
        if run.is_detached:
            raise OutcomeUnknown(
                f"{self._rpc.name}: the end of the transaction was left to another "
                "process (detach), which alone learns the outcome"
            )
        if run.outcome is TransactionOutcome.UNKNOWN:
            raise self._unknown()
        return run.outcome

    def doom(
        self, run: Run, error: KafkaError, reason: str, *, has_harm: bool = False
    ) -> None:
        """Note that a run cannot be committed, for a reason that no record gave.

        Args:
            run: the run; nothing changes if it has ended, or EndTxn was sent.
            error: why; the first one counts.
            reason: the same in a few words.
            has_harm: whether a request of it may still take effect after its end.
        """
        # Once EndTxn is sent, a partition may go: its offsets are in the transaction.
        if self._has_turn(run) and self._machine.state in _DOOMABLE:
            self._doom(error, reason, has_harm=has_harm)

    def _close_run(self, run: Run) -> None:
        if run.is_ending:
            return
        run.is_open = False
        run.is_ending = True
        run.ends_since = self._now()
        run.on_closed()
        self._accumulator.gate.raise_barrier(Barrier.NO_TRANSACTION)

    def _abort(self, run: Run, cause: KafkaError | None, reason: str) -> None:
        machine = self._machine
        if not self._has_turn(run) or machine.state not in _ABORTABLE:
            return  # it has ended, or EndTxn was sent: only its answer leads on
        self._close_run(run)
        if run.cause is None and not run.reason:
            run.cause, run.reason = cause, reason
        self._perform(machine.abort())
        self._look()

    def _has_turn(self, run: Run) -> bool:
        return run is self._run and run.outcome is None

    async def _wait_done(self, run: Run) -> None:
        while not run.is_done and not run.is_late:
            await run.ended.wait()

    def _raise_outcome(self, run: Run) -> None:
        if not run.is_done or run.outcome is TransactionOutcome.UNKNOWN:
            raise self._unknown()
        if run.outcome is TransactionOutcome.COMMITTED:
            return
        self._check_over()
        raise self._aborted(run)

    def _aborted(self, run: Run) -> TransactionAborted:
        detail = f": {run.cause}" if run.cause is not None else ""
        error = TransactionAborted(
            f"the transaction of {self.transactional_id!r} was aborted "
            f"({run.reason}){detail}",
            reason=run.reason,
        )
        error.__cause__ = run.cause
        return error

    def _unknown(self) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"{self._rpc.name}: EndTxn was not answered within "
            f"max_block_ms={self._config.max_block_ms} by its coordinator, broker "
            f"{self._rpc.node_id}"
        )

    def _check_over(self) -> None:
        if self._machine.state in OVER:
            raise self._why_over()

    def _why_over(self) -> KafkaError:
        # Each call gets an error of its own, because it is raised in another task.
        cause = self._machine.cause
        assert cause is not None
        error = copy(cause)
        error.__cause__ = cause.__cause__
        return error

    # ---- what the sender tells -------------------------------------------------------

    @property
    def produce_versions(self) -> tuple[int, int]:
        """The lowest and the highest version of Produce that means the protocol."""
        return _PRODUCE_VERSIONS[self._machine.protocol]

    @property
    def is_first_checked(self) -> bool:
        """Whether every leader wants the sequence of the transaction to begin at 0.

        A batch is sent on an open connection, so the version of its leader is known.
        """
        return (
            self._machine.protocol is Protocol.TV2
            and self._cluster.lowest_version(ApiKey.PRODUCE) >= _PRODUCE_CHECKED
        )

    def partitions_wanted(self, partitions: Collection[TopicPartition]) -> None:
        """Note that batches wait for partitions that are not admitted."""
        if self._machine.request is None:
            self._perform(self._machine.want_partitions(self._now(), partitions))

    def sending(self, partitions: Collection[TopicPartition]) -> None:
        """Note that a Produce request with these partitions is sent now."""
        at = self._now()
        effects = self._machine.sending(at, partitions)
        if effects:
            self._first_sent_at = at
            self._perform(effects)

    def batches_ended(self) -> None:
        """Note that batches were answered, or have failed."""
        if self._first_sent_at is not None:
            self._machine.first_answered(self._now() - self._first_sent_at)
            self._first_sent_at = None
        is_drained = self._accumulator.is_drained
        has_left = not is_drained or self._identity.has_gap
        if has_left and self._machine.state in _DROPPING:
            # What was refused in the meantime is not sent again, and what follows a
            # gap in the sequence cannot be.
            self._drop_unsent()
            is_drained = self._accumulator.is_drained
        if is_drained:
            self._changed.notify_all()
            self._look()

    def failed(self, error: Exception, *, harm: Harm) -> None:
        """Note that a record of the run has failed."""
        cause = error if isinstance(error, KafkaError) else _wrapped(error)
        if harm is Harm.FATAL:
            self._fail(cause)
        else:
            self._doom(cause, "a record failed", has_harm=harm is Harm.BUMP)

    def _doom(self, error: KafkaError, reason: str, *, has_harm: bool) -> None:
        self._note_cause(error, reason)
        refusal = None
        if _is_in_doubt(error):
            code = ErrorCode.INVALID_PRODUCER_EPOCH
            refusal = self._error(code, "a broker has refused the epoch")
        machine = self._machine
        self._perform(
            machine.doom(self._now(), error, has_harm=has_harm, refusal=refusal)
        )
        self._abort_if_ending()

    def _note_cause(self, error: KafkaError, reason: str) -> None:
        run = self._run
        if run is not None and not run.reason:
            run.cause, run.reason = error, reason

    def _abort_if_ending(self) -> None:
        # Its owner has asked for the end already: nobody else would abort it.
        run = self._run
        if run is not None and run.is_ending and self._machine.state is TxnState.DOOMED:
            self._abort(run, run.cause, run.reason)

    def _look(self) -> None:
        """End the run if that was asked for, and nothing of it is under way."""
        run, machine = self._run, self._machine
        if (
            run is not None
            and machine.state in ENDING
            and not run.commits
            and self._accumulator.is_drained
        ):
            self._perform(machine.drained(self._now()))

    def _wake(self) -> None:
        if self._sender is not None:
            self._sender.wake()

    # ---- effects ---------------------------------------------------------------------

    def _perform(self, effects: Effects) -> None:
        accumulator = self._accumulator
        for effect in effects:
            match effect:
                case SendRequest(request=request):
                    self._send(request)
                case Adopt(identity=identity):
                    self._identity.obtained(identity)
                case Admit(partitions=partitions):
                    accumulator.gate.admitted = partitions
                case Started(deadline=deadline):
                    accumulator.expire_at(deadline)
                    self._timer.set(deadline)
                case DropUnsent():
                    self._drop_unsent()
                case TxnEnded(outcome=outcome):
                    self._ended(outcome)
        self._changed.notify_all()
        if self._interrupt is not None and self._machine.state not in ADDING:
            self._interrupt()

    def _time_passed(self) -> None:
        run, machine = self._run, self._machine
        if run is None or run.outcome is not None:
            return
        at = self._now()
        if machine.expired(at):
            error = KafkaTimeout(
                f"the transaction was open for longer than transaction_timeout_ms="
                f"{self._config.transaction_timeout_ms}"
            )
            self._doom(error, "timed out", has_harm=False)
        if at >= run.late_at:
            run.late_at, run.is_late = inf, True
            for waiter in self._waiters:
                self._bound(waiter)
            run.ended.notify_all()
        if at >= self._probes_until and isinstance(machine.request, Probe):
            self._probed(machine.request, is_at_once=False)
        times = machine.deadline, run.late_at, self._probes_until, inf
        ahead = min(when for when in times if when > at)
        if ahead < inf:
            self._timer.set(ahead)

    def _drop_unsent(self) -> None:
        run = self._run
        error: KafkaError
        if self._machine.state in OVER:
            error = self._why_over()
        elif run is not None:
            error = self._aborted(run)
        else:
            error = ClosedError("the producer has no open transaction")

        if self._identity.has_gap:
            self._identity.has_gap = False
            self._machine.harmed()

        def not_sent(batch: ProduceBatch | None) -> Exception:
            if batch is not None and batch.identity is not None:
                # It was numbered and refused: there is a gap before what follows it.
                self._machine.harmed()
            return error

        for receipt in self._accumulator.drop_unsent(not_sent):
            self._report(receipt)
        self._space.fail_waiting(error)
        self._wake()

    def _report(self, receipt: Receipt) -> None:
        assert receipt.error is not None
        tp = TopicPartition(receipt.topic, receipt.partition)
        self._cluster.observer.record_failed(tp, receipt.error, receipt.count)

    def _report_step(self, step: str, began: float) -> None:
        self._cluster.observer.transaction_step(
            self.transactional_id, step, self._now() - began
        )

    def _ended(self, outcome: TransactionOutcome) -> None:
        run = self._run
        assert run is not None
        if run.is_open:
            self._close_run(run)
        self._accumulator.expire_at(inf)
        run.outcome = outcome
        if run.cause is None and outcome is not TransactionOutcome.COMMITTED:
            run.cause = self._machine.cause
            run.reason = run.reason or _reason_of(run.cause)
        if _is_in_doubt(run.cause) and self._machine.state is not TxnState.FENCED:
            # The abort was accepted, so no other producer has the id.
            run.reason = "timed out"
        consumer = run.consumer
        if outcome is TransactionOutcome.COMMITTED:
            self._report_step("commit", run.ends_since)
            for offsets in run.offsets:
                offsets.committed()
            if consumer is not None:
                consumer.end()
            self._done(run)
            return
        if outcome is TransactionOutcome.ABORTED:
            self._report_step("abort", run.ends_since)
        if consumer is None:
            self._done(run)
        else:
            self._start_rewind(run, consumer)

    def _start_rewind(self, run: Run, consumer: JoinedConsumerPort) -> None:
        async def rewind() -> None:
            try:
                is_unknown = run.outcome is TransactionOutcome.UNKNOWN
                await consumer.rewind(is_unknown=is_unknown)
            except KafkaError as error:
                # The reads of the consumer raise it, too.
                if run.cause is not None:
                    run.cause.add_note(f"and the consumer was not rewound: {error!r}")
            finally:
                self._done(run)

        try:
            self._cluster.start_soon(rewind, "transaction: rewind")
        except ClosedError:
            # The producer has crashed. The consumer may live on, and would pass over
            # what it handed out.
            _ = start_detached(rewind(), "transaction: rewind")

    def _done(self, run: Run) -> None:
        if run.is_done:
            return
        run.is_done = True
        if run is self._run:
            self._next_turn()
        run.ended.notify_all()

    # ---- requests to the coordinator -------------------------------------------------

    def _send(self, request: Request) -> None:
        match request:
            case Initialise():
                self._start(partial(self._initialise, request, None), "InitProducerId")
            case AddPartitions():
                partitions, at = self._partitions_to_add(request), self._now()
                self._send_add(_Addition(request, partitions, _code_of_partitions, at))
            case AddOffsets():
                group, at = self._group_to_add(request), self._now()
                self._send_add(_Addition(request, group, _code_of_group, at))
            case End():
                self._send_end(request)
            case Probe():
                # Also where the coordinator is silent: it holds nothing up for longer.
                self._probes_until = self._now() + _PROBE_LIMIT
                self._timer.set(self._probes_until)
                self._probe(request, 1)

    def _start(self, step: Child, name: str) -> None:
        # Once the cluster is closed, `end` follows.
        with suppress(ClosedError):
            self._cluster.start_soon(step, f"transaction: {name}")

    def _busy(self) -> Busy:
        # As long as the coordinator may take, and then as long as the user waits.
        limit = self._transaction_timeout + self._max_block
        return Busy(self._rpc.name, limit, lambda: self._rpc.node_id)

    def _attempts(self, what: str, within: float | None) -> Attempts:
        what = f"{what} of transactional id {self.transactional_id!r}"
        return Attempts(what, self._cluster.retry_policy, within)

    def _error(
        self, code: int, what: str, *, api: int = -1, group: str = ""
    ) -> KafkaError:
        why = ""
        if code == FORGOTTEN:
            why = (
                "; the coordinator does not know the producer's id any more: it was "
                "idle for longer than transactional.id.expiration.ms, or another "
                "producer with this transactional id was started"
            )
        if code in FENCING:
            why = "; another producer with this transactional id was started"
            if self._machine.protocol is Protocol.TV1:
                why += (
                    ", or the coordinator aborted the transaction after "
                    f"transaction_timeout_ms={self._config.transaction_timeout_ms}"
                )
        return broker_error(
            code,
            f"{self._rpc.name}: {what}{why}",
            api=api,
            group=group,
            transactional_id=self.transactional_id,
        )

    async def _initialise(self, request: Initialise, within: float | None) -> None:
        machine, identity = self._machine, request.identity
        message = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self._config.transaction_timeout_ms,
        )
        if identity is not None:
            message.producer_id = identity.producer_id
            message.producer_epoch = identity.epoch
        doubts = Doubts(ApiKey.INIT_PRODUCER_ID, self._now)
        try:
            answer = await self._rpc.repeat(
                message,
                self._attempts("InitProducerId", within),
                timeout=self._request_timeout,
                code=lambda answer: doubts.code(answer.error_code),
                min_version=0 if identity is None else _INIT_BUMP,
                pace=self._busy(),
            )
        except UnsupportedVersion:
            if identity is None:
                raise
            # Before KIP-360, only a new life changes the epoch.
            await self._initialise(Initialise(None), within)
            return
        except KafkaError as error:
            if machine.state is TxnState.BUMPING:
                self._fail(error)
            if machine.state is not TxnState.INITIALISING:
                return
            machine.not_initialised()
            raise
        code = answer.error_code
        if machine.state not in {TxnState.INITIALISING, TxnState.BUMPING}:
            return  # the producer is over
        if code == FORGOTTEN and identity is not None:
            # Kafka gives a new id here; a coordinator that does not gives it to a
            # producer that names none.
            await self._initialise(Initialise(None), within)
            return
        if not code:
            obtained = IdAndEpoch(answer.producer_id, answer.producer_epoch)
            self._perform(machine.initialised(obtained, self._protocol()))
            return
        self._not_initialised(code)

    def _not_initialised(self, code: int) -> None:
        machine = self._machine
        error = self._error(
            code, "InitProducerId was refused", api=ApiKey.INIT_PRODUCER_ID
        )
        if code == ErrorCode.INVALID_TRANSACTION_TIMEOUT:
            refused = error
            error = ConfigurationError(
                f"transaction_timeout_ms={self._config.transaction_timeout_ms} is more "
                "than transaction.max.timeout.ms of the brokers"
            )
            error.__cause__ = refused
        if code in FENCING:
            self._perform(machine.fence(error))
        elif machine.state is TxnState.INITIALISING and (
            is_foreign(ApiKey.INIT_PRODUCER_ID, code)
            or reaction(ApiKey.INIT_PRODUCER_ID, code).step is ReactionStep.ABORT
        ):
            self._refusal = error
            machine.not_initialised()
        else:
            self._fail(error)

    def _fail(self, error: KafkaError) -> None:
        """The producer is over, for another reason than another producer."""
        if self._machine.state not in OVER and _REPLACE not in str(error):
            error.args = (f"{error}; {_REPLACE}",)
        self._perform(self._machine.fail(error))

    def _partitions_to_add(self, request: AddPartitions) -> AddPartitionsToTxnRequest:
        topics: dict[str, list[int]] = {}
        for tp in request.partitions:
            topics.setdefault(tp.topic, []).append(tp.partition)
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=request.identity.producer_id,
            v3_and_below_producer_epoch=request.identity.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=name, partitions=partitions)
                for name, partitions in topics.items()
            ],
        )

    def _group_to_add(self, request: AddOffsets) -> AddOffsetsToTxnRequest:
        return AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=request.identity.producer_id,
            producer_epoch=request.identity.epoch,
            group_id=request.group_id,
        )

    def _send_add(self, addition: _Addition[ResponseT]) -> None:
        """Add something at once if the coordinator's connection is open.

        That is the usual case, and costs no task, also while the markers of the
        transaction before are written. What has to be sent again for another reason is
        left to `_add`.
        """

        def leave_to_task(*, is_sent: bool) -> None:
            self._start(partial(self._add, addition, is_sent=is_sent), addition.what)

        def answered(answer: ResponseT | Exception) -> None:
            if self._machine.request is not addition.request:
                return  # the producer is over
            if isinstance(answer, Exception):
                leave_to_task(is_sent=True)
                return
            found = addition.code_of(answer)
            is_wanted = self._machine.state in ADDING
            if not (found and is_wanted and reaction(message.API_KEY, found).retry):
                self._add_answered(addition, found, answer, was_lost=False)
            elif (
                found == ErrorCode.CONCURRENT_TRANSACTIONS
                and addition.sent < _ASKED_AT_ONCE
            ):
                self._send_add(addition)
            else:
                leave_to_task(is_sent=False)

        message = addition.message
        connection = self._rpc.ready(ConnectionClass.SHARED)
        if connection is None or self._machine.state is TxnState.SEALING:
            leave_to_task(is_sent=False)
            return
        addition.sent += 1
        connection.submit_to(
            _InFlight(answered, self._crash),
            message,
            timeout=min(self._request_timeout, self._transaction_timeout),
        )

    async def _add(self, addition: _Addition[ResponseT], *, is_sent: bool) -> None:
        machine, request, message = self._machine, addition.request, addition.message
        unanswered = Unanswered()
        unanswered.is_pending = is_sent
        is_seal = machine.state is TxnState.SEALING
        left = self._transaction_timeout - (self._now() - addition.began)

        def code(answer: ResponseT) -> int:
            unanswered.answered()
            found = addition.code_of(answer)
            if is_seal and found == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return ErrorCode.OPERATION_NOT_ATTEMPTED  # its topic was deleted
            if not is_seal and machine.state not in ADDING:
                # Nothing is to be added any more, and this attempt added nothing.
                return found and ErrorCode.OPERATION_NOT_ATTEMPTED
            return found

        try:
            answer = await self._rpc.repeat(
                message,
                self._attempts(addition.what, None if is_seal else max(0.0, left)),
                timeout=self._request_timeout,
                code=code,
                pace=self._busy() if is_seal else Pace(0),
                on_sent=unanswered.sent,
                check=partial(self._check_asked, request),
            )
        except KafkaError as failure:
            if machine.request is not request:
                return  # the producer is over
            if is_seal:
                self._fail(failure)
            else:
                self._not_added(failure, is_lost=unanswered.may_arrive)
            return
        if machine.request is request:
            found = addition.code_of(answer)
            self._add_answered(addition, found, answer, was_lost=unanswered.was_lost)

    def _add_answered(
        self,
        addition: _Addition[ResponseT],
        found: int,
        answer: ResponseT,
        *,
        was_lost: bool,
    ) -> None:
        if found:
            self._add_refused(addition, found, answer, was_lost=was_lost)
            return
        if was_lost:
            self._machine.harmed()
        self._after_adding(self._machine.added(self._now()))

    def _add_refused(
        self,
        addition: _Addition[ResponseT],
        found: int,
        answer: ResponseT,
        *,
        was_lost: bool,
    ) -> None:
        machine, api = self._machine, addition.message.API_KEY
        error = self._error(found, f"{addition.what} was refused", api=api)
        refused = reaction(api, found)
        if found in FENCING:
            self._perform(machine.fence(error))
        elif refused.step is ReactionStep.FATAL or (
            machine.state is TxnState.SEALING and is_foreign(api, found)
        ):
            self._fail(error)
        elif machine.state is TxnState.SEALING and found == FORGOTTEN:
            self._perform(machine.forgotten_in_seal(error))
        elif machine.state is TxnState.SEALING:
            self._perform(machine.not_sealed(_refused_partitions(answer)))
        else:
            # A forgotten producer needs another epoch, as after a lost request. An
            # error that this API does not have says nothing of what was done.
            is_unclear = found in _FORGOTTEN or is_foreign(api, found)
            self._not_added(error, is_lost=is_unclear or was_lost)

    def _not_added(self, error: KafkaError, *, is_lost: bool) -> None:
        self._note_cause(error, "a partition or group was not added")
        self._perform(self._machine.not_added(self._now(), error, is_lost=is_lost))
        self._abort_if_ending()
        self._look()

    def _send_end(self, request: End) -> None:
        """Send EndTxn at once if the coordinator's connection is open.

        That is the usual case, and costs no task. An EndTxn that has to be sent again
        is left to `_end`; so is one that ends no run.
        """
        if self._machine.state is TxnState.SEALING:
            self._start(partial(self._end, request, is_sent=False), "EndTxn")
            return
        run, at = self._run, self._now()
        assert run is not None
        run.late_at = at + self._max_block
        self._timer.set(run.late_at)
        connection = self._rpc.ready(ConnectionClass.SHARED)
        if connection is None or not self._can_end(connection, request):
            self._start(partial(self._end, request, is_sent=False), "EndTxn")
            return

        def answered(answer: EndTxnResponse | Exception) -> None:
            if self._machine.request is not request:
                return  # the producer is over
            if isinstance(answer, Exception) or is_doubtful(request, answer):
                self._start(partial(self._end, request, is_sent=True), "EndTxn")
            elif answer.error_code and self._is_end_repeated(request, answer):
                self._start(partial(self._end, request, is_sent=False), "EndTxn")
            else:
                self._end_answered(request, answer)

        connection.submit_to(
            _InFlight(answered, self._crash),
            self._end_request(request),
            timeout=self._request_timeout,
            max_version=self._end_version(request),
        )

    def _is_end_repeated(self, request: End, answer: EndTxnResponse) -> bool:
        code = answer.error_code
        return reaction(ApiKey.END_TXN, code).retry or (
            code in FENCING and self._is_perhaps_early(request)
        )

    @staticmethod
    def _end_version(request: End) -> int | None:
        return None if request.protocol is Protocol.TV2 else END_TV2 - 1

    def _can_end(self, connection: CoordinatorConnection, request: End) -> bool:
        if request.protocol is Protocol.TV1:
            return True
        versions = connection.versions
        return (versions.max_version(ApiKey.END_TXN) or 0) >= END_TV2

    async def _end(self, request: End, *, is_sent: bool, is_first: bool = True) -> None:
        machine = self._machine
        is_tv2 = request.protocol is Protocol.TV2
        unanswered = Unanswered(machine.end_lost)
        unanswered.is_pending = is_sent

        doubts = Doubts(ApiKey.END_TXN, self._now)

        def code(answer: EndTxnResponse) -> int:
            # What says nothing of the outcome counts as no answer.
            if is_doubtful(request, answer) and doubts.are_left():
                return ASK_AGAIN
            unanswered.answered()
            return answer.error_code

        try:
            answer = await self._rpc.repeat(
                self._end_request(request),
                self._attempts(_what(request), None),
                timeout=self._request_timeout,
                code=code,
                max_version=self._end_version(request),
                min_version=END_TV2 if is_tv2 else 0,
                pace=self._busy(),
                on_sent=unanswered.sent,
                check=partial(self._check_asked, request),
            )
        except KafkaError as failure:
            if machine.request is not request:
                return  # the producer is over
            if unanswered.is_pending:
                machine.end_lost()
            if is_tv2 and isinstance(failure, UnsupportedVersion):
                self._perform(machine.end_unsupported(failure))
            else:
                self._fail(failure)
            return
        is_fenced = is_first and answer.error_code in FENCING
        is_early = is_fenced and await self._await_markers(request)
        if is_early and machine.request is request:
            await self._end(request, is_sent=False, is_first=False)
        elif machine.request is request:
            self._end_answered(request, answer)

    def _is_perhaps_early(self, request: End) -> bool:
        return request.protocol is Protocol.TV2 and self._machine.last_end is not None

    async def _await_markers(self, request: End) -> bool:
        """Wait until the end of the transaction before is complete.

        Until then TV2's coordinator may refuse the new epoch as if it were fenced. That
        is met by a transaction of which no record was accepted.

        Returns:
            Whether it was found complete; not so if another producer has the id.
        """
        last = self._machine.last_end
        if last is None or not self._is_perhaps_early(request):
            return False
        try:
            answer = await self._rpc.repeat(
                self._end_request(last),
                self._attempts(_what(last), None),
                timeout=self._request_timeout,
                code=lambda answer: answer.error_code,
                min_version=END_TV2,
                pace=self._busy(),
                check=partial(self._check_asked, request),
            )
        except KafkaError:
            return False
        return answer.error_code == ErrorCode.NONE

    def _check_asked(self, request: Request) -> None:
        if self._machine.request is not request:
            raise ClosedError(f"{self._rpc.name}: nobody waits for the answer any more")

    def _end_answered(self, request: End, answer: EndTxnResponse) -> None:
        found = answer.error_code
        identity = None
        if not found and request.protocol is Protocol.TV2 and answer.producer_id >= 0:
            identity = IdAndEpoch(answer.producer_id, answer.producer_epoch)
            if not identity.may_follow(request.identity):
                identity = None  # InitProducerId tells the right one
        refused = None
        if found:
            refused = self._error(
                found, f"{_what(request)} was refused", api=ApiKey.END_TXN
            )
        machine = self._machine
        effects = machine.end_answered(self._now(), identity, refused, found)
        if refused is not None and machine.state is TxnState.FAILED:
            refused.args = (f"{refused}; {_REPLACE}",)
        self._perform(effects)

    def _end_request(self, request: End) -> EndTxnRequest:
        return end_request(self.transactional_id, request)

    def _probe(self, request: Probe, number: int) -> None:
        # Whatever it leads to, the transaction goes on: a probe can only save time.
        if self._machine.request is not request:
            return  # it was given up
        connection = self._rpc.ready(ConnectionClass.SHARED)
        if connection is None:
            self._probed(request, is_at_once=False)
            return

        def answered(answer: EndTxnResponse | Exception) -> None:
            if (
                isinstance(answer, Exception)
                or answer.error_code != ErrorCode.CONCURRENT_TRANSACTIONS
            ):
                self._probed(request, is_at_once=number == 1)
            elif number < _ASKED_AT_ONCE:
                self._probe(request, number + 1)
            else:
                again = partial(self._probe, request, number + 1)
                asyncio.get_running_loop().call_later(MARKER_PACE, again)

        connection.submit_to(
            _InFlight(answered, self._crash),
            self._end_request(request.end),
            timeout=self._request_timeout,
        )

    def _probed(self, request: Probe, *, is_at_once: bool) -> None:
        machine = self._machine
        if machine.request is request:
            self._probes_until = inf
            self._after_adding(machine.probed(self._now(), is_at_once=is_at_once))

    def _after_adding(self, effects: Effects) -> None:
        self._perform(effects)
        if self._sender is not None:
            self._sender.check_now()
        self._look()

    def _crash(self, failure: Exception) -> None:
        async def crash() -> None:
            raise failure

        self._start(crash, "callback")

    # ---- offsets ---------------------------------------------------------------------

    async def commit_offsets(self, run: Run, offsets: GroupOffsetsPort) -> None:
        """Commit the offsets of a group with the run.

        If the call is cancelled after the request was sent, the run is doomed.

        Raises:
            UnsupportedVersion: the broker would not check the member's place
                (TxnOffsetCommit 3, Kafka 2.5); nothing was sent.
            PartitionLost: an assignment has ended; the run is doomed.
            CommitFailed: the group went on without the member; the run is doomed.
            UnknownTopicOrPartition: a topic does not exist any more; the run is doomed.
            TransactionAborted: the run is doomed.
            KafkaError: the offsets were refused, and the run is doomed; or the producer
                is over.
        """
        self._check_committable(run)
        began = self._now()
        group_id = offsets.identity().group_id
        rpc = self._groups.get(group_id)
        if rpc is None:
            rpc = CoordinatorRpc(self._cluster, CoordinatorKind.GROUP, group_id)
            self._groups[group_id] = rpc
        unanswered = Unanswered()
        run.commits += 1
        try:
            await self._commit_in_turn(run, rpc, offsets, unanswered)
        except UnsupportedVersion:
            raise
        except _Useless:
            if unanswered.may_arrive:
                self._machine.harmed(has_late=True)
            self._check_committable(run)
            raise
        except KafkaError as error:
            self.doom(run, error, _NOT_COMMITTED, has_harm=unanswered.may_arrive)
            raise
        except BaseException:
            if unanswered.may_arrive:
                cancelled = KafkaTimeout("the commit of offsets was cancelled")
                self.doom(run, cancelled, _NOT_COMMITTED, has_harm=True)
            raise
        finally:
            run.commits -= 1
            if unanswered.was_lost:
                run.is_commit_lost = True
                self._machine.harmed(has_late=True)
            self._look()
        run.offsets.append(offsets)
        self._report_step("send_offsets", began)

    async def _commit_in_turn(
        self,
        run: Run,
        rpc: CoordinatorRpc,
        offsets: GroupOffsetsPort,
        unanswered: Unanswered,
    ) -> None:
        # In the order of the calls: in a transaction the last one counts.
        async with self._commit_order:
            self._check_committable(run)  # it may have been doomed meanwhile
            await self._check_fencing(run, rpc, offsets)
            await self._until_written()
            self._check_committable(run)
            await self._until_group_added(run, rpc.key)
            _check_order(run, rpc)
            await self._commit_offsets(run, rpc, offsets, unanswered)

    async def _check_fencing(
        self, run: Run, rpc: CoordinatorRpc, offsets: GroupOffsetsPort
    ) -> None:
        # Without a member there is nothing to check. But from here on the coordinator
        # counts as knowing the transaction: a call that is cancelled while it looks for
        # the group's coordinator must leave it empty.
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

    async def _connected(self, run: Run, rpc: CoordinatorRpc) -> CoordinatorConnection:
        what = f"a connection to the coordinator of {rpc.name}"
        attempts = Attempts(what, self._cluster.retry_policy, self._max_block)

        async def connect() -> CoordinatorConnection:
            self._check_useful(run, rpc)
            within = attempts.within(self._request_timeout)
            return await rpc.connection(ConnectionClass.SHARED, self._now() + within)

        check = partial(self._check_useful, run, rpc)
        return await self._while_useful(check, attempts.run(connect), Unanswered())

    async def _while_useful(
        self, check: Callable[[], None], work: Awaitable[T], unanswered: Unanswered
    ) -> T:
        # The abort waits for commits of offsets: it ends one of which nothing was sent.
        with anyio.CancelScope() as scope:

            def interrupt() -> None:
                if not unanswered.may_arrive:
                    scope.cancel()

            self._interrupt = interrupt
            try:
                return await work
            finally:
                self._interrupt = None
        check()
        raise InternalError("a commit of offsets was interrupted for no reason")

    def _let_leave(self) -> bool:
        # Whether nothing is there that has to be sent and acknowledged.
        accumulator = self._accumulator
        if accumulator.is_drained:
            return True
        if not accumulator.backlog.is_all_sent:
            accumulator.seal()
            if not isinstance(self._machine.request, Probe):  # after that it looks
                self._wake()
        return False

    async def _until_written(self) -> None:
        # The coordinator adds one thing at a time to a transaction. In TV2 the leaders
        # and the group's coordinator each ask it themselves, and the one that is turned
        # away asks again 20 ms later. So offsets wait until records were written, but
        # not for long: other tasks may go on sending.
        if self._machine.protocol is Protocol.TV1 or self._let_leave():
            return
        until = self._now() + _WRITTEN_LIMIT
        timer = asyncio.get_running_loop().call_at(until, self._changed.notify_all)
        try:
            while self._now() < until and not self._accumulator.is_drained:
                await self._changed.wait()
        finally:
            timer.cancel()

    async def _until_group_added(self, run: Run, group_id: str) -> None:
        machine = self._machine
        self._perform(machine.want_offsets(self._now(), group_id))
        while not machine.has_group(group_id):
            await self._changed.wait()
            self._check_committable(run)

    def _check_useful(self, run: Run, rpc: CoordinatorRpc) -> None:
        # The abort waits for the commit, which has become useless.
        if not self._has_turn(run) or self._machine.state not in ADDING:
            raise _Useless(f"{rpc.name}: the transaction is aborted")

    async def _commit_offsets(
        self,
        run: Run,
        rpc: CoordinatorRpc,
        offsets: GroupOffsetsPort,
        unanswered: Unanswered,
    ) -> None:
        machine = self._machine
        is_tv2 = machine.protocol is Protocol.TV2
        within = max(0.001, min(self._max_block, machine.deadline - self._now()))
        attempts = Attempts(
            f"the commit of offsets to {rpc.name}", self._cluster.retry_policy, within
        )
        doubt = Doubt(ASKED_FOR)

        def code(answer: TxnOffsetCommitResponse) -> int:
            unanswered.answered()
            self._check_topics(answer, offsets, doubt)
            return _code_of_commit(answer)

        def check() -> None:
            offsets.check()
            self._check_useful(run, rpc)
            if run.is_revoked:  # the group waits for the end of the transaction
                attempts.leave(BEFORE_RELEASE)

        while True:
            check()
            place = offsets.identity()
            sent = rpc.repeat(
                self._offsets_request(place, offsets.offsets),
                attempts,
                timeout=self._request_timeout,
                code=code,
                max_version=None if is_tv2 else _OFFSETS_TV2 - 1,
                min_version=_OFFSETS_TV2 if is_tv2 else 0,
                pace=Pace(_ASKED_AT_ONCE),
                on_sent=unanswered.sent,
                check=check,
            )
            answer = await self._while_useful(check, sent, unanswered)
            found = _code_of_commit(answer)
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
            api=ApiKey.TXN_OFFSET_COMMIT,
            group=rpc.key,
        )
        if code not in _STALE:
            raise self._offsets_refused(code, error)
        if not offsets.refused(code, place):
            failed = CommitFailed(f"{rpc.name} went on without this member")
            failed.__cause__ = error
            raise failed
        return error

    def _check_topics(
        self,
        answer: TxnOffsetCommitResponse,
        offsets: GroupOffsetsPort,
        doubt: Doubt,
    ) -> None:
        """Raise if the group's coordinator does not know a topic, and will not soon.

        No repetition brings a topic back that was deleted. The transaction is aborted,
        and with its next one the consumer reads what is left.
        """
        unknown = _unknown_topics(answer)
        if unknown and (doubt.is_over(self._now()) or offsets.lacks(unknown)):
            names = ", ".join(f"{tp.topic}-{tp.partition}" for tp in unknown)
            group = offsets.identity().group_id
            raise self._error(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"the coordinator of group {group!r} does not know {names}",
                api=ApiKey.TXN_OFFSET_COMMIT,
                group=group,
            )

    def _offsets_refused(self, code: int, error: KafkaError) -> KafkaError:
        if code == ErrorCode.INVALID_PRODUCER_EPOCH:
            return in_doubt(error)
        if code == FORGOTTEN:
            return forgotten(error)
        if reaction(ApiKey.TXN_OFFSET_COMMIT, code).step is ReactionStep.FATAL:
            self._fail(error)
        return error

    def _offsets_request(
        self,
        place: GroupMetadata,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
    ) -> TxnOffsetCommitRequest:
        identity = self._machine.identity
        assert identity is not None
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for tp, at in offsets.items():
            topics.setdefault(tp.topic, []).append(
                TxnOffsetCommitRequestPartition(
                    partition_index=tp.partition,
                    committed_offset=at.offset,
                    committed_leader_epoch=at.leader_epoch,
                    committed_metadata=at.metadata,
                )
            )
        return TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=place.group_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            generation_id=place.generation,
            member_id=place.member_id,
            group_instance_id=place.group_instance_id,
            topics=[
                TxnOffsetCommitRequestTopic(name=name, partitions=partitions)
                for name, partitions in topics.items()
            ],
        )


def _check_order(run: Run, rpc: CoordinatorRpc) -> None:
    if run.is_commit_lost:
        raise KafkaTimeout(
            f"{rpc.name}: a commit of offsets in this transaction got no answer, and "
            "may still arrive after another one"
        )


class _Useless(ClosedError):
    """A commit of offsets stops: its transaction is aborted."""


class _InFlight(Generic[ResponseT]):
    """A request without an answer yet; the connection calls it, in no task."""

    __slots__ = ("_answered", "_crash")

    def __init__(
        self,
        answered: Callable[[ResponseT | Exception], None],
        crash: Callable[[Exception], None],
    ) -> None:
        self._answered = answered
        self._crash = crash

    def done(self) -> bool:
        """Whether the answer is not wanted any more: never."""
        return False

    def set_result(self, response: ResponseT) -> None:
        """Take the answer."""
        self._take(response)

    def set_exception(self, error: Exception) -> None:
        """Take the error because of which there is no answer."""
        self._take(error)

    def _take(self, answer: ResponseT | Exception) -> None:
        # An exception would end in the connection, and whoever waits would wait on.
        try:
            self._answered(answer)
        except Exception as failure:  # noqa: BLE001 - crashes the producer
            self._crash(failure)


@dataclass(slots=True, eq=False)
class _Addition(Generic[ResponseT]):
    """A request to add partitions or a group, from its first attempt to its end.

    Attributes:
        request: what the machine asked for.
        message: the same for the coordinator.
        code_of: reads the error code of an answer.
        began: when that was.
        sent: how often it was sent outside a task.
    """

    request: AddPartitions | AddOffsets
    message: RequestMessage[ResponseT]
    code_of: Callable[[ResponseT], int]
    began: float
    sent: int = 0

    @property
    def what(self) -> str:
        return self.message.NAME.removesuffix("Request")


#: What to do about a producer that is over, though no other has its id.
_REPLACE: Final = "this producer is over: close it, and make another one in its place"


def _nothing() -> None:
    pass


def _what(request: End) -> str:
    return f"EndTxn ({'commit' if request.is_commit else 'abort'})"


def _code_of_group(answer: AddOffsetsToTxnResponse) -> int:
    return answer.error_code


def _code_of_partitions(answer: AddPartitionsToTxnResponse) -> int:
    # All or nothing: where one partition is refused, the others say "not attempted".
    codes = [
        result.partition_error_code
        for topic in answer.results_by_topic_v3_and_below
        for result in topic.results_by_partition
        if result.partition_error_code
    ]
    telling = (c for c in codes if c != ErrorCode.OPERATION_NOT_ATTEMPTED)
    return next(telling, codes[0] if codes else 0)


def _refused_partitions(answer: Response) -> list[TopicPartition]:
    if not isinstance(answer, AddPartitionsToTxnResponse):
        return []
    fine = {ErrorCode.NONE, ErrorCode.OPERATION_NOT_ATTEMPTED}
    return [
        TopicPartition(topic.name, result.partition_index)
        for topic in answer.results_by_topic_v3_and_below
        for result in topic.results_by_partition
        if result.partition_error_code not in fine
    ]


def _code_of_commit(answer: TxnOffsetCommitResponse) -> int:
    codes = [
        result.error_code
        for topic in answer.topics
        for result in topic.partitions
        if result.error_code
    ]
    # One that cannot be retried decides.
    final = (c for c in codes if not reaction(ApiKey.TXN_OFFSET_COMMIT, c).retry)
    return next(final, codes[0] if codes else 0)


def _unknown_topics(answer: TxnOffsetCommitResponse) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, result.partition_index)
        for topic in answer.topics
        for result in topic.partitions
        if result.error_code in UNKNOWN_TOPIC
    ]


def _reason_of(error: KafkaError | None) -> str:
    # Why EndTxn was refused. TV2's coordinator says "invalid state" of a transaction
    # that it has aborted by itself.
    code = getattr(error, "code", None)
    if code == FORGOTTEN:
        return "forgotten by the coordinator"
    return "timed out" if code == ErrorCode.INVALID_TXN_STATE else "refused"


def _is_in_doubt(error: KafkaError | None) -> bool:
    # A leader, or a group's coordinator, has refused the epoch.
    cause = None if error is None else error.__cause__
    return getattr(cause, "code", None) == ErrorCode.INVALID_PRODUCER_EPOCH


def _wrapped(error: Exception) -> KafkaError:
    wrapped = KafkaError(f"a record failed: {error!r}")
    wrapped.__cause__ = error
    return wrapped
