import pytest

from kafkaio._machines.reaction_table import BASE, OVERRIDES
from kafkaio._machines.reactions import (
    NO_ERROR,
    Reaction,
    ReactionStep,
    is_foreign,
    known_code,
    reaction,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode as E


def test_every_code_is_mapped() -> None:
    assert set(BASE) == set(E)


def test_no_error_is_a_success_in_every_api() -> None:
    assert BASE[E.NONE] == NO_ERROR
    assert not any(E.NONE in table for table in OVERRIDES.values())


@pytest.mark.parametrize("code", list(E))
def test_the_base_retries_what_kafka_calls_retriable(code: E) -> None:
    assert BASE[code].retry is code.retriable


@pytest.mark.parametrize("code", list(E))
def test_what_is_rerouted_is_retried(code: E) -> None:
    for api in ApiKey:
        wanted = reaction(api, code)
        assert wanted.retry or not wanted.reroute
        assert wanted.retry or not wanted.refresh_metadata
        assert wanted.retry or not wanted.refind_coordinator


def test_fatal_is_never_retried() -> None:
    found = [
        wanted
        for table in OVERRIDES.values()
        for wanted in table.values()
        if wanted.step in {ReactionStep.FATAL, ReactionStep.ABORT, ReactionStep.SUCCESS}
    ]
    assert found
    assert not any(wanted.retry for wanted in found)


def test_overrides_are_of_known_apis_and_change_something() -> None:
    assert set(OVERRIDES) <= set(ApiKey)
    for table in OVERRIDES.values():
        for code, wanted in table.items():
            assert wanted != BASE[code], code


def test_only_one_of_the_two_codes_for_size_divides_a_batch() -> None:
    # The other is of a batch larger than a segment of the log, which Java fails, too.
    assert (
        reaction(ApiKey.PRODUCE, E.MESSAGE_TOO_LARGE).step is ReactionStep.SPLIT_BATCH
    )
    assert reaction(ApiKey.PRODUCE, E.RECORD_LIST_TOO_LARGE) == Reaction()


def test_codes_of_newer_brokers_are_final() -> None:
    assert known_code(30_000) is E.UNKNOWN_SERVER_ERROR
    assert reaction(ApiKey.PRODUCE, 30_000) == Reaction()
    assert reaction(9_999, E.NOT_COORDINATOR).refind_coordinator


@pytest.mark.parametrize(
    ("api", "code", "step"),
    [
        (ApiKey.PRODUCE, E.DUPLICATE_SEQUENCE_NUMBER, ReactionStep.SUCCESS),
        (ApiKey.PRODUCE, E.MESSAGE_TOO_LARGE, ReactionStep.SPLIT_BATCH),
        (ApiKey.PRODUCE, E.OUT_OF_ORDER_SEQUENCE_NUMBER, ReactionStep.CHECK_SEQUENCE),
        (ApiKey.PRODUCE, E.INVALID_PRODUCER_EPOCH, ReactionStep.ABORT),
        (ApiKey.PRODUCE, E.INVALID_PRODUCER_ID_MAPPING, ReactionStep.ABORT),
        (ApiKey.END_TXN, E.INVALID_PRODUCER_EPOCH, ReactionStep.FATAL),
        (ApiKey.FETCH, E.OFFSET_OUT_OF_RANGE, ReactionStep.RESET_POSITION),
        (ApiKey.FETCH, E.INVALID_FETCH_SESSION_EPOCH, ReactionStep.RESET_SESSION),
        (ApiKey.FETCH, E.FETCH_SESSION_TOPIC_ID_ERROR, ReactionStep.RESET_SESSION),
        (ApiKey.HEARTBEAT, E.REBALANCE_IN_PROGRESS, ReactionStep.REJOIN),
        (ApiKey.HEARTBEAT, E.ILLEGAL_GENERATION, ReactionStep.RESET_GENERATION),
        (ApiKey.SYNC_GROUP, E.UNKNOWN_MEMBER_ID, ReactionStep.RESET_MEMBER),
        (ApiKey.JOIN_GROUP, E.MEMBER_ID_REQUIRED, ReactionStep.REJOIN),
        (ApiKey.JOIN_GROUP, E.FENCED_INSTANCE_ID, ReactionStep.FATAL),
        (ApiKey.LEAVE_GROUP, E.UNKNOWN_MEMBER_ID, ReactionStep.SUCCESS),
        (
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            E.FENCED_MEMBER_EPOCH,
            ReactionStep.RESET_MEMBER,
        ),
        (ApiKey.CONSUMER_GROUP_HEARTBEAT, E.UNRELEASED_INSTANCE_ID, ReactionStep.FATAL),
        (ApiKey.TXN_OFFSET_COMMIT, E.ILLEGAL_GENERATION, ReactionStep.ABORT),
        (ApiKey.METADATA, E.REBOOTSTRAP_REQUIRED, ReactionStep.REBOOTSTRAP),
    ],
)
def test_what_an_api_does_besides(api: ApiKey, code: E, step: ReactionStep) -> None:
    assert reaction(api, code).step is step


def test_commit_and_fetch_of_offsets() -> None:
    rebalancing = reaction(ApiKey.OFFSET_COMMIT, E.REBALANCE_IN_PROGRESS)
    assert rebalancing == Reaction(step=ReactionStep.REJOIN)
    late = reaction(ApiKey.OFFSET_COMMIT, E.REQUEST_TIMED_OUT)
    assert late.retry
    assert late.refind_coordinator
    assert reaction(ApiKey.OFFSET_FETCH, E.UNSTABLE_OFFSET_COMMIT).retry
    assert not reaction(ApiKey.OFFSET_COMMIT, E.OFFSET_METADATA_TOO_LARGE).retry


def test_an_epoch_that_the_broker_does_not_share_asks_for_metadata() -> None:
    assert reaction(ApiKey.FETCH, E.UNKNOWN_LEADER_EPOCH).refresh_metadata
    assert reaction(ApiKey.FETCH, E.FENCED_LEADER_EPOCH).refresh_metadata


def test_which_codes_are_foreign_to_an_api() -> None:
    foreign = [E.NON_EMPTY_GROUP, E.UNSUPPORTED_ASSIGNOR, 12345, -1]
    for code in foreign:
        assert is_foreign(ApiKey.INIT_PRODUCER_ID, code)
    own = [E.NONE, E.NOT_COORDINATOR, E.PRODUCER_FENCED, E.CONCURRENT_TRANSACTIONS]
    for code in own:
        assert not is_foreign(ApiKey.INIT_PRODUCER_ID, code)
    assert not is_foreign(ApiKey.END_TXN, E.UNKNOWN_SERVER_ERROR)  # it is repeated
