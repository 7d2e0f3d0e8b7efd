"""The machine of transactions, beside a small model of what was promised.

`_Play` is a producer, its network and a coordinator of its own, written from the
protocol (KIP-98, KIP-360, KIP-890) and not from the machine. It calls the machine as a
producer does. Answers may be late, lost or errors; requests may be served and not
answered; the coordinator may abort by itself; another producer may take the id. What
the machine does is compared with what the coordinator has come to know.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Final

import pytest
from hypothesis import example, given, settings, strategies as st

from kafkaio._machines.detached import DetachedEnd, DetachedTransaction, end_of
from kafkaio._machines.sequence import IdAndEpoch
from kafkaio._machines.transaction import (
    FORGOTTEN,
    PROBE_WITHIN,
    PROBES_FOR_TRUST,
    AddOffsets,
    AddPartitions,
    Admit,
    Adopt,
    AskCoordinator,
    DropUnsent,
    Effects,
    End,
    Initialise,
    Probe,
    Protocol,
    Request,
    Started,
    TransactionMachine,
    TransactionOutcome,
    TxnEnded,
    TxnState,
)
from kafkaio.errors import InternalError, KafkaError
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.types import TopicPartition

TV1, TV2 = Protocol.TV1, Protocol.TV2
COMMITTED, ABORTED = TransactionOutcome.COMMITTED, TransactionOutcome.ABORTED
UNKNOWN = TransactionOutcome.UNKNOWN
PARTITIONS: Final = tuple(TopicPartition("t", number) for number in range(3))
GROUPS: Final = ("g", "h")
TIMEOUT: Final = 10.0
#: The last epoch of the model's coordinator: then there is a new producer id.
LAST_EPOCH: Final = 4
ERROR: Final = KafkaError("the reason")
#: Answers to EndTxn that are neither success nor the sign of another producer.
REFUSALS: Final = (
    ErrorCode.TRANSACTION_ABORTABLE,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)
#: States in which a transaction is open, and the name of each state in the machine.
ADDING: Final = ("open", "committing", "detaching")
OPEN: Final = (*ADDING, "abort_only")
OVER: Final = ("detached", "fenced", "failed")
SENDING: Final = (*OPEN, "aborting")
#: Where each call is in place. In any other state it must raise, and change nothing.
IN_PLACE: Final = {
    "initialise": ("uninitialised",),
    "initialised": ("initialising", "bumping"),
    "not_initialised": ("initialising",),
    "bump": ("ready",),
    "begin": ("ready",),
    "want_partitions": (*SENDING, *OVER),
    "want_offsets": (*SENDING, *OVER),
    "sending": (*SENDING, *OVER),
    "added": (*SENDING, *OVER, "sealing"),
    "not_added": (*SENDING, *OVER),
    "commit": ("open",),
    "detach": ("open",),
    "abort": OPEN,
    "mark_abort_only": (*SENDING, *OVER),
    "drained": ("committing", "aborting", "detaching"),
    "end_lost": ("unknown", *OVER, "sealing"),
    "end_answered": ("unknown", *OVER, "sealing"),
}


@dataclass(eq=False)
class Transaction:
    """What the producer of the model knows of one transaction."""

    protocol: Protocol
    identity: IdAndEpoch
    unsent: Counter[TopicPartition] = field(default_factory=Counter)
    on_wire: Counter[TopicPartition] = field(default_factory=Counter)
    #: Commits of offsets under way, by group.
    commits: list[str] = field(default_factory=list)
    #: When the coordinator was first told of it.
    first_at: float = inf
    is_begun_at: float = 0.0
    is_touched: bool = False
    #: Whether a request that ended it was sent and not answered.
    is_end_lost: bool = False
    #: Every EndTxn: its verdict; whether it was refused, and so not written.
    verdicts: list[bool] = field(default_factory=list)
    is_refused: bool = False
    #: Whether a leader has refused its epoch.
    is_doubted: bool = False
    #: Whether EndTxn was answered as if the coordinator did not know the id.
    is_forgotten: bool = False
    outcome: TransactionOutcome | None = None


class Coordinator:
    """The transaction coordinator, as Kafka has it."""

    def __init__(self) -> None:
        self.identity = IdAndEpoch(1, -1)
        self.open: Transaction | None = None
        self.committed: set[Transaction] = set()
        # TV2: the owner of what timed out; the end before, and what it was answered.
        self._timed_out: IdAndEpoch | None = None
        self._last: tuple[IdAndEpoch, bool, IdAndEpoch] | None = None
        self._last_verdict: bool | None = None
        # Whether it does not know the id any more: it was idle for too long.
        self.has_forgotten = False

    def forget(self) -> None:
        assert self.open is None
        self._timed_out = self._last = self._last_verdict = None
        self.has_forgotten = True

    def _next(self) -> IdAndEpoch:
        pid, epoch = self.identity.producer_id, self.identity.epoch
        fresh = (
            IdAndEpoch(pid + 1, 0)
            if epoch >= LAST_EPOCH
            else IdAndEpoch(pid, epoch + 1)
        )
        self.identity = fresh
        return fresh

    def knows(self, identity: IdAndEpoch) -> bool:
        return identity == self.identity and not self.has_forgotten

    def initialise(self, identity: IdAndEpoch | None) -> IdAndEpoch | None:
        if self.has_forgotten:
            self.has_forgotten = False
            self.identity = IdAndEpoch(self.identity.producer_id + 1, -1)
            return self._next()
        if identity is not None and not self.knows(identity):
            return None
        self.open = self._timed_out = self._last = self._last_verdict = None
        return self._next()

    def reached_by(self, transaction: Transaction) -> bool:
        if not self.knows(transaction.identity):
            return False
        assert self.open in (None, transaction), "a write joins another transaction"
        self.open = transaction
        return True

    def time_out(self) -> None:
        assert self.open is not None
        self._timed_out = self.identity if self.open.protocol is TV2 else None
        self.open = self._last = self._last_verdict = None
        self._next()

    def stolen(self) -> None:
        self.has_forgotten = False
        self.open = self._timed_out = self._last = self._last_verdict = None
        self._next()

    def end(self, request: End, of: Transaction) -> tuple[int, IdAndEpoch | None]:
        """Serve EndTxn; return the error code, and TV2's next identity."""
        if self.has_forgotten:
            return FORGOTTEN, None
        if request.protocol is TV1:
            return self._end_tv1(request, of), None
        if self._last is not None and request.identity == self._last[0]:
            same = request.is_commit is self._last[1]
            return (0, self._last[2]) if same else (ErrorCode.INVALID_TXN_STATE, None)
        if request.identity == self._timed_out:
            if request.is_commit:
                return ErrorCode.INVALID_TXN_STATE, None
        elif not self.knows(request.identity):
            return ErrorCode.PRODUCER_FENCED, None
        elif self.open is None and request.is_commit:
            return ErrorCode.INVALID_TXN_STATE, None
        self._written(request, of)
        self._timed_out = None
        self._last = request.identity, request.is_commit, self._next()
        return 0, self.identity

    def _end_tv1(self, request: End, of: Transaction) -> int:
        if not self.knows(request.identity):
            return ErrorCode.PRODUCER_FENCED
        if self.open is None:
            is_again = request.is_commit is self._last_verdict
            return 0 if is_again else ErrorCode.INVALID_TXN_STATE
        self._written(request, of)
        self._last_verdict = request.is_commit
        return 0

    def _written(self, request: End, of: Transaction) -> None:
        assert self.open in (None, of), "the end of one transaction ends another"
        if self.open is not None and request.is_commit:
            self.committed.add(self.open)
        self.open = None


