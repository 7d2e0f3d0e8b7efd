"""The negotiation of versions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaio._machines.connection.handshake import VersionNegotiation, next_attempt
from kafkaio.errors import UnsupportedVersion
from kafkaio.protocol.headers import encode_response
from kafkaio.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from tests.unit.machines.connection.support import IDENTITY


def test_the_negotiation_ends_when_the_versions_are_known() -> None:
    negotiation = VersionNegotiation(IDENTITY)
    assert negotiation.version == ApiVersionsRequest.MAX_VERSION
    request = negotiation.request()
    assert request.client_software_name == IDENTITY.software_name
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
