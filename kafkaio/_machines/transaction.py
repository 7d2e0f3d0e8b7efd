"""The transactions of one producer: which requests the coordinator gets, and when.

Theory (KIP-98, KIP-360, KIP-890). A transactional producer has an identity: the
producer id and the epoch that InitProducerId gave for its transactional id. Between
`TransactionMachine.begin` and the answer to EndTxn, all that it writes belongs to one
transaction. There are two protocols, and one transaction is of one protocol:

========================  ============================  ==============================
step                      `Protocol.TV1`                `Protocol.TV2`
========================  ============================  ==============================
first write to partition  AddPartitionsToTxn, answered  the partition's leader adds it
offsets of a group        AddOffsetsToTxn, answered     the group's coordinator adds it
EndTxn                    the identity stays            its answer has the next epoch
sequence numbers          go on                         begin at 0 in each transaction
========================  ============================  ==============================

`TRANSITIONS` has the states. A transaction in which nothing was sent ends without a
request. Invariants:

- One request to the coordinator is under way at a time (`TransactionMachine.request`).
- EndTxn is sent only when no batch is on the wire and no commit of offsets is under
  way. From then on (UNKNOWN) only the answer to this same EndTxn leads out: the verdict
  never changes, because the first one may have been written already. There is one
  exception: a commit that was refused, and so was not written, turns into an abort.
- InitProducerId with an identity (a *bump*) is never sent while a transaction may be
  open, and never once another producer may have the transactional id: it would abort
  the transaction of that producer. So a TV1 producer whose epoch a broker has refused
  is over if it needs another epoch, although its abort was accepted.
- Where a write of an ended transaction may still arrive, the epoch must change before
  the next one begins. TV2 changes it with each end; TV1 needs a bump, for example when
  a batch expired on the wire, or an EndTxn got no answer.
- A coordinator that does not know the producer id (*forgotten*: it was idle for longer
  than ``transactional.id.expiration.ms``) has no transaction of it, so nothing is open
  and nothing of it can be committed. It gives a new id to a bump. If it does not know
  the id because another producer has the transactional id under a newer one, it refuses
  the bump and leaves that producer alone. There is one exception: a bump from the last
  epoch of an id counts as repeated, and would abort the other's transaction. So a
  producer that is forgotten at its last epoch is over.
- A bump alone keeps no late write out: a log learns the epoch from the next write or
  marker. Until then, brokers before 3.6 take the late write, and the marker of the next
  transaction commits it. So, where a write or a commit of offsets may still arrive, an
  empty transaction under the new epoch follows (SEALING). Its abort marks every log
  that the aborted transaction was in: the marker aborts a write that arrived before it,
  and the log refuses a later one.
- A transaction whose end is left to another process (DETACHED) has nothing on the wire,
  and the machine sends nothing any more: the other process knows the identity, and any
  request of this producer could end or harm the transaction.

Effects are returned in the order in which they must be performed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum, auto
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from kafkaio._dataclass import dataclass
from kafkaio._machines.sequence import IdAndEpoch
from kafkaio._public import public
from kafkaio.errors import InternalError, KafkaError
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.types import TopicPartition

#: A transaction that begins so many seconds after the end of the one before asks first
#: whether the markers of that one are written.
PROBE_WITHIN: Final = 0.05
#: After so many probes in a row that were answered at once, none is sent: the markers
#: are written quickly enough. A first write that comes too early costs about a hundred
#: times as long as a probe.
PROBES_FOR_TRUST: Final = 100
#: Seconds for a first write, beside the round trip, that show that its leader waited
#: for markers: it looks for them every 20 ms.
_SLOW: Final = 0.015
#: Seconds for a probe, answered at once, that show that the coordinator is far away,
#: and how many of them in a row. Then the markers are written before the first write
#: gets there, and a probe would cost a round trip for nothing.
_FAR: Final = 0.01
_FAR_PROBES: Final = 3


class Protocol(Enum):
    """How partitions enter a transaction, and what its end does to the epoch."""

    if TYPE_CHECKING:

        def __hash__(self) -> int: ...
    else:
        __hash__ = object.__hash__  # see TxnState

    TV1 = 1
    TV2 = 2


class TxnState(Enum):
    """Where a producer is with its transactions."""

    # Each step of each transaction hashes states; Enum's own hash is a Python function.
    __hash__ = object.__hash__

    UNINITIALISED = auto()  #: it has no identity
    INITIALISING = auto()  #: InitProducerId is under way
    READY = auto()  #: no transaction is open
    OPEN = auto()  #: a transaction is open
    COMMITTING = auto()  #: it is to be committed; batches or offsets are under way
    DETACHING = auto()  #: its end is to be left to another process; the same
    ABORT_ONLY = auto()  #: it cannot be committed any more: only an abort leads out
    ABORTING = auto()  #: it is to be aborted; batches are on the wire
    UNKNOWN = auto()  #: EndTxn was sent; only the answer to it leads out
    BUMPING = auto()  #: the next epoch is requested by InitProducerId
    SEALING = auto()  #: logs learn the next epoch, by the abort of an empty transaction
    DETACHED = auto()  #: the end of the transaction is left to another process
    FENCED = auto()  #: another producer has the transactional id; for good
    FAILED = auto()  #: the producer cannot go on for another reason; for good


class TxnEvent(Enum):
    """An event that leads from state to state."""

    __hash__ = object.__hash__

    INITIALISE = auto()
    INITIALISED = auto()
    NOT_INITIALISED = auto()
    BUMP = auto()
    BUMPED = auto()
    BUMPED_WITH_HARM = auto()
    SEALED = auto()
    SEALED_WITH_HARM = auto()
    BEGIN = auto()
    WANT = auto()
    SENDING = auto()
    ADDED = auto()
    ABORT_ONLY = auto()
    COMMIT = auto()
    ABORT = auto()
    DETACH = auto()
    DETACHED = auto()
    EMPTY = auto()
    DRAINED = auto()
    END_LOST = auto()
    ENDED = auto()
    ENDED_WITH_HARM = auto()
    DENIED = auto()
    FENCE = auto()
    FAIL = auto()


@public("kafkaio")
class TransactionOutcome(Enum):
    """How a transaction ended."""

    COMMITTED = auto()
    ABORTED = auto()
    #: EndTxn was not answered, and is not sent again.
    UNKNOWN = auto()


_S, _E = TxnState, TxnEvent
#: States in which the producer is over.
OVER: Final = (_S.DETACHED, _S.FENCED, _S.FAILED)
_LIVE: Final = tuple(state for state in TxnState if state not in OVER)
#: States in which records of the transaction may be sent, or sent again.
_SENDING: Final = (
    _S.OPEN,
    _S.COMMITTING,
    _S.DETACHING,
    _S.ABORT_ONLY,
    _S.ABORTING,
)
#: States in which partitions and groups may be added.
ADDING: Final = frozenset({_S.OPEN, _S.COMMITTING, _S.DETACHING})
#: States in which EndTxn, or `TransactionMachine.detached`, follows as soon as nothing
#: is under way.
ENDING: Final = frozenset({_S.COMMITTING, _S.ABORTING, _S.DETACHING})

#: Codes by which a producer with a newer epoch may show itself.
FENCING: Final = frozenset(
    {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED}
)

#: The coordinator does not know the producer id (any more).
FORGOTTEN: Final = ErrorCode.INVALID_PRODUCER_ID_MAPPING
#: The last epoch of a producer id.
_LAST_EPOCH: Final = 2**15 - 2

#: Where each event leads. A pair that is not listed is a bug: it raises InternalError
#: and changes nothing.
TRANSITIONS: Final[Mapping[tuple[TxnState, TxnEvent], TxnState]] = MappingProxyType(
    {
        (_S.UNINITIALISED, _E.INITIALISE): _S.INITIALISING,
        (_S.INITIALISING, _E.INITIALISED): _S.READY,
        (_S.INITIALISING, _E.NOT_INITIALISED): _S.UNINITIALISED,
        (_S.READY, _E.BUMP): _S.BUMPING,
        (_S.BUMPING, _E.BUMPED): _S.READY,
        (_S.BUMPING, _E.BUMPED_WITH_HARM): _S.SEALING,
        (_S.SEALING, _E.ADDED): _S.SEALING,
        (_S.SEALING, _E.END_LOST): _S.SEALING,
        (_S.SEALING, _E.SEALED): _S.READY,
        (_S.SEALING, _E.SEALED_WITH_HARM): _S.BUMPING,
        (_S.READY, _E.BEGIN): _S.OPEN,
        **{(state, _E.WANT): state for state in (*_SENDING, *OVER)},
        **{(state, _E.SENDING): state for state in (*_SENDING, *OVER)},
        **{(state, _E.ADDED): state for state in (*_SENDING, *OVER)},
        (_S.OPEN, _E.COMMIT): _S.COMMITTING,
        (_S.OPEN, _E.DETACH): _S.DETACHING,
        (_S.DETACHING, _E.DRAINED): _S.DETACHING,
        (_S.DETACHING, _E.DETACHED): _S.DETACHED,
        **{
            (state, _E.ABORT): _S.ABORTING
            for state in (_S.OPEN, _S.COMMITTING, _S.DETACHING, _S.ABORT_ONLY)
        },
        (_S.OPEN, _E.ABORT_ONLY): _S.ABORT_ONLY,
        (_S.COMMITTING, _E.ABORT_ONLY): _S.ABORT_ONLY,
        (_S.DETACHING, _E.ABORT_ONLY): _S.ABORT_ONLY,
        **{
            (state, _E.ABORT_ONLY): state
            for state in (_S.ABORT_ONLY, _S.ABORTING, *OVER)
        },
        **{(state, _E.EMPTY): _S.READY for state in (_S.COMMITTING, _S.ABORTING)},
        **{(state, _E.DRAINED): _S.UNKNOWN for state in (_S.COMMITTING, _S.ABORTING)},
        **{(state, _E.END_LOST): state for state in (_S.UNKNOWN, *OVER)},
        (_S.UNKNOWN, _E.ENDED): _S.READY,
        (_S.UNKNOWN, _E.ENDED_WITH_HARM): _S.BUMPING,
        (_S.UNKNOWN, _E.DENIED): _S.ABORTING,
        **{(state, _E.FENCE): _S.FENCED for state in _LIVE},
        **{(state, _E.FAIL): _S.FAILED for state in _LIVE},
        **{(state, event): state for state in OVER for event in (_E.FENCE, _E.FAIL)},
    }
)


@dataclass(frozen=True, slots=True)
class Initialise:
    """InitProducerId: of a new producer (None), or for the epoch after ``identity``."""

    identity: IdAndEpoch | None


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """AddPartitionsToTxn."""

    identity: IdAndEpoch
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class AddOffsets:
    """AddOffsetsToTxn."""

    identity: IdAndEpoch
    group_id: str


@dataclass(frozen=True, slots=True)
class End:
    """EndTxn; it is sent again unchanged until it is answered."""

    identity: IdAndEpoch
    protocol: Protocol
    is_commit: bool


@dataclass(frozen=True, slots=True)
class Probe:
    """The EndTxn of the transaction before, again: 51 until its markers are written.

    It has the old epoch, so it is recognised as a repetition and changes nothing.
    """

    end: End


Request: TypeAlias = Initialise | AddPartitions | AddOffsets | End | Probe


@dataclass(frozen=True, slots=True)
class AskCoordinator:
    """Send a request to the coordinator, and return its answer to the machine."""

    request: Request


@dataclass(frozen=True, slots=True)
class Adopt:
    """Number the next batches under this identity."""

    identity: IdAndEpoch


@dataclass(frozen=True, slots=True)
class Admit:
    """Only these partitions may be written to now; None for every partition."""

    partitions: frozenset[TopicPartition] | None


@dataclass(frozen=True, slots=True)
class Started:
    """The coordinator may know the transaction, and aborts it after ``deadline``."""

    deadline: float


@dataclass(frozen=True, slots=True)
class DropUnsent:
    """Fail the records of the transaction that were never sent."""


@dataclass(frozen=True, slots=True)
class TxnEnded:
    """The transaction is over."""

    outcome: TransactionOutcome


Effect: TypeAlias = AskCoordinator | Adopt | Admit | Started | DropUnsent | TxnEnded
Effects: TypeAlias = tuple[Effect, ...]

_NOWHERE: Final[frozenset[TopicPartition]] = frozenset()
_ADMIT_NOWHERE: Final = Admit(_NOWHERE)
_ADMIT_ALL: Final = Admit(None)


class TransactionMachine:
    """The transactions of one producer, without I/O and without a clock.

    Args:
        timeout: ``transaction_timeout_ms`` in seconds.
        adds_explicitly: whether partitions are added by one AddPartitionsToTxn also in
            TV2, where the leaders of the partitions would each add theirs.

    Attributes:
        state: where the producer is.
        protocol: of the transaction that is open, or that was the last one.
        identity: the identity, None before it was initialised.
        request: the request to the coordinator that is under way.
        cause: the first reason for which the transaction cannot be committed.
        is_started: whether the coordinator may know the transaction.
        deadline: the time at which the coordinator may abort it; infinity before.
        is_end_uncertain: whether an EndTxn was sent and got no answer.
        last_end: TV2's end of the transaction before; None if there was none under the
            identity's predecessor.
    """

    __slots__ = (
        "_added",
        "_adds",
        "_adds_explicitly",
        "_asked_at",
        "_far_probes",
        "_groups_added",
        "_groups_wanted",
        "_has_harm",
        "_has_late",
        "_has_run",
        "_is_drained",
        "_is_forgotten",
        "_is_probed",
        "_is_start_uncertain",
        "_last_end_at",
        "_quick_probes",
        "_refusal",
        "_round_trip",
        "_timeout",
        "_verdict",
        "_wanted",
        "cause",
        "deadline",
        "identity",
        "is_end_uncertain",
        "is_started",
        "last_end",
        "protocol",
        "request",
        "state",
    )

    def __init__(self, timeout: float, *, adds_explicitly: bool = False) -> None:
        self._timeout = timeout
        self._adds_explicitly = adds_explicitly
        # Whether partitions are added by a request of their own.
        self._adds = True
        self.state: TxnState = TxnState.UNINITIALISED
        self.protocol: Protocol = Protocol.TV1
        self.identity: IdAndEpoch | None = None
        self.request: Request | None = None
        # Whether a transaction was begun under the epoch that InitProducerId gave.
        self._has_run = False
        # Probes that were answered at once, since one was not, or a write was slow.
        self._quick_probes = 0
        # The last of them that show that the coordinator is far away, and the fewest
        # seconds that one of these took.
        self._far_probes = 0
        self._round_trip = 0.0
        self.last_end: End | None = None
        self._last_end_at = -inf
        self._reset()

    def _reset(self) -> None:
        self.cause: KafkaError | None = None
        self.is_started: bool = False
        self.deadline: float = inf
        self.is_end_uncertain: bool = False
        # Partitions and groups: to be added (in this order), and added.
        self._wanted: dict[TopicPartition, None] = {}
        self._added: set[TopicPartition] = set()
        self._groups_wanted: dict[str, None] = {}
        self._groups_added: set[str] = set()
        # Whether a write, or a request, of this transaction may still arrive after it.
        self._has_harm = False
        # Why a broker has refused the epoch: perhaps another producer has the id.
        self._refusal: KafkaError | None = None
        # Whether that may be a write, or a commit of offsets.
        self._has_late = False
        # Whether the coordinator may know nothing of it although is_started is set.
        self._is_start_uncertain = False
        # When the request to add something was sent: the coordinator's time begins.
        self._asked_at = 0.0
        # Whether nothing is on the wire: EndTxn may be sent.
        self._is_drained = False
        # Whether the coordinator has answered EndTxn as if it did not know the id.
        self._is_forgotten = False
        self._is_probed = True
        self._verdict = False

    def __repr__(self) -> str:
        return (
            f"<TransactionMachine {self.state.name} {self.protocol.name} | "
            f"{len(self._added)} partitions, {len(self._groups_added)} groups>"
        )

    def _send(self, request: Request) -> Effects:
        self.request = request
        return (AskCoordinator(request),)

    def _go(self, event: TxnEvent) -> None:
        try:
            self.state = TRANSITIONS[self.state, event]
        except KeyError:
            raise InternalError(
                f"transaction: {event.name} while {self.state.name}"
            ) from None

    # ---- identity --------------------------------------------------------------------

    def initialise(self) -> Effects:
        """Ask for an identity: a producer of the same transactional id is fenced."""
        self._go(TxnEvent.INITIALISE)
        return self._send(Initialise(None))

    def initialised(self, identity: IdAndEpoch, protocol: Protocol) -> Effects:
        """Take the answer to `Initialise`: the identity, and the protocol to use."""
        if self.state is not TxnState.BUMPING:
            self._go(TxnEvent.INITIALISED)
            self.protocol = protocol
            return self._identified(identity)
        # TV2's brokers verify, and so refuse a late write of TV1 by themselves.
        is_sealed = self._has_late and protocol is Protocol.TV1
        self._go(TxnEvent.BUMPED_WITH_HARM if is_sealed else TxnEvent.BUMPED)
        self.protocol = protocol
        adopt = self._identified(identity)
        return (*adopt, *self._seal()) if is_sealed else adopt

    def _seal(self) -> Effects:
        # Add the partitions and groups of the harmed transaction, and abort at once.
        self._has_harm = self._has_late = False
        self.is_end_uncertain = False
        self._wanted = dict.fromkeys(sorted(self._added))
        self._groups_wanted = dict.fromkeys(sorted(self._groups_added))
        self._added.clear()
        self._groups_added.clear()
        return self._next_of_seal()

    def _next_of_seal(self) -> Effects:
        identity = self.identity
        assert identity is not None
        if self._wanted:
            return self._send(AddPartitions(identity, tuple(self._wanted)))
        if self._groups_wanted:
            return self._send(AddOffsets(identity, next(iter(self._groups_wanted))))
        if self._added or self._groups_added:
            return self._send(End(identity, Protocol.TV1, is_commit=False))
        self._go(TxnEvent.SEALED)
        return ()

    def not_sealed(self, partitions: Collection[TopicPartition]) -> Effects:
        """Note that the coordinator refuses to add some of the partitions, or a group.

        They are left out: topics that are gone, or that the producer may not write to
        any more. If ``partitions`` is empty, the whole request was refused.
        """
        request = self.request
        if self.state is not TxnState.SEALING or isinstance(request, End):
            raise InternalError(f"transaction: {request!r} seals nothing")
        if isinstance(request, AddOffsets):
            del self._groups_wanted[request.group_id]
        else:
            kept = (tp for tp in self._wanted if partitions and tp not in partitions)
            self._wanted = dict.fromkeys(kept)
        self.request = None
        return self._next_of_seal()

    def forgotten_in_seal(self, error: KafkaError) -> Effects:
        """Note that the coordinator does not know the producer id, while SEALING."""
        self.request = None
        if self._is_last_epoch:
            return self.fail(error)
        self._go(TxnEvent.SEALED_WITH_HARM)
        return self._send(Initialise(self.identity))

    def _sealed(self, error: KafkaError | None, code: int) -> Effects:
        if error is not None and code == FORGOTTEN:
            return self.forgotten_in_seal(error)
        if error is not None:
            is_fenced = code in FENCING
            return self.fence(error) if is_fenced else self.fail(error)
        if not self._has_harm:
            self._go(TxnEvent.SEALED)
            return ()
        # An EndTxn got no answer: late, it could end the next transaction.
        self._go(TxnEvent.SEALED_WITH_HARM)
        return self._send(Initialise(self.identity))

    def _identified(self, identity: IdAndEpoch) -> Effects:
        self.request = None
        self.identity = identity
        self._has_run = False
        self.last_end = None
        return (Adopt(identity),)

    def not_initialised(self) -> None:
        """Note that the first `Initialise` was refused; it may be tried again."""
        self._go(TxnEvent.NOT_INITIALISED)
        self.request = None

    def needs_bump(self, protocol: Protocol) -> bool:
        """Whether the epoch must change before a transaction of that protocol.

        A late write of TV1 could join a transaction of TV2 under the same epoch.
        """
        return (
            protocol is Protocol.TV2 and self.protocol is Protocol.TV1 and self._has_run
        )

    def bump(self) -> Effects:
        """Ask for the next epoch, between two transactions."""
        self._go(TxnEvent.BUMP)
        return self._send(Initialise(self.identity))

    def recheck(self) -> End:
        """Return an EndTxn whose answer shows whether the identity is still valid.

        Nothing is open, so it changes nothing, unless it arrives late and meets the
        next transaction. `last_end` has an old epoch and cannot do that; after any
        other request without an answer, the producer is over.
        """
        if self.state is not TxnState.READY:
            raise InternalError(f"transaction: rechecked while {self.state.name}")
        identity = self.identity
        assert identity is not None
        return self.last_end or End(identity, self.protocol, is_commit=True)

    def rechecked(self, end: End, code: int, identity: IdAndEpoch | None) -> bool:
        """Take the answer to `recheck`; return whether the identity is still valid.

        The coordinator compares the epoch first. If that is its own, or the one before,
        the answer depends on the state of the last transaction; else it is a fencing
        code. ``identity`` is that of TV2's answer.
        """
        if end is self.last_end:
            if code != ErrorCode.NONE or identity != self.identity:
                return False
            self.last_end = None  # its markers are written: nothing has to be probed
            return True
        if code == ErrorCode.INVALID_TXN_STATE:
            return True
        # TV1 answers a commit again as it did before.
        return code == ErrorCode.NONE and end.protocol is Protocol.TV1

    # ---- an open transaction ---------------------------------------------------------

    def begin(self, now: float, protocol: Protocol) -> Effects:
        """Begin a transaction; nothing is sent for it yet."""
        self._go(TxnEvent.BEGIN)
        self._reset()
        self.protocol = protocol
        self._has_run = True
        self._adds = protocol is Protocol.TV1 or self._adds_explicitly
        if self._adds:
            return (_ADMIT_NOWHERE,)
        self._is_probed = (
            self.last_end is None
            or now - self._last_end_at >= PROBE_WITHIN
            or self._quick_probes >= PROBES_FOR_TRUST
        )
        return (_ADMIT_ALL if self._is_probed else _ADMIT_NOWHERE,)

    def want_partitions(
        self, now: float, partitions: Collection[TopicPartition]
    ) -> Effects:
        """Note that records wait to be sent to partitions.

        In a transaction that cannot be committed any more, nothing is added.
        """
        self._go(TxnEvent.WANT)
        if self.state not in ADDING:
            return ()
        for tp in partitions:
            if tp not in self._added:
                self._wanted[tp] = None
        return self._next(now)

    def want_offsets(self, now: float, group_id: str) -> Effects:
        """Note that offsets of a group are to be committed; see `has_group`."""
        self._go(TxnEvent.WANT)
        if self.state not in ADDING or group_id in self._groups_added:
            return ()
        if self.protocol is Protocol.TV2:
            self._groups_added.add(group_id)
            return self._start(now)
        self._groups_wanted[group_id] = None
        return self._next(now)

    def has_group(self, group_id: str) -> bool:
        """Whether offsets of the group may be committed in this transaction now."""
        return group_id in self._groups_added

    def sending(self, now: float, partitions: Collection[TopicPartition]) -> Effects:
        """Note that a request with records of these partitions is sent now."""
        self._go(TxnEvent.SENDING)
        self._added.update(partitions)
        return self._start(now)

    def _start(self, now: float) -> Effects:
        # A batch that the broker refuses may be in the transaction all the same: its
        # leader has added the partition before.
        if self.is_started:
            return ()
        self.is_started = True
        self.deadline = now + self._timeout
        return (Started(self.deadline),)

    def added(self, now: float) -> Effects:
        """Note that the coordinator has served the request to add, or the probe."""
        self._go(TxnEvent.ADDED)
        if self.state in OVER:
            return ()
        request = self.request
        effects: Effects = ()
        match request:
            case AddPartitions(partitions=partitions):
                self._added.update(partitions)
                for tp in partitions:  # they may have been wanted again meanwhile
                    self._wanted.pop(tp, None)
                admit = (Admit(frozenset(self._added)),) if self.state in ADDING else ()
                effects = (*self._start(self._asked_at), *admit)
            case AddOffsets(group_id=group_id):
                self._groups_added.add(group_id)
                self._groups_wanted.pop(group_id, None)
                effects = self._start(self._asked_at)
            case Probe():
                self._is_probed = True
                effects = (_ADMIT_ALL,) if self.state in ADDING else ()
            case _:
                raise InternalError(f"transaction: {request!r} adds nothing")
        self.request = None
        if self.state is TxnState.SEALING:
            return self._next_of_seal()
        return (*effects, *self._next(now))

    def probed(self, now: float, *, is_at_once: bool) -> Effects:
        """Note that the markers of the transaction before are written, or may be.

        With ``is_at_once``, the answer to the first probe says that they are.
        """
        self._quick_probes = self._quick_probes + 1 if is_at_once else 0
        seconds = now - self._asked_at
        if not is_at_once or seconds < _FAR:
            self._far_probes, self._round_trip = 0, 0.0
            return self.added(now)
        self._round_trip = min(self._round_trip or seconds, seconds)
        self._far_probes += 1
        if self._far_probes >= _FAR_PROBES:
            self._quick_probes = PROBES_FOR_TRUST
        return self.added(now)

    def first_answered(self, seconds: float) -> None:
        """Note how long the first write of the transaction took."""
        if seconds >= _SLOW + self._round_trip:
            self._quick_probes = self._far_probes = 0

    def not_added(self, now: float, error: KafkaError, *, is_lost: bool) -> Effects:
        """Note that the coordinator refuses the request to add.

        With ``is_lost``, it may have been served all the same.
        """
        self._go(TxnEvent.ADDED)
        if self.state in OVER:
            return ()
        if self.request is None or self.state is TxnState.SEALING:
            raise InternalError("transaction: nothing was to be added")
        self.request = None
        started: Effects = ()
        if is_lost:
            self._has_harm = True
            self._is_start_uncertain = not self.is_started
            started = self._start(self._asked_at)
        return (*started, *self.mark_abort_only(now, error))

    def mark_abort_only(
        self,
        now: float,
        error: KafkaError,
        *,
        has_harm: bool = False,
        refusal: KafkaError | None = None,
    ) -> Effects:
        """Note that the transaction cannot be committed any more.

        Args:
            now: the time.
            error: why; the first one counts.
            has_harm: whether a write of it may arrive after its end, or its sequence
                numbers have a gap: the next one needs another epoch.
            refusal: the error of a producer that is over, if a broker has refused the
                epoch: another producer may have the transactional id.
        """
        before = self.state
        self._go(TxnEvent.ABORT_ONLY)
        if before in OVER:
            return ()
        self._has_harm |= has_harm
        self._refusal = self._refusal or refusal
        self._has_late |= has_harm
        if self.cause is None:
            self.cause = error
        self._wanted.clear()
        self._groups_wanted.clear()
        if before is not self.state:
            self._is_drained = False
        drop = (DropUnsent(),) if before is not self.state else ()
        return (*drop, *self._next(now))

    def harmed(self, *, has_late: bool = False) -> None:
        """Note that the next transaction needs another epoch.

        The reason is a gap in the sequence numbers, or a request that got no answer and
        was sent again: the first of the two may arrive after the end. With
        ``has_late``, it is a commit of offsets, which a log would take.
        """
        self._has_harm = True
        self._has_late |= has_late

    def expired(self, now: float) -> bool:
        """Whether the coordinator may abort the transaction from now on."""
        return now >= self.deadline and self.state in ADDING

    # ---- the end ---------------------------------------------------------------------

    def commit(self) -> None:
        """Begin the end of the transaction; `drained` follows."""
        self._go(TxnEvent.COMMIT)

    def abort(self) -> Effects:
        """Begin to abort the transaction; `drained` follows."""
        self._go(TxnEvent.ABORT)
        self._wanted.clear()
        self._groups_wanted.clear()
        return (DropUnsent(),)

    def detach(self) -> None:
        """Begin to leave the end to another process; `drained` follows."""
        self._go(TxnEvent.DETACH)

    @property
    def is_detachable(self) -> bool:
        """Whether `detached` may follow: nothing is under way."""
        return (
            self.state is TxnState.DETACHING
            and self._is_drained
            and self.request is None
        )

    def detached(self, error: KafkaError) -> Effects:
        """Leave the end to another process: calls of this producer raise ``error``."""
        if self.state is TxnState.DETACHING and not self.is_detachable:
            raise InternalError("transaction: DETACHED before all was answered")
        self._go(TxnEvent.DETACHED)
        self.cause = error
        return (_ADMIT_NOWHERE,)

    def drained(self, now: float) -> Effects:
        """Note that no record waits or is on the wire, and no commit of offsets is.

        EndTxn is sent once no other request is under way.
        """
        if self.state not in ENDING:
            self._go(TxnEvent.DRAINED)
        self._is_drained = True
        return self._next(now)

    def _next(self, now: float) -> Effects:
        if self.request is not None:
            return ()
        identity = self.identity
        assert identity is not None
        self._asked_at = now
        if self.state in ADDING:
            if self._wanted and not self._is_probed and self.last_end is not None:
                self._wanted.clear()
                return self._send(Probe(self.last_end))
            if self._wanted and self._adds:
                partitions = tuple(self._wanted)
                self._wanted.clear()
                return self._send(AddPartitions(identity, partitions))
            if self._groups_wanted:
                group_id = next(iter(self._groups_wanted))
                del self._groups_wanted[group_id]
                return self._send(AddOffsets(identity, group_id))
        if self.state is TxnState.DETACHING:
            return ()
        if self._is_drained and self.state in ENDING:
            return self._end(identity)
        return ()

    def _end(self, identity: IdAndEpoch) -> Effects:
        is_commit = self.state is TxnState.COMMITTING
        if not self.is_started:
            self._go(TxnEvent.EMPTY)
            outcome = (
                TransactionOutcome.COMMITTED
                if is_commit
                else TransactionOutcome.ABORTED
            )
            return (_ADMIT_NOWHERE, TxnEnded(outcome))
        self._go(TxnEvent.DRAINED)
        self._verdict = is_commit
        return (
            _ADMIT_NOWHERE,
            *self._send(End(identity, self.protocol, is_commit)),
        )

    def end_lost(self) -> None:
        """Note that an EndTxn was sent and got no answer; it is sent again."""
        self._go(TxnEvent.END_LOST)
        self.is_end_uncertain = True
        self._has_harm = True

    def end_answered(
        self,
        now: float,
        identity: IdAndEpoch | None,
        error: KafkaError | None,
        code: int,
    ) -> Effects:
        """Take the answer to EndTxn, unless that is to be sent again.

        Args:
            now: the time.
            identity: the next identity, from TV2's answer; None in TV1.
            error: the error that the code stands for; None for success.
            code: the error code.
        """
        if self.state in OVER:
            return ()
        end = self.request
        if not isinstance(end, End):
            raise InternalError(f"transaction: EndTxn answered while {self.state.name}")
        self.request = None
        if self.state is TxnState.SEALING:
            return self._sealed(error, code)
        if error is not None and code == FORGOTTEN:
            return self._forgotten(end, error)
        if error is None or self._is_nothing_there(code):
            return self._ended(now, end, identity)
        if code in FENCING:
            return self.fence(error)
        if self._verdict and self._can_ask_again(code):
            return self._denied(error, code)
        return self.fail(error)

    def _forgotten(self, end: End, error: KafkaError) -> Effects:
        # A commit that was sent before and not answered may have been taken.
        if (end.is_commit and self.is_end_uncertain) or self._is_last_epoch:
            return self.fail(error)
        if not self._is_forgotten:
            # The answer to an abort is certain: if the transaction is open after all,
            # it must end before the bump.
            self._is_forgotten = True
            return self._denied(error, FORGOTTEN)
        if self._refusal is not None:
            return self.fence(self._refusal)
        self._has_late = False  # late writes are refused, as earlier ones were
        self._go(TxnEvent.ENDED_WITH_HARM)
        ended = TxnEnded(TransactionOutcome.ABORTED)
        return (ended, *self._send(Initialise(self.identity)))

    @property
    def _is_last_epoch(self) -> bool:
        return self.identity is not None and self.identity.epoch >= _LAST_EPOCH

    def _is_nothing_there(self, code: int) -> bool:
        # The request that would have begun the transaction was lost on its way.
        return (
            code == ErrorCode.INVALID_TXN_STATE
            and not self._verdict
            and self._is_start_uncertain
        )

    def _can_ask_again(self, code: int) -> bool:
        # In TV2 the coordinator refuses to commit what it has aborted by time-out, or
        # for another producer. The answer to an abort shows which: 0 for a time-out.
        if code == ErrorCode.INVALID_TXN_STATE:
            return self.protocol is Protocol.TV2
        # Of a commit that was sent before and not answered, other codes prove nothing.
        return not self.is_end_uncertain and code in {
            ErrorCode.TRANSACTION_ABORTABLE,
            ErrorCode.UNKNOWN_PRODUCER_ID,
        }

    def _denied(self, error: KafkaError, code: int) -> Effects:
        self._go(TxnEvent.DENIED)
        self.cause = error if self.cause is None else self.cause
        self._has_harm |= code in {ErrorCode.UNKNOWN_PRODUCER_ID, FORGOTTEN}
        assert self.identity is not None
        return self._end(self.identity)

    def end_unsupported(self, error: KafkaError) -> Effects:
        """Note that the coordinator does not know TV2's EndTxn: it was not sent to it.

        The transaction is aborted, in the protocol that the coordinator knows, unless
        another coordinator may have committed it.
        """
        if self._verdict and self.is_end_uncertain:
            return self.fail(error)
        self._go(TxnEvent.DENIED)
        if self.cause is None:
            self.cause = error
        self.protocol = Protocol.TV1
        self._has_harm = True
        # TV2's writes add their partitions; such a broker may have taken none.
        self._is_start_uncertain = True
        self.request = None
        assert self.identity is not None
        return self._end(self.identity)

    def _ended(self, now: float, end: End, identity: IdAndEpoch | None) -> Effects:
        outcome = (
            TransactionOutcome.COMMITTED
            if end.is_commit
            else TransactionOutcome.ABORTED
        )
        is_bumped = self.protocol is Protocol.TV2 and identity is not None
        if self._has_harm and not is_bumped:
            if self._refusal is not None:
                return self.fence(self._refusal)
            self._go(TxnEvent.ENDED_WITH_HARM)
            return (TxnEnded(outcome), *self._send(Initialise(self.identity)))
        self._go(TxnEvent.ENDED)
        if not is_bumped:
            return (TxnEnded(outcome),)
        assert identity is not None
        effects = self._identified(identity)
        self.last_end, self._last_end_at = end, now
        return (*effects, TxnEnded(outcome))

    # ---- the end of the producer -----------------------------------------------------

    def fence(self, error: KafkaError) -> Effects:
        """Note that another producer has the transactional id: this one is over."""
        return self._over(TxnEvent.FENCE, error)

    def fail(self, error: KafkaError) -> Effects:
        """Note that the producer cannot go on, for another reason."""
        return self._over(TxnEvent.FAIL, error)

    def _over(self, event: TxnEvent, error: KafkaError) -> Effects:
        before = self.state
        self._go(event)
        if before in OVER:
            return ()
        is_unanswered = self.is_end_uncertain or self.request is not None
        self.request = None
        self.cause = error
        if before in _SENDING or before is TxnState.UNKNOWN:
            # A commit that was sent and not answered may have been written.
            is_unknown = before is TxnState.UNKNOWN and self._verdict and is_unanswered
            outcome = (
                TransactionOutcome.UNKNOWN if is_unknown else TransactionOutcome.ABORTED
            )
            return (_ADMIT_NOWHERE, DropUnsent(), TxnEnded(outcome))
        return ()