class _Play:
    """A producer around the machine, the network, and the laws."""

    def __init__(self, choices: bytes, *, explicit: bool) -> None:
        self._choices: Iterator[int] = iter(choices)
        self.machine = TransactionMachine(TIMEOUT, adds_explicitly=explicit)
        self._explicit = explicit
        self.coordinator = Coordinator()
        self.now = 0.0
        self.phase = "uninitialised"
        self.request: Request | None = None
        self.identity: IdAndEpoch | None = None
        self.protocol = TV1
        self.all: list[Transaction] = []
        self.admitted: frozenset[TopicPartition] | None = frozenset()
        self.confirmed: set[TopicPartition] = set()
        # Epochs under which something may arrive late; under which TV1 has run.
        self._spent: set[IdAndEpoch] = set()
        self._old: set[IdAndEpoch] = set()
        # Requests that were lost and not served: they may be served late.
        self._late: list[tuple[End, Transaction]] = []
        self._last_end: End | None = None
        self._ended_at = -inf
        self._quick = 0
        self.has_been: set[str] = set()

    # ---- choices ---------------------------------------------------------------------

    def draw(self, count: int) -> int:
        """Return a number below the count; 0 when there are no more choices."""
        return next(self._choices, 0) % count

    def run(self) -> None:
        """Do what the choices say, then let all end."""
        for choice in self._choices:
            actions = self._actions()
            if choice >= 240:
                self._out_of_place()
            else:
                actions[choice % len(actions)]()
            self._look()
            self._check()
        self._finish()
        self._check_outcomes()

    @property
    def tx(self) -> Transaction:
        return self.all[-1]

    def _actions(self) -> list[Callable[[], None]]:
        if self.phase == "uninitialised":
            return [self._initialise]
        found = [self._tick, self._rare]
        if self.phase == "ready":
            found += [self._begin] * 6 + [self._bump, self._succeed]
        if self.phase == "open":
            found += [self._enqueue] * 3 + [self._commit, self._commit]
            found.append(self._detach)
        if self.phase in ADDING and not self.machine.is_detachable:
            found.append(self._want_offsets)
        if self.phase in OPEN:
            found.append(self._abort)
        if self.phase in SENDING:
            found += self._actions_on_wire()
        if self._late:
            found.append(self._late_end)
        if self.coordinator.open is not None:
            found.append(self._coordinator_aborts)
        return found + self._answers()

    def _actions_on_wire(self) -> list[Callable[[], None]]:
        found = [self._fail_record]
        if self._sendable():
            found += [self._send_batch] * 3
        if self.tx.on_wire.total():
            found += [self._batch_acked] * 4 + [self._batch_failed]
        if self.tx.commits:
            found += [self._offsets_answered] * 2
        return found

    def _answers(self) -> list[Callable[[], None]]:
        if self.phase == "sealing":
            return [self._seal_answered] * 3
        match self.request:
            case Initialise():
                return [self._init_answered] * 4 + [self._init_refused]
            case End(protocol=protocol):
                answers = [self._end_answered] * 3 + [self._end_lost] * 2
                unsupported = [self._end_unsupported] * (protocol is TV2)
                return [*answers, *unsupported, self._end_refused, self._end_refused]
            case AddPartitions() | AddOffsets():
                return [self._added] * 6 + [self._not_added]
            case Probe():
                return [self._probed] * 3
            case None:
                return []

    def _rare(self) -> None:
        rare = [self._successor, self._fail, self._fence]
        if self.coordinator.open is None and self.phase != "uninitialised":
            rare += [self.coordinator.forget] * 4
        if self.phase not in OVER:
            choice = self.draw(30)
            if choice < len(rare):
                rare[choice]()
        elif self.all:
            self._answer_late()

    # ---- calls of the machine --------------------------------------------------------

    def _take(self, effects: Effects) -> None:
        for effect in effects:
            match effect:
                case AskCoordinator(request=request):
                    self._sent(request)
                case Adopt(identity=identity):
                    self.identity = identity
                case Admit(partitions=partitions):
                    self._admits(partitions)
                case Started(deadline=deadline):
                    assert not self.tx.is_touched, "started twice"
                    self.tx.is_touched = True
                    assert deadline == self.tx.first_at + TIMEOUT
                case DropUnsent():
                    assert self.phase not in ADDING, "records dropped"
                    self.tx.unsent.clear()
                case TxnEnded(outcome=outcome):
                    self._ended(outcome)

    def _sent(self, request: Request) -> None:
        assert self.request is None, "two requests to the coordinator"
        self.request = request
        if self.phase in ("ready", "sealing"):
            self._seals(request)
            return
        match request:
            case Initialise(identity=identity):
                # Only a new life may ask without its identity: it fences others.
                assert identity == self.identity
                if identity is not None:
                    assert self.coordinator.open is None, "a bump with one open"
                    if self.all and self.tx.is_doubted:
                        assert self.tx.protocol is TV2, "a bump after a refusal"
                assert self.phase not in OVER
            case AddPartitions(identity=identity, partitions=partitions):
                assert identity == self.identity
                assert self.phase in ADDING
                assert self.protocol is TV1 or self._explicit
                assert partitions
                assert not self.confirmed.intersection(partitions)
            case AddOffsets(identity=identity, group_id=group_id):
                assert identity == self.identity
                assert not self.machine.has_group(group_id)
                assert self.phase in ADDING
                assert self.protocol is TV1
            case Probe(end=end):
                assert end == self._last_end
                assert self.tx.is_begun_at < self._ended_at + PROBE_WITHIN
                assert self._quick < PROBES_FOR_TRUST
            case End():
                self._end_sent(request)

    def _end_sent(self, end: End) -> None:
        tx = self.tx
        assert end.identity == self.identity == tx.identity
        assert not tx.on_wire.total(), "EndTxn with a batch on the wire"
        assert not tx.commits, "EndTxn with a commit of offsets under way"
        assert not tx.unsent.total(), "EndTxn with records that were not sent"
        assert tx.is_touched, "EndTxn where nothing was sent"
        assert tx.outcome is None
        assert self.admitted == frozenset()
        if tx.verdicts:
            assert tx.is_refused, "a second verdict"
            assert end.is_commit is False, "a commit after a verdict"
        else:
            assert end.is_commit is (self.phase == "committing")
            assert end.protocol is tx.protocol
        tx.verdicts.append(end.is_commit)
        tx.is_refused = False
        self.phase = "unknown"

    def _admits(self, partitions: frozenset[TopicPartition] | None) -> None:
        if partitions is None:
            assert self.protocol is TV2
            assert not self._explicit
        else:
            assert partitions <= self.confirmed, "admitted before it was added"
        self.admitted = partitions

    def _ended(self, outcome: TransactionOutcome) -> None:
        tx, known = self.tx, self.coordinator
        assert tx.outcome is None, "the outcome was told twice"
        tx.outcome = outcome
        if outcome is UNKNOWN:
            assert self.phase in OVER
            assert tx.verdicts
            assert tx.verdicts[-1], "an abort cannot be unknown"
        elif not tx.is_touched and self.phase not in OVER:
            assert not tx.verdicts
            assert (outcome is COMMITTED) == (self.phase == "committing")
            self.phase = "ready"
        else:
            assert (outcome is COMMITTED) == (tx in known.committed), "a false outcome"

    def _spoil(self) -> None:
        # Something of this transaction may arrive after its end.
        self._spent.add(self.tx.identity)

    # ---- identity --------------------------------------------------------------------

    def _initialise(self) -> None:
        self.phase = "initialising"
        self._take(self.machine.initialise())

    def _succeed(self) -> None:
        """Run a few transactions that succeed, one upon the other."""
        for _ in range(12):
            self._begin()
            if self.phase == "open":
                self._enqueue()
            self._finish()
            if self.phase != "ready":
                break

    def _bump(self) -> None:
        self.phase = "bumping"
        self._take(self.machine.bump())

    def _init_answered(self) -> None:
        assert isinstance(self.request, Initialise)
        found = self.coordinator.initialise(self.request.identity)
        if found is None:
            self._fence()
            return
        self.protocol = (TV1, TV2)[self.draw(2)]
        self.request, self.phase = None, "ready"
        self._take(self.machine.initialised(found, self.protocol))
        assert self.identity == found

    def _init_refused(self) -> None:
        if self.phase == "initialising":
            self.request, self.phase = None, "uninitialised"
            self.machine.not_initialised()
        else:
            self._fail()

    # ---- an empty transaction that tells logs the next epoch -------------------------

    def _seals(self, request: Request) -> None:
        assert self.protocol is TV1
        assert not isinstance(request, Probe)
        assert request.identity == self.identity
        assert self.coordinator.open is None
        is_bump = isinstance(request, Initialise)
        assert is_bump == (self.identity in self._spent)
        self.phase = "bumping" if is_bump else "sealing"

    def _seal_answered(self) -> None:
        request = self.request
        match request:
            case AddPartitions(partitions=partitions):
                assert partitions
                refused = partitions[:1]
            case _:
                refused = ()
        if isinstance(request, End):
            assert not request.is_commit
            self._seal_ended(request)
            return
        self.request = None
        if self.draw(4):
            self._take(self.machine.added(self.now))
        else:
            self._take(self.machine.not_sealed(refused))
        if self.request is None:
            self.phase = "ready"

    def _seal_ended(self, end: End) -> None:
        if self.draw(4) == 1 and end.identity not in self._spent:
            self._spent.add(end.identity)
            self.machine.end_lost()
            return
        self.request, self.phase = None, "ready"
        self._take(self.machine.end_answered(self.now, None, None, 0))

    # ---- the transaction -------------------------------------------------------------

    def _begin(self) -> None:
        protocol = TV2 if self.draw(4) else TV1
        if self.draw(3):
            protocol = self.protocol
        needs = self.machine.needs_bump(protocol)
        assert self.identity is not None
        assert needs == (protocol is TV2 and self.identity in self._old)
        if needs:
            self._bump()
            return
        assert self.identity not in self._spent, "an epoch that is spent"
        self.confirmed.clear()
        self.all.append(Transaction(protocol, self.identity, is_begun_at=self.now))
        self.phase, self.protocol = "open", protocol
        if protocol is TV1:
            self._old.add(self.identity)
        self._take(self.machine.begin(self.now, protocol))
        assert self.machine.protocol is protocol
        assert self.admitted is None or not self.admitted

    def _enqueue(self) -> None:
        self.tx.unsent[PARTITIONS[self.draw(3)]] += 1

    def _look(self) -> None:
        """Do what a sender does after each event."""
        if self.phase not in ADDING:
            return
        waiting = [tp for tp, count in self.tx.unsent.items() if count]
        if self.admitted is None:
            return
        if wanted := [tp for tp in waiting if tp not in self.admitted]:
            self._tell(self.machine.want_partitions, wanted)
            assert self._sendable() or self.request is not None, "nothing adds"

    def _tell(
        self,
        method: Callable[[float, list[TopicPartition]], Effects],
        partitions: list[TopicPartition],
    ) -> None:
        was = self.request
        effects = method(self.now, partitions)
        self._note_first(effects, was)
        self._take(effects)

    def _note_first(self, effects: Effects, was: Request | None) -> None:
        # The coordinator's time begins when it can first know of the transaction.
        for effect in effects:
            if isinstance(effect, AskCoordinator) and was is None:
                self._asked_at = self.now

    def _sendable(self) -> list[TopicPartition]:
        if self.phase not in ADDING:
            return []  # what was not sent is dropped
        return [
            tp
            for tp, count in self.tx.unsent.items()
            if count and (self.admitted is None or tp in self.admitted)
        ]

    def _send_batch(self) -> None:
        found = self._sendable()
        tp = found[self.draw(len(found))]
        tx = self.tx
        if tx.protocol is TV1:
            assert tp in self.confirmed
        tx.on_wire[tp] += tx.unsent.pop(tp)
        if not tx.is_touched:
            tx.first_at = self.now
        self._take(self.machine.sending(self.now, [tp]))
        assert tx.is_touched
        if self.draw(2):
            self.coordinator.reached_by(tx)

    def _batch_acked(self) -> None:
        self._landed()
        if not self.coordinator.reached_by(self.tx):
            self._refused()

    def _refused(self) -> None:
        """A broker does not know the epoch, or the id."""
        if self.coordinator.has_forgotten:
            self._spoil()
            self._fails(has_harm=True)
        else:
            self._fails(has_harm=False, is_refused=True)

    def _batch_failed(self) -> None:
        self._landed()
        has_harm = self.draw(2) == 1
        if has_harm:
            self._spoil()
        self._fails(has_harm=has_harm)

    def _landed(self) -> None:
        if self.draw(8) == 1:
            self.machine.first_answered(0.02)
            self._quick = 0
        else:
            self.machine.first_answered(0.001)
        on_wire = self.tx.on_wire
        on_wire.pop(next(iter(on_wire)))

    def _fail_record(self) -> None:
        if self.tx.is_touched and self.draw(4) == 0:
            self.machine.harmed()
            self._spoil()
        self._fails(has_harm=False)

    def _fails(self, *, has_harm: bool, is_refused: bool = False) -> None:
        self.phase = "aborting" if self.phase == "aborting" else "abort_only"
        refusal = ERROR if is_refused else None  # of the epoch, by a leader
        self.tx.is_doubted |= is_refused
        effects = self.machine.mark_abort_only(
            self.now, ERROR, has_harm=has_harm, refusal=refusal
        )
        self._take(effects)
        assert not self.tx.unsent.total(), "records that can only be aborted wait"

    def _want_offsets(self) -> None:
        group, tx = GROUPS[self.draw(2)], self.tx
        tx.commits.append(group)
        if not tx.is_touched and tx.protocol is TV2:
            tx.first_at = self.now
        was = self.request
        effects = self.machine.want_offsets(self.now, group)
        self._note_first(effects, was)
        self._take(effects)
        if not self.machine.has_group(group):
            assert self.request is not None
        if tx.protocol is TV2:
            assert tx.is_touched

    def _offsets_answered(self) -> None:
        tx = self.tx
        group = tx.commits[self.draw(len(tx.commits))]
        if self.machine.has_group(group):
            tx.commits.remove(group)
            if tx.protocol is TV1:
                assert tx.is_touched
            if not self.coordinator.reached_by(tx):
                self._refused()
        elif self.phase not in ADDING:
            tx.commits.remove(group)  # nobody adds it any more

    # ---- what the coordinator is asked -----------------------------------------------

    def _added(self) -> None:
        request, tx = self.request, self.tx
        if self.coordinator.has_forgotten:
            self._is_not_added(is_lost=True)
            return
        if not self.coordinator.reached_by(tx):
            self._fence()
            return
        assert isinstance(request, AddPartitions | AddOffsets)
        if isinstance(request, AddPartitions):
            self.confirmed.update(request.partitions)
        if not tx.is_touched:
            tx.first_at = self._asked_at
        self.request = None
        effects = self.machine.added(self.now)
        self._note_first(effects, None)
        self._take(effects)
        if isinstance(request, AddOffsets):
            assert self.machine.has_group(request.group_id)

    def _not_added(self) -> None:
        self._is_not_added(is_lost=self.draw(2) == 1)

    def _is_not_added(self, *, is_lost: bool) -> None:
        self.phase = "aborting" if self.phase == "aborting" else "abort_only"
        if is_lost:
            self._spoil()
            if not self.tx.is_touched:
                self.tx.first_at = self._asked_at
            if self.draw(2):
                self.coordinator.reached_by(self.tx)
        self.request = None
        self._take(self.machine.not_added(self.now, ERROR, is_lost=is_lost))
        assert not self.tx.unsent.total(), "records that can only be aborted wait"

    def _probed(self) -> None:
        is_at_once = self.draw(4) != 0
        self._quick = self._quick + 1 if is_at_once else 0
        self.request = None
        effects = self.machine.probed(self.now, is_at_once=is_at_once)
        self._note_first(effects, None)
        self._take(effects)

    # ---- its end ---------------------------------------------------------------------

    def _commit(self) -> None:
        self.phase = "committing"
        self.machine.commit()

    def _detach(self) -> None:
        self.phase = "detaching"
        self.machine.detach()

    def _detached(self) -> None:
        """Nothing is under way: another process ends the transaction."""
        tx = self.tx
        assert self.request is None
        assert self._is_drained()
        self.phase = "detached"
        self._take(self.machine.detached(ERROR))
        assert self.admitted == frozenset()
        tx.outcome = ABORTED
        left = End(tx.identity, tx.protocol, is_commit=True)
        detached = DetachedTransaction.of("t", left, is_empty=not tx.is_touched)
        if detached.is_empty:
            assert self.coordinator.open is None, "nobody ends it"
            return
        end = detached.end(commit=self.draw(2) == 0)
        for _ in range(2):  # again, as after a lost answer
            code, _ = self.coordinator.end(end, tx)
            found = end_of(code, is_commit=end.is_commit, was_lost=False)
            is_in = tx in self.coordinator.committed
            assert is_in == (found is DetachedEnd.DONE and end.is_commit)
            tx.outcome = COMMITTED if is_in else ABORTED
        assert self.coordinator.open is None

    def _abort(self) -> None:
        self.phase = "aborting"
        self._take(self.machine.abort())
        assert not self.tx.unsent.total(), "an abort keeps what was never sent"

    def _is_drained(self) -> bool:
        tx = self.tx
        return not (tx.on_wire.total() or tx.commits or tx.unsent.total())

    def _end_answered(self) -> None:
        end = self._end
        code, found = self.coordinator.end(end, self.tx)
        if code == ErrorCode.PRODUCER_FENCED:
            self.request, self.phase = None, "fenced"
            self._take(self._tell_end(None, code))
        elif code:
            self._denied(code)
        else:
            self.request, self.phase = None, "ready"
            self._last_end, self._ended_at = end, self.now
            if self.tx.identity in self._spent and end.protocol is TV1:
                self.phase = "bumping"
            self._take(self._tell_end(found, 0))
            assert self.tx.outcome is not None

    def _tell_end(self, found: IdAndEpoch | None, code: int) -> Effects:
        error = ERROR if code else None
        return self.machine.end_answered(self.now, found, error, code)

    def _denied(self, code: int) -> None:
        """EndTxn was refused: an abort asks why, or the producer has failed."""
        tx, end = self.tx, self._end
        if code == FORGOTTEN and not (end.is_commit and tx.is_end_lost):
            self._forgotten()
            return
        if not end.is_commit and code == ErrorCode.INVALID_TXN_STATE:
            # Nothing is there: the request that would have begun it was lost.
            assert end.protocol is TV1
            assert tx.identity in self._spent
            self.request, self.phase = None, "bumping"
            self._take(self._tell_end(None, code))
            return
        may_ask = end.is_commit and (
            end.protocol is TV2
            if code == ErrorCode.INVALID_TXN_STATE
            else not tx.is_end_lost
            and code in (ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.UNKNOWN_PRODUCER_ID)
        )
        self.request = None
        if may_ask:
            tx.is_refused = True
            if code == ErrorCode.UNKNOWN_PRODUCER_ID:
                self._spoil()
        else:
            self.phase = "failed"
        self._take(self._tell_end(None, code))
        if may_ask:
            assert isinstance(self.request, End)

    def _forgotten(self) -> None:
        """The coordinator does not know the id: an abort makes sure of that."""
        tx, is_sure = self.tx, self.tx.is_forgotten
        self._spoil()
        self.request, tx.is_forgotten = None, True
        tx.is_refused = not is_sure
        if is_sure:
            self.phase = "fenced" if tx.is_doubted else "bumping"
        self._take(self._tell_end(None, FORGOTTEN))
        assert isinstance(self.request, Initialise if is_sure else End) or tx.is_doubted

    def _end_refused(self) -> None:
        codes: tuple[ErrorCode, ...] = REFUSALS
        if self._end.is_commit and self._end.protocol is TV1:
            codes = (*REFUSALS, ErrorCode.INVALID_TXN_STATE)
        if self.tx.is_forgotten:  # twice it is true
            codes = tuple(code for code in codes if code != FORGOTTEN)
        self._denied(codes[self.draw(len(codes))])

    def _end_lost(self) -> None:
        tx, end = self.tx, self._end
        if self.draw(2):
            self.coordinator.end(end, tx)
        else:
            self._late.append((end, tx))
        tx.is_end_lost = True
        self._spoil()
        before = self.machine.request
        self.machine.end_lost()
        assert self.machine.request is before, "it is sent again unchanged"

    @property
    def _end(self) -> End:
        assert isinstance(self.request, End)
        return self.request

    def _end_unsupported(self) -> None:
        tx = self.tx
        self._spoil()
        self.request = None
        if self._last_is_commit() and tx.is_end_lost:
            self.phase = "failed"
        else:
            tx.is_refused = True
        self._take(self.machine.end_unsupported(ERROR))
        if self.phase != "failed":
            assert self._end.protocol is TV1

    def _last_is_commit(self) -> bool:
        return self.tx.verdicts[-1]

    # ---- what others do --------------------------------------------------------------

    def _late_end(self) -> None:
        end, tx = self._late.pop()
        self.coordinator.end(end, tx)

    def _coordinator_aborts(self) -> None:
        self.coordinator.time_out()

    def _successor(self) -> None:
        self.coordinator.stolen()

    def _fence(self) -> None:
        self._over("fenced", self.machine.fence)

    def _fail(self) -> None:
        self._over("failed", self.machine.fail)

    def _over(self, phase: str, method: Callable[[KafkaError], Effects]) -> None:
        is_open = bool(self.all) and self.tx.outcome is None
        is_asked = self.phase == "unknown" and self._last_is_commit()
        self.phase, self.request = phase, None
        effects = method(ERROR)
        ended = [one.outcome for one in effects if isinstance(one, TxnEnded)]
        assert len(ended) == is_open
        if is_open:
            self.tx.outcome = ended[0]
            assert (ended[0] is UNKNOWN) == is_asked
            assert DropUnsent() in effects
            self.tx.unsent.clear()
        assert Admit(frozenset()) in effects or not is_open

    def _answer_late(self) -> None:
        """An answer comes when the producer is over: it changes nothing."""
        machine, at = self.machine, self.now
        late: tuple[Callable[[], Effects | None], ...] = (
            lambda: machine.added(at),
            lambda: machine.not_added(at, ERROR, is_lost=True),
            lambda: machine.end_answered(at, IdAndEpoch(9, 9), None, 0),
            machine.end_lost,
            lambda: machine.want_partitions(at, PARTITIONS),
            lambda: machine.mark_abort_only(at, ERROR, has_harm=True),
            lambda: machine.fence(ERROR),
        )
        assert not late[self.draw(len(late))](), "an answer after the end"

    def _tick(self) -> None:
        self.now += (0.0, 0.01, 1.0, TIMEOUT)[self.draw(4)]
        if self.phase not in SENDING:
            return
        may_add = self.phase in ADDING
        is_due = self.tx.is_touched and self.now >= self.tx.first_at + TIMEOUT
        assert self.machine.expired(self.now) == (may_add and is_due)
        if may_add and is_due:
            self._fails(has_harm=False)

    def _out_of_place(self) -> None:
        """Call what is not in place: it raises, and nothing changes."""
        machine, at, one = self.machine, self.now, PARTITIONS[:1]
        calls: dict[str, Callable[[], object]] = {
            "initialise": machine.initialise,
            "initialised": lambda: machine.initialised(IdAndEpoch(9, 9), TV2),
            "not_initialised": machine.not_initialised,
            "bump": machine.bump,
            "begin": lambda: machine.begin(at, TV2),
            "want_partitions": lambda: machine.want_partitions(at, one),
            "want_offsets": lambda: machine.want_offsets(at, "g"),
            "sending": lambda: machine.sending(at, one),
            "added": lambda: machine.added(at),
            "not_added": lambda: machine.not_added(at, ERROR, is_lost=True),
            "commit": machine.commit,
            "detach": machine.detach,
            "abort": machine.abort,
            "mark_abort_only": lambda: machine.mark_abort_only(at, ERROR),
            "drained": lambda: machine.drained(at),
            "end_lost": machine.end_lost,
            "end_answered": lambda: machine.end_answered(at, None, None, 0),
        }
        name = sorted(calls)[self.draw(len(calls))]
        is_stray = name in ("added", "not_added") and self.request is None
        if self.phase in IN_PLACE[name] and not (is_stray and self.phase not in OVER):
            return
        before = _snapshot(machine)
        with pytest.raises(InternalError):
            calls[name]()
        assert _snapshot(machine) == before, name

    # ---- checks ----------------------------------------------------------------------

    def _check(self) -> None:
        if self.phase in IN_PLACE["drained"] and self._is_drained():
            self._take(self.machine.drained(self.now))
        if self.machine.is_detachable and not self.draw(2):
            self._detached()
        assert self.machine.state.name.lower() == self.phase
        assert self.machine.request == self.request
        self.has_been.add(self.phase)
        if self.phase in OPEN:
            self._check_abort()

    def _check_abort(self) -> None:
        """From every open state an abort leads out, whatever is under way."""
        twin = copy.copy(self.machine)
        for name in ("_wanted", "_added", "_groups_wanted", "_groups_added"):
            setattr(twin, name, copy.copy(getattr(twin, name)))
        twin.abort()
        if twin.request is not None:
            twin.added(self.now)
        if twin.state is not TxnState.UNKNOWN:  # it was drained before that answer
            twin.drained(self.now)
        if isinstance(twin.request, End):
            assert not twin.request.is_commit
            twin.end_answered(self.now, IdAndEpoch(9, 9), None, 0)
        # Where the epoch was refused, another producer may have the id: no bump.
        doubted = {"FENCED"} if self.tx.is_doubted else set()
        assert twin.state.name in {"READY", "BUMPING"} | doubted

    def _finish(self) -> None:
        """Whatever has happened: if all is answered, the transaction ends."""
        for _ in range(40):
            if self.phase in (*OVER, "ready", "uninitialised"):
                break
            self._answer_all()
            self._look()
            self._check()
        else:
            raise AssertionError(f"no end: {self.machine}")

    def _check_outcomes(self) -> None:
        for end, tx in self._late:
            self.coordinator.end(end, tx)
        for tx in self.all:
            assert tx.outcome is not None
            if tx.outcome is ABORTED:
                assert tx not in self.coordinator.committed, "a false outcome"

    def _answer_all(self) -> None:
        if self.phase == "sealing":
            self._seal_answered()
        else:
            self._answer_request()
        for step in (self._send_all, self._answer_wire, self._answer_offsets):
            if self.phase in SENDING:
                step()
        if self.phase == "open":
            self._commit()
        elif self.phase == "abort_only":
            self._abort()

    def _answer_request(self) -> None:
        match self.request:
            case Initialise():
                self._init_answered()
            case End():
                self._end_answered()
            case Probe():
                self._probed()
            case AddPartitions() | AddOffsets():
                self._added()
            case None:
                pass

    def _send_all(self) -> None:
        if self._sendable():
            self._send_batch()

    def _answer_wire(self) -> None:
        if self.tx.on_wire.total():
            self._batch_acked()

    def _answer_offsets(self) -> None:
        if self.tx.commits:
            self._offsets_answered()


def _snapshot(machine: TransactionMachine) -> dict[str, object]:
    values = {name: getattr(machine, name) for name in TransactionMachine.__slots__}
    return {
        name: copy.copy(value) if isinstance(value, dict | set) else value
        for name, value in values.items()
    }


@given(choices=st.binary(min_size=60, max_size=150), explicit=st.booleans())
@example(choices=bytes(150), explicit=False)
@settings(max_examples=600)
def test_no_sequence_of_events_breaks_a_promise(choices: bytes, explicit: bool) -> None:
    _Play(choices, explicit=explicit).run()
