import re

import pytest
from hypothesis import given, strategies as st

from kafkaio._machines.api_versions import (
    Announced,
    ApiVersions,
    Features,
    VersionRechecks,
    software_version,
)
from kafkaio.errors import UnsupportedVersion
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kafkaio.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kafkaio.protocol.messages.fetch import FetchRequest
from kafkaio.protocol.messages.produce import ProduceRequest


def announced(api: ApiKey, low: int, high: int) -> ApiVersions:
    return ApiVersions(ranges={api: (low, high)})


def test_reads_an_answer() -> None:
    versions = ApiVersions.from_response(
        ApiVersionsResponse(
            api_keys=[ApiVersion(api_key=1, min_version=4, max_version=18)],
            supported_features=[
                SupportedFeatureKey(name="group.version", max_version=1)
            ],
            finalized_features_epoch=7,
            finalized_features=[
                FinalizedFeatureKey(name="transaction.version", max_version_level=2)
            ],
        )
    )
    assert versions.ranges == {1: (4, 18)}
    assert versions.max_version(ApiKey.FETCH) == 18
    assert versions.max_version(ApiKey.PRODUCE) is None
    assert versions.finalized_features == {"transaction.version": 2}
    assert versions.finalized_features_epoch == 7
    assert versions.supported_features == {"group.version": 1}


def test_takes_the_highest_version_of_both() -> None:
    top = FetchRequest.MAX_VERSION
    assert announced(ApiKey.FETCH, 0, 10).usable(FetchRequest) == 10
    assert announced(ApiKey.FETCH, 0, top + 5).usable(FetchRequest) == top
    once = announced(ApiKey.FETCH, 0, top)
    assert once.usable(FetchRequest, 12) == 12
    assert once.usable(FetchRequest) == top  # each limit has an answer of its own
    assert once.usable(FetchRequest, 12) == 12


def test_an_unknown_api_is_named() -> None:
    with pytest.raises(UnsupportedVersion, match="FetchRequest"):
        ApiVersions().usable(FetchRequest)


def test_no_common_version_names_both_ranges() -> None:
    with pytest.raises(UnsupportedVersion, match="the broker knows 99 to 120, kafka"):
        announced(ApiKey.FETCH, 99, 120).usable(FetchRequest)
    with pytest.raises(UnsupportedVersion, match="at most 3 here"):
        announced(ApiKey.FETCH, 4, 18).usable(FetchRequest, 3)


def test_versions_that_are_advertised_and_not_served() -> None:
    with pytest.raises(UnsupportedVersion):
        announced(ApiKey.PRODUCE, 0, 2).usable(ProduceRequest)
    assert announced(ApiKey.PRODUCE, 0, 3).usable(ProduceRequest) == 3
    txn = announced(ApiKey.ADD_PARTITIONS_TO_TXN, 0, 5)
    assert txn.usable(AddPartitionsToTxnRequest) == 3


@given(st.integers(0, 20), st.integers(0, 20), st.none() | st.integers(0, 20))
def test_what_is_usable_is_known_to_both(
    low: int, high: int, limit: int | None
) -> None:
    try:
        version = announced(ApiKey.FETCH, low, high).usable(FetchRequest, limit)
    except UnsupportedVersion:
        floor = max(low, FetchRequest.MIN_VERSION)
        top = min(high, FetchRequest.MAX_VERSION, 20 if limit is None else limit)
        assert floor > top
    else:
        assert low <= version <= high
        assert FetchRequest.MIN_VERSION <= version <= FetchRequest.MAX_VERSION
        assert limit is None or version <= limit


@pytest.mark.parametrize(
    ("version", "shown"),
    [
        ("1.2.3", "1.2.3"),
        ("1.0+local_2", "1.0-local-2"),
        ("0.1.0.dev0", "0.1.0.dev0"),
        ("-x-", "x"),
        ("+", "unknown"),
        ("", "unknown"),
    ],
)
def test_software_version(version: str, shown: str) -> None:
    assert software_version(version) == shown


@given(st.text())
def test_brokers_accept_every_software_version(version: str) -> None:
    rule = r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?"
    assert re.fullmatch(rule, software_version(version))


def told(epoch: int, **levels: int) -> ApiVersions:
    return ApiVersions(finalized_features=levels, finalized_features_epoch=epoch)


def test_features_are_unknown_at_first() -> None:
    features = Features()
    assert features.level("transaction_version") == 0
    assert features.epoch == -1
    # A broker that does not know the epoch tells nothing.
    assert not features.learn(told(-1, transaction_version=2))
    assert features.level("transaction_version") == 0


def test_the_features_with_the_highest_epoch_hold() -> None:
    features = Features()
    assert features.learn(told(0, transaction_version=1))
    assert features.level("transaction_version") == 1
    assert features.learn(told(7, transaction_version=2, group_version=1))
    assert not features.learn(told(6, transaction_version=1))
    assert not features.learn(told(7, transaction_version=0))
    assert not features.learn(told(-1))
    assert features.levels == {"transaction_version": 2, "group_version": 1}
    assert features.epoch == 7
    # A newer epoch may lower a level, or take a feature away.
    assert features.learn(told(8))
    assert features.level("transaction_version") == 0


def test_the_lowest_version_is_that_of_the_oldest_broker() -> None:
    known = Announced()
    assert known.lowest(ApiKey.PRODUCE) == -1
    known.learn(1, announced(ApiKey.PRODUCE, 0, 13))
    assert known.lowest(ApiKey.PRODUCE) == 13
    known.learn(2, announced(ApiKey.PRODUCE, 0, 12))
    assert known.lowest(ApiKey.PRODUCE) == known.lowest(ApiKey.PRODUCE) == 12
    assert known.lowest(ApiKey.FETCH) == -1
    known.learn(2, announced(ApiKey.PRODUCE, 0, 13))  # upgraded
    assert known.lowest(ApiKey.PRODUCE) == 13


def test_a_broker_is_asked_again_when_a_request_found_no_version() -> None:
    looks = VersionRechecks()
    good, bad = announced(ApiKey.FETCH, 4, 12), announced(ApiKey.PRODUCE, 3, 9)
    assert good.usable(FetchRequest) == 12
    assert not looks.is_due(1, good, 0.0, 100.0)
    for _ in range(2):
        with pytest.raises(UnsupportedVersion):
            bad.usable(FetchRequest)
    assert bad.missed
    assert not looks.is_due(1, bad, 100.0, 104.9)
    assert looks.is_due(1, bad, 100.0, 105.0)


def test_a_broker_that_means_it_is_asked_more_and_more_seldom() -> None:
    looks, asked_at, waits = VersionRechecks(), 0.0, list[float]()
    for _ in range(10):
        old = announced(ApiKey.PRODUCE, 3, 9)
        old.miss(ApiKey.FETCH)
        now = asked_at
        while not looks.is_due(1, old, asked_at, now):
            now += 1
        waits.append(now - asked_at)
        asked_at = now
    assert waits == [5, 10, 20, 40, 80, 160, 320, 600, 600, 600]
    other = announced(ApiKey.PRODUCE, 3, 8)
    other.miss(ApiKey.FETCH)
    assert looks.is_due(1, other, asked_at, asked_at + 5)
    assert looks.is_due(2, old, asked_at, asked_at + 5)


def test_what_the_user_limits_is_no_reason_to_ask_again() -> None:
    versions = ApiVersions(ranges={ApiKey.FETCH: (4, 2)}, limits={ApiKey.FETCH: 2})
    with pytest.raises(UnsupportedVersion):
        versions.usable(FetchRequest)
    assert not versions.missed
