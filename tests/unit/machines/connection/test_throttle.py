"""Which answers make the client pause."""

import pytest

from kafkaio._machines.connection.throttle import THROTTLED_FROM, pause_after
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._message import Response
from kafkaio.protocol._requests import request_type
from kafkaio.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatResponse,
)
from kafkaio.protocol.messages.heartbeat import HeartbeatResponse
from kafkaio.protocol.messages.sasl_handshake import SaslHandshakeResponse


def test_throttled_versions_exist() -> None:
    for key, version in THROTTLED_FROM.items():
        assert version <= request_type(key).MAX_VERSION


@pytest.mark.parametrize(
    ("response", "version", "seconds"),
    [
        (HeartbeatResponse(throttle_time_ms=1_500), 2, 1.5),
        (HeartbeatResponse(throttle_time_ms=1_500), 1, 0.0),  # the broker delays it
        (HeartbeatResponse(throttle_time_ms=-1), 4, 0.0),
        (HeartbeatResponse(), 4, 0.0),
        (ConsumerGroupHeartbeatResponse(throttle_time_ms=1_000), 0, 1.0),
        (SaslHandshakeResponse(), 1, 0.0),  # has no such field
    ],
)
def test_a_pause_follows_the_rule(
    response: Response, version: int, seconds: float
) -> None:
    assert pause_after(response, version, 60.0) == seconds
    assert ApiKey.CONSUMER_GROUP_HEARTBEAT not in THROTTLED_FROM


@pytest.mark.parametrize(
    ("told", "longest", "seconds"),
    [(2**31 - 1, 60.0, 60.0), (59_999, 60.0, 59.999), (500, 0.0, 0.0)],
)
def test_a_pause_has_a_limit(told: int, longest: float, seconds: float) -> None:
    response = HeartbeatResponse(throttle_time_ms=told)
    assert pause_after(response, 4, longest) == seconds
