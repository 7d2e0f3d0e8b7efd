"""The negotiation of versions."""

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from kafkaio._machines.connection.handshake import (
    FirstVersions,
    VersionNegotiation,
    next_attempt,
)
from kafkaio.errors import BrokerError, UnsupportedVersion
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._headers import encode_response
from kafkaio.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
)
from tests.unit.machines.connection.support import IDENTITY


def test_the_negotiation_ends_when_the_versions_are_known() -> None:
    negotiation = VersionNegotiation(IDENTITY)
    assert negotiation.version == IDENTITY.first_version
    request = negotiation.request()
    assert request.client_software_name == IDENTITY.software_name
    assert (request.cluster_id, request.node_id) == (None, -1)
    answer = ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=3, min_version=0, max_version=9)]
    )
    negotiation.receive(encode_response(answer, negotiation.version, 0)[4:])
    assert negotiation.version is None
    assert negotiation.versions.max_version(3) == 9


def test_negotiation_ends_without_an_error() -> None:
    assert next_attempt(4, ApiVersionsResponse()) is None


def test_negotiation_asks_again_at_the_announced_version() -> None:
    answer = ApiVersionsResponse(
        error_code=35,
        api_keys=[
            ApiVersion(api_key=3, max_version=9),
            ApiVersion(api_key=18, max_version=3),
        ],
    )
    assert next_attempt(5, answer) == 3


def test_negotiation_falls_back_to_zero_where_nothing_is_said() -> None:
    assert next_attempt(4, ApiVersionsResponse(error_code=35)) == 0
    other = ApiVersion(api_key=3, max_version=9)
    assert next_attempt(4, ApiVersionsResponse(error_code=35, api_keys=[other])) == 0


@given(st.integers(1, 4), st.integers(-(2**15), 2**15 - 1))
def test_negotiation_never_repeats_a_version(asked: int, announced: int) -> None:
    answer = ApiVersionsResponse(
        error_code=35, api_keys=[ApiVersion(api_key=18, max_version=announced)]
    )
    retry = next_attempt(asked, answer)
    assert retry is not None
    assert 0 <= retry < asked


@pytest.mark.parametrize(("asked", "code"), [(0, 35), (4, 42), (0, 1)])
def test_negotiation_fails_on_other_errors(asked: int, code: int) -> None:
    with pytest.raises(UnsupportedVersion, match=f"error code {code}"):
        next_attempt(asked, ApiVersionsResponse(error_code=code))


@pytest.mark.parametrize(
    "rest",
    [
        b"",
        bytes.fromhex("0100120000000200000000"),  # librdkafka's mock cluster
        b"\xff" * 40,
    ],
)
def test_a_refused_version_is_one_whatever_follows_the_error(rest: bytes) -> None:
    negotiation = VersionNegotiation(IDENTITY)
    negotiation.receive(bytes(4) + b"\0\x23" + rest)
    assert negotiation.version == 0


def test_a_broker_is_told_who_it_has_to_be() -> None:
    identity = replace(IDENTITY, cluster_id="c", node_id=3, first_version=5)
    negotiation = VersionNegotiation(identity)
    request = negotiation.request()
    assert (request.cluster_id, request.node_id) == ("c", 3)
    refusal = ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    with pytest.raises(BrokerError, match="it is not broker 3 of cluster c"):
        negotiation.receive(encode_response(refusal, 5, 0)[4:])


ADDRESS = ("h", 9092)


def test_a_broker_is_told_where_it_understands_it() -> None:
    versions = FirstVersions()
    assert versions.version(ADDRESS, 0.0, is_expected=True) == 4
    versions.answered(ADDRESS, 4, 5)
    other = ("other", 9092)
    for address in (ADDRESS, other):
        assert versions.version(address, 0.0, is_expected=True) == 5
        assert versions.version(address, 0.0) == 4
    versions.answered(other, 5, 4)
    assert versions.version(other, 0.0, is_expected=True) == 4
    assert versions.version(ADDRESS, 0.0, is_expected=True) == 5
    assert versions.version(("new", 9092), 0.0, is_expected=True) == 4


def test_an_address_that_hangs_up_at_an_expectation_is_asked_without() -> None:
    versions = FirstVersions()
    versions.answered(ADDRESS, 4, 5)
    asked = []
    for _ in range(5):
        asked.append(versions.version(ADDRESS, 0.0, is_expected=True))
        versions.hung_up(ADDRESS, 0.0)
    assert asked == [5, 5, 3, 0, 5]


def test_an_address_that_hangs_up_is_asked_in_older_versions() -> None:
    versions = FirstVersions()
    asked = []
    for _ in range(9):
        asked.append(versions.version(ADDRESS, 0.0))
        versions.hung_up(ADDRESS, 0.0)
    assert asked == [4, 4, 3, 0, 4, 4, 3, 0, 4]
    assert versions.version(("other", 9092), 0.0) == 4


def test_what_an_address_answered_is_kept_for_a_while() -> None:
    versions = FirstVersions()
    for _ in range(2):
        versions.hung_up(ADDRESS, 0.0)
    versions.answered(ADDRESS, 3)
    assert versions.version(ADDRESS, 500.0) == 3
    assert versions.version(ADDRESS, 601.0) == 4
    versions.answered(ADDRESS, 4)
    versions.hung_up(ADDRESS, 700.0)
    assert versions.version(ADDRESS, 700.0) == 4


def test_the_highest_version_is_a_limit() -> None:
    versions = FirstVersions(1)
    for _ in range(5):
        assert versions.version(ADDRESS, 0.0) <= 1
        versions.hung_up(ADDRESS, 0.0)


@pytest.mark.parametrize(
    ("cluster_id", "first_version", "announced", "is_asked"),
    [
        ("c", 5, 5, True),
        # An older broker does not compare, and an address may hang up at version 5.
        ("c", 5, 4, False),
        ("c", 4, 5, False),
        # Without the option nobody says who is expected.
        (None, 5, 5, False),
    ],
)
def test_a_bootstrap_server_that_becomes_a_broker_is_asked_who_it_is(
    cluster_id: str | None, first_version: int, announced: int, *, is_asked: bool
) -> None:
    negotiation = VersionNegotiation(IDENTITY)
    asked = negotiation.version
    assert asked is not None
    answer = ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=18, max_version=announced)]
    )
    frame = encode_response(answer, asked, 0)[4:]
    negotiation.receive(frame)
    expected = replace(
        IDENTITY, cluster_id=cluster_id, first_version=first_version, node_id=7
    )
    request = negotiation.becomes(expected)
    assert (request is not None) == is_asked
    if request is not None:
        assert (request.cluster_id, request.node_id) == (cluster_id, 7)
