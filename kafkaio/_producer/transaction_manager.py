"""The transactions of one producer, put together.

`TransactionMachine` (`kafkaio._machines.transaction`) decides. `TransactionManager`
performs its effects, and begins and ends transactions for `Transaction`. It has three
parts: `RunTurns` queues the transactions of the producer, `TxnCoordinator` sends
requests to the transaction coordinator, and `TxnOffsets` commits offsets. The sender
reports sent and acknowledged batches by `kafkaio._producer.sender.TransactionPort`.

An end that was begun goes on by itself, in callbacks and short-lived tasks, so a caller
that waits for it may be cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from copy import copy
from functools import partial
from math import inf
from typing import Final

from kafkaio._client.cluster import Cluster
from kafkaio._config import ProducerConfig
from kafkaio._machines.accumulator import (
    Accumulator,
    Barrier,
    ProduceBatch,
    Receipt,
)
from kafkaio._machines.detached import DetachedTransaction
from kafkaio._machines.reactions import Harm
from kafkaio._machines.sequence import ProducerIdentity
from kafkaio._machines.transaction import (
    ADDING,
    ENDING,
    FORGOTTEN,
    OVER,
    Admit,
    Adopt,
    AskCoordinator,
    DropUnsent,
    Effects,
    End,
    Probe,
    Protocol,
    Started,
    TransactionMachine,
    TransactionOutcome,
    TxnEnded,
    TxnState,
)
from kafkaio._producer.backpressure import BufferSpace
from kafkaio._producer.sender import Sender
from kafkaio._producer.turns import Run, RunTurns
from kafkaio._producer.txn_coordinator import REPLACE, TxnCoordinator
from kafkaio._producer.txn_offsets import TxnOffsets
from kafkaio._runtime.broadcast import Broadcast
from kafkaio._runtime.clock import now
from kafkaio._runtime.scopes import CancelScope, move_on_after
from kafkaio._runtime.supervisor import start_detached
from kafkaio._runtime.timer import Timer
from kafkaio._transactional import GroupOffsetsPort, JoinedConsumerPort
from kafkaio.errors import (
    ClosedError,
    KafkaError,
    KafkaTimeout,
    OutcomeUnknown,
    RequestTimeout,
    TransactionAborted,
    UsageError,
)
from kafkaio.protocol import _api_numbers as apis
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.types import TopicPartition

#: The versions of Produce that mean each protocol.
_PRODUCE_VERSIONS: Final = {Protocol.TV1: (0, 11), Protocol.TV2: (12, 2**15 - 1)}
#: Leaders that know this version of Produce (Kafka 4.1) want a sequence to begin at 0
#: under a new epoch of TV2. Those of 4.0 take any number if they have no state of it.
_PRODUCE_CHECKED: Final = 13
#: Seconds that leaving a transaction by a cancellation waits for its abort.
_CANCELLED: Final = 1.0
#: States in which an abort can be asked for.
_ABORTABLE: Final = frozenset(
    {TxnState.OPEN, TxnState.COMMITTING, TxnState.DETACHING, TxnState.ABORT_ONLY}
)
#: States in which the transaction may still turn out not to be committed.
_FAILABLE: Final = _ABORTABLE | {TxnState.ABORTING}
#: States in which records that were not sent are dropped.
_DROPPING: Final = frozenset({TxnState.ABORT_ONLY, TxnState.ABORTING})
#: States in which late requests of an aborted transaction are made harmless.
_SETTLING: Final = frozenset({TxnState.BUMPING, TxnState.SEALING})


class TransactionManager:
    """Begins and ends the transactions of one producer.

    Args:
        cluster: finds the coordinators, and connects to them.
        config: the producer's options, with a ``transactional_id``.
        accumulator: the producer's records.
        identity: the producer's identity.
        space: the calls that wait for buffer memory.

    Attributes:
        transactional_id: the id under which the coordinator knows the producer.
        produce_versions: the lowest and the highest version of Produce that means the
            protocol of the open transaction.
        changed: wakes when the machine's state, or what is on the wire, has changed.
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
        self.produce_versions: tuple[int, int] = _PRODUCE_VERSIONS[Protocol.TV1]
        self._cluster = cluster
        self._config = config
        self._accumulator = accumulator
        self._identity = identity
        self._space = space
        self._sender: Sender | None = None
        # Reports a step of a transaction, and the seconds that it took.
        self._step = partial(cluster.observer.transaction_step, config.transactional_id)
        # The loop's own clock, once that is known: each transaction asks it often.
        self._now: Callable[[], float] = now
        self._max_block = config.max_block_ms / 1000
        self._machine = TransactionMachine(
            config.transaction_timeout_ms / 1000,
            adds_explicitly=config.transaction_adds_explicitly,
        )
        self._turns = RunTurns(self._max_block, self._unknown)
        self._coordinator = TxnCoordinator(cluster, config, self._machine, self)
        self._offsets = TxnOffsets(
            cluster,
            config,
            self._machine,
            self._turns,
            self._coordinator.error,
            self,
        )
        self.changed: Broadcast = Broadcast()
        # Fires no later than needed; to fire early is harmless. It serves many runs.
        self._timer = Timer(self._time_passed)
        # When the first write of the run was sent, until it is answered.
        self._first_sent_at: float | None = None
        accumulator.gate.raise_barrier(Barrier.NO_TRANSACTION)

    def __repr__(self) -> str:
        return f"<TransactionManager {self.transactional_id!r} | {self._machine!r}>"

    @property
    def state(self) -> str:
        """The state of the machine, in small letters."""
        return self._machine.state.name.lower()

    # ---- life ------------------------------------------------------------------------

    async def start(self, sender: Sender, within: float) -> None:
        """Obtain the identity; see `Producer.start` for the errors.

        A former producer of the transactional id is fenced, and its transaction is
        aborted.
        """
        self._sender = sender
        self._now = asyncio.get_running_loop().time
        began = self._now()
        await self._coordinator.start(within)
        self._step("init", self._now() - began)

    async def close(self, deadline: float) -> None:
        """Abort the open run, and wait for its end until ``deadline``."""
        self._turns.close()
        run = self._turns.run
        if run is not None:
            self._abort(run, ClosedError("the producer was closed"), "closed")
        self.changed.notify_all()  # for a run that waits to begin
        with CancelScope(deadline=deadline):
            while run is not None and not run.is_done:  # however late it is
                await self._turns.ended.wait()
            while self._machine.state in _SETTLING:
                await self.changed.wait()

    def end(self, error: KafkaError) -> None:
        """Note that the producer is over; runs that have not ended end with that."""
        if self._machine.state not in OVER:
            self.perform(self._machine.fail(error))
        self._timer.cancel()
        run = self._turns.run
        if run is not None and run.outcome is not None:
            # A rewind may be cut short before its first step, with the cluster.
            self._turns.end(run)

    async def is_current(self, within: float) -> bool:
        """Ask the coordinator whether the producer still has its transactional id.

        No run begins meanwhile; see `kafkaio._producer.current.is_current`.
        """
        machine = self._machine
        if machine.state is not TxnState.READY or self._turns.run is not None:
            return False
        run = self._turns.run = Run(_nothing)
        try:
            await self._coordinator.recheck(within)
        finally:
            self._turns.end(run)
        return machine.state is TxnState.READY

    # ---- the begin of a run ----------------------------------------------------------

    async def begin(self, run: Run) -> None:
        """Begin a run, after all that began to wait before; see `Transaction.begin`."""
        machine, turns = self._machine, self._turns
        if machine.state in OVER:
            raise self.why_over()
        began = self._now()
        if turns.run is not None:
            await turns.queue()
        turns.run = run
        try:
            if turns.is_closing or machine.state is not TxnState.READY:
                await self._until_ready()
            protocol = self._coordinator.protocol()
            if protocol is not machine.protocol and machine.needs_bump(protocol):
                self.perform(machine.bump())
                await self._until_ready()
                protocol = self._coordinator.protocol()
        except BaseException:
            turns.pass_on()
            raise
        run.is_open = True
        self.produce_versions = _PRODUCE_VERSIONS[protocol]
        self._accumulator.gate.remove_barrier(Barrier.NO_TRANSACTION)
        self.perform(machine.begin(self._now(), protocol))
        self._step("begin", self._now() - began)

    def not_begun(self, run: Run) -> None:
        """Note that the begin of a run has failed: nothing of it was written."""
        run.outcome = TransactionOutcome.ABORTED
        run.is_done = True
        self._turns.ended.notify_all()

    async def _until_ready(self) -> None:
        machine = self._machine
        deadline = inf
        while machine.state is not TxnState.READY or self._turns.is_closing:
            if self._turns.is_closing:  # since the turn was given to it, or meanwhile
                raise ClosedError("the producer was closed")
            self._check_over()
            deadline = min(deadline, self._now() + self._max_block)
            with move_on_after(deadline - self._now()) as waiting:
                await self.changed.wait()
            if waiting.cancelled_caught:
                raise KafkaTimeout(
                    f"{self._name}: the end of the transaction before is not known "
                    f"after max_block_ms={self._config.max_block_ms}"
                )

    # ---- an open run -----------------------------------------------------------------

    def check(self, run: Run) -> None:
        """Raise unless records and offsets can be taken into the run."""
        if (
            run.is_open
            and self._machine.state is TxnState.OPEN
            and run is self._turns.run
            and run.outcome is None
        ):
            return  # as for nearly every record
        self._check_over()
        if not run.is_open or not self._turns.has(run):
            raise UsageError(
                "the transaction has ended, or was not begun: everything that is sent "
                "in it must be sent before the end of its block"
            )
        self.check_committable(run)

    def check_committable(self, run: Run) -> None:
        """Raise unless the run is open and can be committed."""
        self._check_over()
        if not self.is_committable(run):
            raise self._aborted(run)

    def is_committable(self, run: Run) -> bool:
        """Whether the run is open and can be committed."""
        return self._machine.state is TxnState.OPEN and self._turns.has(run)

    async def commit_offsets(self, run: Run, offsets: GroupOffsetsPort) -> None:
        """Commit the offsets of a group with the run; see `TxnOffsets.commit`."""
        began = self._now()
        await self._offsets.commit(run, offsets)
        self._step("send_offsets", self._now() - began)

    def fail_run(
        self, run: Run, error: KafkaError, reason: str, *, has_harm: bool = False
    ) -> None:
        """Note that a run can only be aborted, for a reason that no record gave.

        Nothing changes if it has ended, or EndTxn was sent. The first error counts.
        With ``has_harm``, a request of it may still take effect after its end.
        """
        # Once EndTxn is sent, a partition may go: its offsets are in the transaction.
        if self._turns.has(run) and self._machine.state in _FAILABLE:
            self._fail_run(error, reason, has_harm=has_harm)

    def _fail_run(self, error: KafkaError, reason: str, *, has_harm: bool) -> None:
        run, machine = self._turns.run, self._machine
        if run is not None:
            run.note_cause(error, reason)
        refusal = None
        if _is_in_doubt(error):
            code = ErrorCode.INVALID_PRODUCER_EPOCH
            refusal = self._coordinator.error(code, "a broker has refused the epoch")
        self.perform(
            machine.mark_abort_only(
                self._now(), error, has_harm=has_harm, refusal=refusal
            )
        )
        self._abort_if_ending()

    # ---- the end of a run ------------------------------------------------------------

    def begin_commit(self, run: Run) -> None:
        """Accept nothing more, and send what was accepted."""
        if self._machine.state in OVER:
            raise self.why_over()
        self._close_run(run)
        if not self._accumulator.backlog.is_empty:
            self.flush()

    async def commit(self, run: Run) -> None:
        """Commit a run, after `begin_commit`; see `Transaction.commit`.

        If the call is cancelled before EndTxn is sent, the run is aborted, and the call
        waits a second for that; later the commit goes on behind.
        """
        if self._turns.has(run):
            if self._machine.state is TxnState.ABORT_ONLY:
                self._abort(run, run.cause, run.reason)
            elif self._machine.state is TxnState.OPEN:
                self._machine.commit()
                self.end_if_drained()
        try:
            await self._turns.wait(run)
        except BaseException:
            if self._turns.has(run) and self._machine.state is TxnState.COMMITTING:
                await self.abort_behind(run, "cancelled")
            raise
        if not run.is_done or run.outcome is TransactionOutcome.UNKNOWN:
            raise self._unknown()
        if run.outcome is not TransactionOutcome.COMMITTED:
            self._check_over()
            raise self._aborted(run)

    async def detach(self, run: Run) -> DetachedTransaction:
        """Leave the end of a run to another process, after `begin_commit`.

        The errors are those of `kafkaio._producer.detached.detach`. If the call is
        cancelled, the run is aborted, and the call waits a second for that.
        """
        machine = self._machine
        if self._turns.has(run):
            if machine.state is TxnState.ABORT_ONLY:
                self._abort(run, run.cause, run.reason)
            elif machine.state is TxnState.OPEN:
                machine.detach()
                self.end_if_drained()
        try:
            while self._turns.has(run) and machine.state is TxnState.DETACHING:
                # Race: the step is made here and not where the last answer arrives.
                # So a call that is cancelled never leaves a transaction open of which
                # its caller knows nothing.
                if machine.is_detachable:
                    return self._detached(run)
                await self.changed.wait()
            await self._turns.wait(run)
        except BaseException:
            if self._turns.has(run) and machine.state is TxnState.DETACHING:
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
            f"{self._name}: the end of its transaction was left to another process "
            "(detach); this producer can only be closed"
        )
        self.perform(machine.detached(over))
        self._accumulator.expire_at(inf)
        self._step("detach", self._now() - run.ends_since)
        run.is_detached = True
        run.outcome = TransactionOutcome.UNKNOWN
        self._turns.end(run)
        return detached

    async def abort(self, run: Run) -> None:
        """Abort a run; see `Transaction.abort`.

        If the call is cancelled, the abort goes on behind, and the call waits a second
        for it.
        """
        self._abort(run, None, "by the user")
        try:
            await self._turns.wait(run)
        except BaseException:
            await self.abort_behind(run, "cancelled")
            raise
        if not run.is_done:
            raise RequestTimeout(
                f"{self._name}: the abort was not acknowledged within "
                f"max_block_ms={self._config.max_block_ms}; it goes on"
            )
        self._check_over()

    async def abort_behind(self, run: Run, reason: str) -> None:
        """Abort a run, and wait for that a second at most."""
        self._abort(run, None, reason)
        with CancelScope(shield=True), move_on_after(_CANCELLED):
            await self._turns.wait(run)

    async def outcome(self, run: Run) -> TransactionOutcome:
        """Wait until the outcome of a run is known; see `Transaction.outcome`."""
        while not run.is_done:
            await self._turns.ended.wait()
        assert run.outcome is not None
        if run.is_detached:
            raise OutcomeUnknown(
                f"{self._name}: the end of the transaction was left to another "
                "process (detach), which alone learns the outcome"
            )
        if run.outcome is TransactionOutcome.UNKNOWN:
            raise self._unknown()
        return run.outcome

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
        if not self._turns.has(run) or machine.state not in _ABORTABLE:
            return  # it has ended, or EndTxn was sent: only its answer leads on
        self._close_run(run)
        run.note_cause(cause, reason)
        self.perform(machine.abort())
        self.end_if_drained()

    def _abort_if_ending(self) -> None:
        # The user has asked for its end already, and would not abort it again.
        run = self._turns.run
        if (
            run is not None
            and run.is_ending
            and self._machine.state is TxnState.ABORT_ONLY
        ):
            self._abort(run, run.cause, run.reason)

    def end_if_drained(self) -> None:
        """Send EndTxn if it was asked for and nothing is under way."""
        run, machine = self._turns.run, self._machine
        if (
            run is not None
            and machine.state in ENDING
            and not run.commits
            and self._accumulator.backlog.is_empty
        ):
            self.perform(machine.drained(self._now()))

    # ---- errors ----------------------------------------------------------------------

    @property
    def _name(self) -> str:
        return self._coordinator.rpc.name

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
            f"{self._name}: EndTxn was not answered within "
            f"max_block_ms={self._config.max_block_ms} by its coordinator, broker "
            f"{self._coordinator.rpc.node_id}"
        )

    def _check_over(self) -> None:
        if self._machine.state in OVER:
            raise self.why_over()

    def why_over(self) -> KafkaError:
        """Return the error of a producer that is over."""
        # Each call gets an error of its own, because it is raised in another task.
        cause = self._machine.cause
        assert cause is not None
        error = copy(cause)
        error.__cause__ = cause.__cause__
        return error

    # ---- the sender: `kafkaio._producer.sender.TransactionPort` ----------------------

    @property
    def is_first_checked(self) -> bool:
        """Whether every leader wants the sequence of the transaction to begin at 0.

        A batch is sent on an open connection, so the version of its leader is known.
        """
        return (
            self._machine.protocol is Protocol.TV2
            and self._cluster.announced.lowest(apis.PRODUCE) >= _PRODUCE_CHECKED
        )

    def partitions_wanted(self, partitions: Collection[TopicPartition]) -> None:
        """Note that batches wait for partitions that are not admitted."""
        if self._machine.request is None:
            self.perform(self._machine.want_partitions(self._now(), partitions))

    def sending(self, partitions: Collection[TopicPartition]) -> None:
        """Note that a Produce request with these partitions is sent now."""
        at = self._now()
        effects = self._machine.sending(at, partitions)
        if effects:
            self._first_sent_at = at
            self.perform(effects)

    def batches_ended(self) -> None:
        """Note that batches were answered, or have failed."""
        if self._first_sent_at is not None:
            self._machine.first_answered(self._now() - self._first_sent_at)
            self._first_sent_at = None
        is_drained = self._accumulator.backlog.is_empty
        has_left = not is_drained or self._identity.has_gap
        if has_left and self._machine.state in _DROPPING:
            # A batch that was refused meanwhile is not sent again, and one that
            # follows a gap in the sequence cannot be sent.
            self._drop_unsent()
            is_drained = self._accumulator.backlog.is_empty
        if is_drained:
            self.changed.notify_all()
            self.end_if_drained()

    def failed(self, error: Exception, *, harm: Harm) -> None:
        """Note that a record of the run has failed."""
        cause = error if isinstance(error, KafkaError) else _wrapped(error)
        if harm is Harm.FATAL:
            self.fail(cause)
        else:
            self._fail_run(cause, "a record failed", has_harm=harm is Harm.BUMP)

    # ---- the parts -------------------------------------------------------------------

    @property
    def is_drained(self) -> bool:
        """Whether no record waits or is on the wire."""
        return self._accumulator.backlog.is_empty

    def flush(self) -> bool:
        """Send waiting records; return whether there are none."""
        accumulator = self._accumulator
        if accumulator.backlog.is_empty:
            return True
        if not accumulator.backlog.is_all_sent:
            accumulator.seal()
            # After a probe, `added` lets the sender check.
            if self._sender is not None and not isinstance(
                self._machine.request, Probe
            ):
                self._sender.wake()
        return False

    def added(self, effects: Effects) -> None:
        """Perform the effects of an addition, and send the records that waited."""
        self.perform(effects)
        if self._sender is not None:
            self._sender.check_now()
        self.end_if_drained()

    def not_added(self, error: KafkaError, *, is_lost: bool) -> None:
        """Note a failed addition; `is_lost` if it may take effect all the same."""
        run = self._turns.run
        if run is not None:
            run.note_cause(error, "a partition or group was not added")
        self.perform(self._machine.not_added(self._now(), error, is_lost=is_lost))
        self._abort_if_ending()
        self.end_if_drained()

    def fail(self, error: KafkaError) -> None:
        """Note that the producer is over, and not fenced."""
        if self._machine.state not in OVER and REPLACE not in str(error):
            error.args = (f"{error}; {REPLACE}",)
        self.perform(self._machine.fail(error))

    # ---- effects ---------------------------------------------------------------------

    def perform(self, effects: Effects) -> None:
        """Perform effects of the machine, in their order."""
        accumulator = self._accumulator
        for effect in effects:
            match effect:
                case AskCoordinator(request=request):
                    run = self._turns.run
                    if self._machine.state is TxnState.UNKNOWN and run is not None:
                        # EndTxn of the run.
                        run.late_at = self._now() + self._max_block
                        self._timer.set(run.late_at)
                    self._coordinator.send(request)
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
        self.changed.notify_all()
        if self._offsets.interrupt is not None and self._machine.state not in ADDING:
            self._offsets.interrupt()

    def _time_passed(self) -> None:
        run, machine = self._turns.run, self._machine
        if run is None or run.outcome is not None:
            return
        at = self._now()
        if machine.expired(at):
            error = KafkaTimeout(
                f"the transaction was open for longer than transaction_timeout_ms="
                f"{self._config.transaction_timeout_ms}"
            )
            self._fail_run(error, "timed out", has_harm=False)
        if at >= run.late_at:
            self._turns.late(run)
        times = machine.deadline, run.late_at, inf
        ahead = min(when for when in times if when > at)
        if ahead < inf:
            self._timer.set(ahead)

    def _drop_unsent(self) -> None:
        run = self._turns.run
        error: KafkaError
        if self._machine.state in OVER:
            error = self.why_over()
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
        if run is not None:
            run.on_closed()
        if self._sender is not None:
            self._sender.wake()

    def _report(self, receipt: Receipt) -> None:
        assert receipt.error is not None
        tp = TopicPartition(receipt.topic, receipt.partition)
        self._cluster.observer.record_failed(tp, receipt.error, receipt.count)

    def _ended(self, outcome: TransactionOutcome) -> None:
        run = self._turns.run
        assert run is not None
        if run.is_open:
            self._close_run(run)
        self._accumulator.expire_at(inf)
        run.outcome = outcome
        consumer = run.consumer
        if outcome is TransactionOutcome.COMMITTED:
            self._step("commit", self._now() - run.ends_since)
            for offsets in run.offsets:
                offsets.committed()
            if consumer is not None:
                consumer.end()
            self._turns.end(run)
            return
        if run.cause is None:
            run.cause = self._machine.cause
            run.reason = run.reason or _reason_of(run.cause)
        if _is_in_doubt(run.cause) and self._machine.state is not TxnState.FENCED:
            # The abort was accepted, so no other producer has the id.
            run.reason = "timed out"
        if outcome is TransactionOutcome.ABORTED:
            self._step("abort", self._now() - run.ends_since)
        if consumer is None:
            self._turns.end(run)
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
                self._turns.end(run)

        try:
            self._cluster.start_soon(rewind, "transaction: rewind")
        except ClosedError:
            # The producer has crashed. The consumer may live on, and without the rewind
            # it would skip the records of the transaction.
            _ = start_detached(rewind(), "transaction: rewind")


def _nothing() -> None:
    pass


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
