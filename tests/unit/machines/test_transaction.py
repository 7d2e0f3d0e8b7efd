"""The machine of transactions: its table, case by case, and its invariants."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Final

import pytest

from kafkaio._machines.sequence import IdAndEpoch
from kafkaio._machines.transaction import (
    OVER,
    PROBE_WITHIN,
    PROBES_FOR_TRUST,
    TRANSITIONS,
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
    Started,
    TransactionMachine,
    TransactionOutcome,
    TxnEnded,
    TxnEvent,
    TxnState,
)
from kafkaio.errors import InternalError, KafkaError
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.types import TopicPartition

A, B = TopicPartition("a", 0), TopicPartition("b", 1)
FIRST = IdAndEpoch(7, 0)
NEXT = IdAndEpoch(7, 1)
ERROR = KafkaError("the reason")
OTHER = KafkaError("another reason")
TV1, TV2 = Protocol.TV1, Protocol.TV2
NOWHERE = Admit(frozenset())
BOTH = pytest.mark.parametrize("protocol", Protocol)


def ready(protocol: Protocol = TV2, *, explicit: bool = False) -> TransactionMachine:
    machine = TransactionMachine(60.0, adds_explicitly=explicit)
    assert machine.initialise() == (AskCoordinator(Initialise(None)),)
    assert machine.initialised(FIRST, protocol) == (Adopt(FIRST),)
    return machine


def opened(protocol: Protocol = TV2, *, explicit: bool = False) -> TransactionMachine:
    machine = ready(protocol, explicit=explicit)
    machine.begin(100.0, protocol)
    return machine


def written(protocol: Protocol = TV2) -> TransactionMachine:
    """With a record of one partition in the transaction, and no request under way."""
    machine = opened(protocol)
    machine.want_partitions(100.0, [A])
    if protocol is TV1:
        machine.added(100.0)
    machine.sending(100.0, [A])
    return machine


def ending(protocol: Protocol = TV2, *, is_commit: bool = True) -> TransactionMachine:
    """With EndTxn under way."""
    machine = written(protocol)
    if is_commit:
        machine.commit()
    else:
        machine.abort()
    machine.drained(101.0)
    assert machine.request == End(FIRST, protocol, is_commit)
    return machine


def answer(
    machine: TransactionMachine, code: int, identity: IdAndEpoch | None = None
) -> Effects:
    error = None if code == ErrorCode.NONE else KafkaError("no")
    return machine.end_answered(102.0, identity, error, code)


def slots(machine: TransactionMachine) -> dict[str, object]:
    return {
        name: copy.copy(value) if isinstance(value, (set, dict)) else value
        for name in TransactionMachine.__slots__
        for value in [getattr(machine, name)]
    }


# ---- the table -----------------------------------------------------------------------


def committing() -> TransactionMachine:
    machine = written()
    machine.commit()
    return machine


def aborting() -> TransactionMachine:
    machine = written()
    machine.abort()
    return machine


def abort_only() -> TransactionMachine:
    machine = written()
    machine.mark_abort_only(100.0, ERROR)
    return machine


def initialising() -> TransactionMachine:
    machine = TransactionMachine(60.0)
    machine.initialise()
    return machine


def bumping() -> TransactionMachine:
    machine = ready()
    machine.bump()
    return machine


def bumped_with_harm(*groups: str) -> TransactionMachine:
    """With the first request of the seal under way."""
    machine = written(TV1)
    for group in groups:
        machine.want_offsets(100.0, group)
        machine.added(100.0)
    machine.mark_abort_only(100.0, ERROR, has_harm=True)
    machine.abort()
    machine.drained(101.0)
    answer(machine, 0)
    machine.initialised(NEXT, TV1)
    assert machine.request == AddPartitions(NEXT, (A,))
    return machine


def sealing() -> TransactionMachine:
    """With the EndTxn of the seal under way."""
    machine = bumped_with_harm()
    machine.added(103.0)
    return machine


def fenced() -> TransactionMachine:
    machine = written()
    machine.fence(ERROR)
    return machine


def failed() -> TransactionMachine:
    machine = written()
    machine.fail(ERROR)
    return machine


def detaching() -> TransactionMachine:
    machine = written()
    machine.detach()
    return machine


def detached() -> TransactionMachine:
    machine = detaching()
    machine.drained(101.0)
    machine.detached(ERROR)
    return machine


IN: Final[dict[TxnState, Callable[[], TransactionMachine]]] = {
    TxnState.UNINITIALISED: lambda: TransactionMachine(60.0),
    TxnState.INITIALISING: initialising,
    TxnState.READY: ready,
    TxnState.OPEN: opened,
    TxnState.COMMITTING: committing,
    TxnState.ABORT_ONLY: abort_only,
    TxnState.ABORTING: aborting,
    TxnState.UNKNOWN: ending,
    TxnState.BUMPING: bumping,
    TxnState.SEALING: sealing,
    TxnState.DETACHING: detaching,
    TxnState.DETACHED: detached,
    TxnState.FENCED: fenced,
    TxnState.FAILED: failed,
}

#: The public methods: how each is called, and the events of which it may be the source.
CALLS: Final[
    dict[str, tuple[Callable[[TransactionMachine], object], tuple[TxnEvent, ...]]]
] = {
    "initialise": (lambda m: m.initialise(), (TxnEvent.INITIALISE,)),
    "initialised": (
        lambda m: m.initialised(NEXT, TV2),
        (TxnEvent.INITIALISED, TxnEvent.BUMPED),
    ),
    "not_initialised": (lambda m: m.not_initialised(), (TxnEvent.NOT_INITIALISED,)),
    "bump": (lambda m: m.bump(), (TxnEvent.BUMP,)),
    "begin": (lambda m: m.begin(200.0, TV2), (TxnEvent.BEGIN,)),
    "want_partitions": (lambda m: m.want_partitions(200.0, [B]), (TxnEvent.WANT,)),
    "want_offsets": (lambda m: m.want_offsets(200.0, "g"), (TxnEvent.WANT,)),
    "sending": (lambda m: m.sending(200.0, [B]), (TxnEvent.SENDING,)),
    "mark_abort_only": (
        lambda m: m.mark_abort_only(200.0, OTHER, has_harm=True),
        (TxnEvent.ABORT_ONLY,),
    ),
    "commit": (lambda m: m.commit(), (TxnEvent.COMMIT,)),
    "abort": (lambda m: m.abort(), (TxnEvent.ABORT,)),
    "detach": (lambda m: m.detach(), (TxnEvent.DETACH,)),
    "drained": (lambda m: m.drained(200.0), (TxnEvent.EMPTY, TxnEvent.DRAINED)),
    "end_lost": (lambda m: m.end_lost(), (TxnEvent.END_LOST,)),
    "end_unsupported": (lambda m: m.end_unsupported(OTHER), (TxnEvent.DENIED,)),
    "fence": (lambda m: m.fence(OTHER), (TxnEvent.FENCE,)),
    "fail": (lambda m: m.fail(OTHER), (TxnEvent.FAIL,)),
}


def test_every_state_can_be_made() -> None:
    assert {state: make().state for state, make in IN.items()} == {
        state: state for state in TxnState
    }


@pytest.mark.parametrize("state", TxnState)
@pytest.mark.parametrize("name", CALLS)
def test_a_call_out_of_place_raises_and_changes_nothing(
    state: TxnState, name: str
) -> None:
    call, events = CALLS[name]
    machine = IN[state]()
    before = slots(machine)
    allowed = any((state, event) in TRANSITIONS for event in events)
    if allowed:
        call(machine)
        assert machine.state in TxnState
        return
    with pytest.raises(InternalError):
        call(machine)
    assert slots(machine) == before


# ---- TV1 and TV2 ---------------------------------------------------------------------


def test_a_transaction_of_tv1() -> None:
    machine = ready(TV1)
    assert machine.begin(100.0, TV1) == (NOWHERE,)
    request = AddPartitions(FIRST, (A,))
    assert machine.want_partitions(100.0, [A]) == (AskCoordinator(request),)
    assert machine.want_partitions(101.0, [B]) == ()
    assert machine.added(102.0) == (
        Started(160.0),
        Admit(frozenset({A})),
        AskCoordinator(AddPartitions(FIRST, (B,))),
    )
    assert machine.added(103.0) == (Admit(frozenset({A, B})),)
    assert machine.sending(103.0, [A]) == ()
    assert machine.want_offsets(103.0, "g") == (AskCoordinator(AddOffsets(FIRST, "g")),)
    assert not machine.has_group("g")
    machine.commit()
    assert machine.drained(104.0) == ()
    end = End(FIRST, TV1, is_commit=True)
    assert machine.added(105.0) == (NOWHERE, AskCoordinator(end))
    assert machine.has_group("g")
    assert answer(machine, 0) == (TxnEnded(TransactionOutcome.COMMITTED),)
    assert (machine.state, machine.identity) == (TxnState.READY, FIRST)


def test_a_transaction_of_tv2() -> None:
    machine = ready()
    assert machine.begin(100.0, TV2) == (Admit(None),)
    assert machine.want_partitions(100.0, [A]) == ()
    assert machine.sending(100.0, [A]) == (Started(160.0),)
    assert machine.want_offsets(101.0, "g") == ()
    assert machine.has_group("g")
    machine.commit()
    end = End(FIRST, TV2, is_commit=True)
    assert machine.drained(101.0) == (NOWHERE, AskCoordinator(end))
    effects = answer(machine, 0, NEXT)
    assert effects == (Adopt(NEXT), TxnEnded(TransactionOutcome.COMMITTED))
    assert machine.identity == NEXT


@BOTH
@pytest.mark.parametrize("is_commit", [True, False])
def test_an_empty_transaction_costs_no_request(
    protocol: Protocol, is_commit: bool
) -> None:
    machine = opened(protocol)
    outcome = TransactionOutcome.COMMITTED if is_commit else TransactionOutcome.ABORTED
    if is_commit:
        machine.commit()
    else:
        assert machine.abort() == (DropUnsent(),)
    assert machine.drained(100.0) == (NOWHERE, TxnEnded(outcome))
    assert machine.request is None


def test_harm_in_tv1_takes_a_new_epoch_after_the_abort() -> None:
    machine = written(TV1)
    assert machine.mark_abort_only(100.0, ERROR, has_harm=True) == (DropUnsent(),)
    machine.abort()
    machine.drained(101.0)
    assert machine.request == End(FIRST, TV1, is_commit=False)
    assert answer(machine, 0) == (
        TxnEnded(TransactionOutcome.ABORTED),
        AskCoordinator(Initialise(FIRST)),
    )
    assert machine.state is TxnState.BUMPING
    assert machine.initialised(NEXT, TV1) == (
        Adopt(NEXT),
        AskCoordinator(AddPartitions(NEXT, (A,))),
    )
    assert machine.state is TxnState.SEALING


def test_a_refused_epoch_in_tv1_is_never_raised() -> None:
    """Another producer may have the id: a bump would abort its transaction."""
    machine = written(TV1)
    machine.mark_abort_only(100.0, ERROR, has_harm=True, refusal=OTHER)
    machine.abort()
    machine.drained(101.0)
    assert TxnEnded(TransactionOutcome.ABORTED) in answer(machine, 0)
    assert (machine.state, machine.request) == (TxnState.FENCED, None)
    assert machine.cause is OTHER


def test_a_refused_epoch_without_harm_or_in_tv2_is_no_fence() -> None:
    for machine, identity in ((written(TV1), None), (written(), NEXT)):
        is_tv2 = identity is not None
        machine.mark_abort_only(100.0, ERROR, has_harm=is_tv2, refusal=OTHER)
        machine.abort()
        machine.drained(101.0)
        assert answer(machine, 0, identity)[-1] == TxnEnded(TransactionOutcome.ABORTED)
        assert (machine.state, machine.request) == (TxnState.READY, None)


def test_logs_are_told_the_epoch_by_the_abort_of_nothing() -> None:
    machine = bumped_with_harm("g", "h")
    assert machine.added(103.0) == (AskCoordinator(AddOffsets(NEXT, "g")),)
    assert machine.added(104.0) == (AskCoordinator(AddOffsets(NEXT, "h")),)
    end = End(NEXT, TV1, is_commit=False)
    assert machine.added(105.0) == (AskCoordinator(end),)
    assert not machine.expired(1000.0)
    assert answer(machine, 0) == ()
    assert (machine.state, machine.request) == (TxnState.READY, None)
    assert machine.identity == NEXT
    assert machine.begin(200.0, TV1) == (NOWHERE,)


def test_what_cannot_be_sealed_is_left_out() -> None:
    machine = opened(TV1)
    machine.want_partitions(100.0, [A, B])
    machine.added(100.0)
    machine.want_offsets(100.0, "g")
    machine.added(100.0)
    machine.sending(100.0, [A, B])
    machine.mark_abort_only(100.0, ERROR, has_harm=True)
    machine.abort()
    machine.drained(101.0)
    answer(machine, 0)
    machine.initialised(NEXT, TV1)
    other = copy.deepcopy(machine)
    assert machine.not_sealed([A]) == (AskCoordinator(AddPartitions(NEXT, (B,))),)
    assert machine.added(102.0) == (AskCoordinator(AddOffsets(NEXT, "g")),)
    assert machine.not_sealed([]) == (AskCoordinator(End(NEXT, TV1, is_commit=False)),)
    assert other.not_sealed([]) == (AskCoordinator(AddOffsets(NEXT, "g")),)
    assert other.not_sealed([]) == ()
    assert other.state is TxnState.READY


def test_a_commit_of_offsets_that_may_arrive_late_is_sealed_after_a_commit() -> None:
    machine = ending(TV1)
    machine.harmed(has_late=True)
    assert answer(machine, 0) == (
        TxnEnded(TransactionOutcome.COMMITTED),
        AskCoordinator(Initialise(FIRST)),
    )
    machine.initialised(NEXT, TV1)
    assert machine.state is TxnState.SEALING


def test_a_lost_end_of_a_seal_takes_a_new_epoch_and_no_other_seal() -> None:
    machine = sealing()
    machine.end_lost()
    assert answer(machine, 0) == (AskCoordinator(Initialise(NEXT)),)
    assert machine.state is TxnState.BUMPING
    last = IdAndEpoch(7, 2)
    assert machine.initialised(last, TV1) == (Adopt(last),)
    assert machine.state is TxnState.READY


@pytest.mark.parametrize(
    ("code", "state"),
    [
        (47, TxnState.FENCED),
        (90, TxnState.FENCED),
        (48, TxnState.FAILED),
        (59, TxnState.FAILED),
    ],
)
def test_a_refused_end_of_a_seal_ends_the_producer(code: int, state: TxnState) -> None:
    machine = sealing()
    assert answer(machine, code) == ()
    assert (machine.state, machine.request) == (state, None)


def test_a_cluster_that_has_moved_to_tv2_needs_no_seal() -> None:
    machine = written(TV1)
    machine.mark_abort_only(100.0, ERROR, has_harm=True)
    machine.abort()
    machine.drained(101.0)
    answer(machine, 0)
    assert machine.initialised(NEXT, TV2) == (Adopt(NEXT),)
    assert machine.state is TxnState.READY


def test_harm_in_tv2_needs_no_bump() -> None:
    machine = written()
    machine.mark_abort_only(100.0, ERROR, has_harm=True)
    machine.abort()
    machine.drained(101.0)
    assert answer(machine, 0, NEXT) == (
        Adopt(NEXT),
        TxnEnded(TransactionOutcome.ABORTED),
    )


def test_a_lost_end_in_tv1_takes_a_new_epoch() -> None:
    machine = ending(TV1)
    request = machine.request
    machine.end_lost()
    assert (machine.request, machine.is_end_uncertain) == (request, True)
    assert answer(machine, 0) == (
        TxnEnded(TransactionOutcome.COMMITTED),
        AskCoordinator(Initialise(FIRST)),
    )


def test_a_refused_commit_of_tv2_asks_by_an_abort() -> None:
    machine = ending()
    effects = answer(machine, 48)
    assert effects == (NOWHERE, AskCoordinator(End(FIRST, TV2, is_commit=False)))
    assert machine.cause is not None
    assert answer(machine, 0, NEXT)[-1] == TxnEnded(TransactionOutcome.ABORTED)


def test_a_refused_commit_of_tv1_fails() -> None:
    machine = ending(TV1)
    assert TxnEnded(TransactionOutcome.ABORTED) in answer(machine, 48)
    assert machine.state is TxnState.FAILED


@BOTH
@pytest.mark.parametrize("code", [47, 90])
@pytest.mark.parametrize("is_commit", [True, False])
def test_an_old_epoch_at_the_end_is_a_fence(
    protocol: Protocol, code: int, is_commit: bool
) -> None:
    machine = ending(protocol, is_commit=is_commit)
    assert answer(machine, code) == (
        NOWHERE,
        DropUnsent(),
        TxnEnded(TransactionOutcome.ABORTED),
    )
    assert (machine.state, machine.request) == (TxnState.FENCED, None)


@BOTH
@pytest.mark.parametrize("code", [120, 59])
def test_an_abortable_code_aborts_a_commit_and_fails_an_abort(
    protocol: Protocol, code: int
) -> None:
    machine = ending(protocol)
    assert answer(machine, code)[-1] == AskCoordinator(
        End(FIRST, protocol, is_commit=False)
    )
    assert TxnEnded(TransactionOutcome.ABORTED) in answer(machine, code)
    assert machine.state is TxnState.FAILED


def test_an_exhausted_epoch_gives_a_new_producer_id() -> None:
    machine = ending()
    fresh = IdAndEpoch(8, 0)
    assert answer(machine, 0, fresh)[0] == Adopt(fresh)
    machine.begin(1000.0, TV2)
    machine.sending(1000.0, [A])
    machine.commit()
    machine.drained(1000.0)
    assert machine.request == End(fresh, TV2, is_commit=True)


@pytest.mark.parametrize("is_lost", [True, False])
def test_a_refused_add_does_not_hold_up_an_abort(is_lost: bool) -> None:
    machine = written(TV1)
    machine.want_partitions(100.0, [B])
    machine.abort()
    assert machine.drained(101.0) == ()
    effects = machine.not_added(102.0, ERROR, is_lost=is_lost)
    assert effects == (NOWHERE, AskCoordinator(End(FIRST, TV1, is_commit=False)))


def again() -> TransactionMachine:
    """In a transaction that began right after the end of another."""
    machine = ending()
    machine.end_answered(102.0, NEXT, None, ErrorCode.NONE)
    assert machine.begin(102.0 + PROBE_WITHIN / 2, TV2) == (NOWHERE,)
    return machine


def test_an_empty_transaction_sends_no_probe() -> None:
    machine = again()
    machine.commit()
    assert machine.drained(102.1) == (NOWHERE, TxnEnded(TransactionOutcome.COMMITTED))


def test_the_first_record_soon_after_an_end_waits_for_a_probe() -> None:
    machine = again()
    probe = Probe(End(FIRST, TV2, is_commit=True))
    assert machine.want_partitions(102.1, [A]) == (AskCoordinator(probe),)
    assert machine.want_partitions(102.1, [B]) == ()
    assert machine.added(102.2) == (Admit(None),)
    assert machine.request is None


def test_probes_that_are_answered_at_once_are_left_out_until_a_write_is_slow() -> None:
    machine = ready()

    def probes() -> bool:
        """Run a transaction; return whether it began with a probe."""
        machine.begin(100.0, TV2)
        machine.want_partitions(100.0, [A])
        is_probed = isinstance(machine.request, Probe)
        if is_probed:
            assert machine.probed(100.0, is_at_once=True) == (Admit(None),)
        machine.sending(100.0, [A])
        machine.commit()
        machine.drained(100.0)
        assert machine.identity is not None
        following = IdAndEpoch(FIRST.producer_id, machine.identity.epoch + 1)
        answer(machine, 0, following)
        return is_probed

    assert not probes()  # there is no transaction before
    assert [probes() for _ in range(PROBES_FOR_TRUST)] == [True] * PROBES_FOR_TRUST
    assert not probes()
    machine.first_answered(0.001)
    assert not probes()
    machine.first_answered(0.02)
    assert probes()


def test_a_coordinator_that_is_far_away_is_not_probed() -> None:
    machine = ready()

    def probes(seconds: float) -> bool:
        """Run a transaction; return whether it began with a probe."""
        machine.begin(100.0, TV2)
        machine.want_partitions(100.0, [A])
        is_probed = isinstance(machine.request, Probe)
        if is_probed:
            machine.probed(100.0 + seconds, is_at_once=True)
        machine.sending(100.0, [A])
        machine.commit()
        machine.drained(100.0)
        assert machine.identity is not None
        following = IdAndEpoch(FIRST.producer_id, machine.identity.epoch + 1)
        machine.end_answered(100.0, following, None, ErrorCode.NONE)
        return is_probed

    assert not probes(0.02)  # there is no transaction before
    # One that took long may have been an accident.
    assert [probes(0.02), probes(0.02), probes(0.001)] == [True] * 3
    assert [probes(0.03), probes(0.02), probes(0.03)] == [True] * 3
    assert not probes(0.02)
    machine.first_answered(0.034)  # as long as the line takes
    assert not probes(0.02)
    machine.first_answered(0.036)
    assert [probes(0.02) for _ in range(4)] == [True] * 3 + [False]


def test_a_lost_commit_that_the_coordinator_cannot_take_has_an_unknown_outcome() -> (
    None
):
    machine = ending()
    machine.end_lost()
    ended = TxnEnded(TransactionOutcome.UNKNOWN)
    assert machine.end_unsupported(ERROR) == (NOWHERE, DropUnsent(), ended)
    assert machine.state is TxnState.FAILED


@pytest.mark.parametrize("state", OVER)
def test_an_answer_after_the_end_of_the_producer_changes_nothing(
    state: TxnState,
) -> None:
    machine = IN[state]()
    before = slots(machine)
    assert machine.added(200.0) == ()
    assert machine.not_added(200.0, OTHER, is_lost=True) == ()
    assert machine.end_answered(200.0, NEXT, None, ErrorCode.NONE) == ()
    assert slots(machine) == before


@pytest.mark.parametrize(
    "state",
    [s for s in TxnState if s not in {*OVER, TxnState.UNKNOWN}],
)
def test_an_answer_that_nobody_asked_for_raises_and_changes_nothing(
    state: TxnState,
) -> None:
    machine = IN[state]()
    before = slots(machine)

    def ended() -> Effects:
        return machine.end_answered(200.0, NEXT, None, ErrorCode.NONE)

    calls: tuple[Callable[[], object], ...] = (
        lambda: machine.added(200.0),
        lambda: machine.not_added(200.0, OTHER, is_lost=True),
        lambda: machine.not_sealed([A]),
        *([] if state is TxnState.SEALING else [ended]),
    )
    for call in calls:
        with pytest.raises(InternalError):
            call()
        assert slots(machine) == before


# ---- an end that is left to another process ------------------------------------------


@BOTH
def test_a_transaction_is_detached_when_all_is_answered(protocol: Protocol) -> None:
    machine = written(protocol)
    machine.detach()
    assert not machine.is_detachable
    # What waits to be sent goes on: its partition is added.
    if protocol is TV1:
        request = AddPartitions(FIRST, (B,))
        assert machine.want_partitions(101.0, [B]) == (AskCoordinator(request),)
    assert machine.drained(102.0) == ()
    if protocol is TV1:
        assert not machine.is_detachable
        with pytest.raises(InternalError):
            machine.detached(ERROR)
        machine.added(103.0)
    assert machine.is_detachable
    assert machine.detached(ERROR) == (NOWHERE,)
    assert (machine.state, machine.cause) == (TxnState.DETACHED, ERROR)
    assert (machine.request, machine.identity) == (None, FIRST)


def test_a_detached_producer_sends_nothing_any_more() -> None:
    machine = detached()
    assert machine.fail(OTHER) == ()
    assert machine.fence(OTHER) == ()
    assert machine.want_partitions(200.0, [B]) == ()
    assert machine.mark_abort_only(200.0, OTHER, has_harm=True) == ()
    assert not machine.expired(200.0)
    assert (machine.state, machine.cause) == (TxnState.DETACHED, ERROR)


def test_a_record_that_fails_while_it_is_detached_aborts_it() -> None:
    machine = detaching()
    machine.drained(101.0)
    assert machine.mark_abort_only(101.0, ERROR) == (DropUnsent(),)
    assert not machine.is_detachable
    assert machine.abort() == (DropUnsent(),)
    assert machine.drained(102.0) == (
        NOWHERE,
        AskCoordinator(End(FIRST, TV2, is_commit=False)),
    )


def test_a_detach_that_is_given_up_aborts() -> None:
    machine = detaching()
    machine.drained(101.0)
    assert machine.abort() == (DropUnsent(),)
    assert machine.drained(102.0) == (
        NOWHERE,
        AskCoordinator(End(FIRST, TV2, is_commit=False)),
    )


# ---- whether the identity is still valid ---------------------------------------------


@BOTH
def test_without_a_transaction_before_a_commit_of_nothing_tells(
    protocol: Protocol,
) -> None:
    machine = ready(protocol)
    end = machine.recheck()
    assert end == End(FIRST, protocol, is_commit=True)
    assert machine.rechecked(end, ErrorCode.INVALID_TXN_STATE, None)
    for code in (47, 49, 53, 90):
        assert not machine.rechecked(end, code, None)
    # TV2 would have committed something that is open, and bumped the epoch.
    assert machine.rechecked(end, 0, FIRST) is (protocol is TV1)


def test_tv2_tells_by_the_end_before() -> None:
    machine = ending()
    answer(machine, 0, NEXT)
    end = machine.recheck()
    assert end == End(FIRST, TV2, is_commit=True)
    assert not machine.rechecked(end, 90, None)
    assert not machine.rechecked(end, ErrorCode.INVALID_TXN_STATE, None)
    assert not machine.rechecked(end, 0, IdAndEpoch(8, 0))
    assert machine.rechecked(end, 0, NEXT)
    # Its markers are written: the next transaction does not ask again.
    assert machine.begin(102.0, TV2) == (Admit(None),)


def test_tv1_tells_by_the_same_commit() -> None:
    machine = ending(TV1)
    answer(machine, 0)
    end = machine.recheck()
    assert end == End(FIRST, TV1, is_commit=True)
    assert machine.rechecked(end, 0, None)


@pytest.mark.parametrize("state", [s for s in TxnState if s is not TxnState.READY])
def test_nothing_is_asked_beside_a_transaction(state: TxnState) -> None:
    with pytest.raises(InternalError):
        IN[state]().recheck()


# ---- changes of protocol, and the ways out -------------------------------------------


def test_an_upgrade_needs_a_bump_and_a_downgrade_does_not() -> None:
    machine = ready(TV1)
    assert not machine.needs_bump(TV2)
    machine.begin(100.0, TV1)
    machine.commit()
    machine.drained(100.0)
    assert machine.needs_bump(TV2)
    assert not machine.needs_bump(TV1)
    assert machine.bump() == (AskCoordinator(Initialise(FIRST)),)
    assert machine.initialised(NEXT, TV2) == (Adopt(NEXT),)
    assert not machine.needs_bump(TV2)
    assert machine.begin(200.0, TV1) == (NOWHERE,)


def test_partitions_can_be_added_explicitly_in_tv2() -> None:
    machine = opened(explicit=True)
    request = AddPartitions(FIRST, (A, B))
    assert machine.want_partitions(100.0, [A, B]) == (AskCoordinator(request),)
    effects = machine.added(101.0)
    assert effects == (Started(160.0), Admit(frozenset({A, B})))
    assert machine.want_partitions(101.0, [A]) == ()
    assert repr(machine).endswith("2 partitions, 0 groups>")


def test_a_coordinator_without_tv2_is_asked_for_an_abort_in_tv1() -> None:
    machine = ending()
    effects = machine.end_unsupported(ERROR)
    assert effects == (NOWHERE, AskCoordinator(End(FIRST, TV1, is_commit=False)))
    assert machine.cause is ERROR
    assert answer(machine, 0) == (
        TxnEnded(TransactionOutcome.ABORTED),
        AskCoordinator(Initialise(FIRST)),
    )
    machine = committing()
    machine.mark_abort_only(100.0, OTHER)
    machine.abort()
    machine.drained(100.0)
    machine.end_unsupported(ERROR)
    assert machine.cause is OTHER


def test_a_coordinator_without_tv2_may_never_have_heard_of_it() -> None:
    machine = ending()
    machine.end_unsupported(ERROR)
    assert answer(machine, ErrorCode.INVALID_TXN_STATE) == (
        TxnEnded(TransactionOutcome.ABORTED),
        AskCoordinator(Initialise(FIRST)),
    )


def test_a_cancelled_commit_is_an_abort_before_endtxn_is_sent() -> None:
    machine = committing()
    assert machine.abort() == (DropUnsent(),)
    machine.drained(101.0)
    assert machine.request == End(FIRST, TV2, is_commit=False)


@BOTH
@pytest.mark.parametrize("over", ["fence", "fail"])
@pytest.mark.parametrize("is_commit", [True, False])
def test_a_commit_without_an_answer_has_an_unknown_outcome(
    protocol: Protocol, over: str, is_commit: bool
) -> None:
    machine = ending(protocol, is_commit=is_commit)
    outcome = TransactionOutcome.UNKNOWN if is_commit else TransactionOutcome.ABORTED
    effects = getattr(machine, over)(ERROR)
    assert effects == (NOWHERE, DropUnsent(), TxnEnded(outcome))
    assert getattr(machine, over)(OTHER) == ()
    assert machine.cause is ERROR


def test_a_lost_add_may_have_started_nothing() -> None:
    machine = opened(TV1)
    machine.want_partitions(100.0, [A])
    effects = machine.not_added(101.0, ERROR, is_lost=True)
    assert effects == (Started(160.0), DropUnsent())
    assert machine.want_partitions(101.0, [B]) == machine.want_offsets(101.0, "g") == ()
    machine.abort()
    machine.drained(101.0)
    assert answer(machine, 48) == (
        TxnEnded(TransactionOutcome.ABORTED),
        AskCoordinator(Initialise(FIRST)),
    )


def test_time_runs_from_the_first_write() -> None:
    machine = opened()
    assert not machine.expired(1e9)
    machine.sending(100.0, [A])
    machine.sending(150.0, [B])
    assert not machine.expired(159.9)
    assert machine.expired(160.0)
    machine.abort()
    assert not machine.expired(160.0)


def test_an_add_under_way_when_the_abort_begins_is_waited_for() -> None:
    machine = opened(TV1)
    machine.want_partitions(100.0, [A])
    machine.abort()
    assert machine.drained(100.0) == ()
    end = End(FIRST, TV1, is_commit=False)
    assert machine.added(101.0) == (Started(160.0), NOWHERE, AskCoordinator(end))


def test_the_first_reason_counts_and_unsent_records_fail_once() -> None:
    machine = written()
    assert machine.mark_abort_only(100.0, ERROR) == (DropUnsent(),)
    assert machine.mark_abort_only(100.0, OTHER) == ()
    assert machine.cause is ERROR


def test_the_first_identity_may_be_refused_and_asked_for_again() -> None:
    machine = initialising()
    machine.not_initialised()
    assert machine.initialise() == (AskCoordinator(Initialise(None)),)


@pytest.mark.parametrize("is_commit", [True, False])
def test_nothing_ends_before_it_is_drained(is_commit: bool) -> None:
    machine = written(TV1)
    machine.want_partitions(100.0, [B])
    if is_commit:
        machine.commit()
    else:
        machine.abort()
    assert NOWHERE not in machine.added(101.0)
    assert machine.request is None


def test_numbers_left_out_in_tv1_take_a_new_epoch_after_the_end() -> None:
    machine = written(TV1)
    assert machine.abort() == (DropUnsent(),)
    machine.harmed()
    machine.drained(101.0)
    assert answer(machine, 0) == (
        TxnEnded(TransactionOutcome.ABORTED),
        AskCoordinator(Initialise(FIRST)),
    )
