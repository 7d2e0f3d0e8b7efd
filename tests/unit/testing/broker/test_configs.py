"""What is refused when configs are asked for and changed."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import pytest

from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.protocol.messages import alter_configs as whole
from kafkaio.protocol.messages import incremental_alter_configs as single
from kafkaio.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from tests.unit.testing.broker.calls import Caller, started

TOPIC, BROKER, GROUP = 2, 4, 32
NONE = ErrorCode.NONE
INVALID_CONFIG = ErrorCode.INVALID_CONFIG
INVALID_REQUEST = ErrorCode.INVALID_REQUEST
INVALID_TOPIC = ErrorCode.INVALID_TOPIC_EXCEPTION
UNKNOWN_TOPIC = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
RETENTION = ("retention.ms", "5")
SESSION = "consumer.session.timeout.ms"

Asked = tuple[int, str, Sequence[tuple[str, str | None]]]

#: Resources of one request with what is to be set, and the errors of both APIs.
REFUSED: list[tuple[list[Asked], list[ErrorCode]]] = [
    ([(TOPIC, "t", [RETENTION]), (TOPIC, "t", [])], [INVALID_REQUEST] * 2),
    ([(TOPIC, "t", [RETENTION, RETENTION])], [INVALID_REQUEST]),
    ([(TOPIC, "t", [("retention.ms", None)])], [INVALID_REQUEST]),
    ([(TOPIC, "", [RETENTION])], [INVALID_REQUEST]),
    ([(TOPIC, "a/b", [("retention.ms", "soon")])], [INVALID_TOPIC]),
    ([(TOPIC, "none", [("retention.ms", "soon")])], [INVALID_CONFIG]),
    ([(TOPIC, "none", [RETENTION])], [UNKNOWN_TOPIC]),
    ([(BROKER, "1", [])], [INVALID_REQUEST]),
    ([(BROKER, "", []), (BROKER, "0", [])], [NONE] * 2),
    ([(GROUP, "", [])], [INVALID_REQUEST]),
    ([(GROUP, "g", [(SESSION, "1")])], [INVALID_CONFIG]),
    ([(GROUP, "g", [(SESSION, "60001")])], [INVALID_CONFIG]),
    ([(GROUP, "g", [(SESSION, "60000")]), (9, "x", [])], [NONE, INVALID_REQUEST]),
]


def resources(api: ModuleType, asked: list[Asked]) -> list[Any]:
    """What is to be set, in the words of one of the two APIs."""
    return [
        api.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[api.AlterableConfig(name=n, value=v) for n, v in new],
        )
        for kind, name, new in asked
    ]


@pytest.mark.parametrize(("asked", "codes"), REFUSED)
async def test_configs_that_cannot_be_set(
    asked: list[Asked], codes: list[ErrorCode]
) -> None:
    async with started(topics={"t": 1}, nodes=2) as (broker, caller):
        some = single.IncrementalAlterConfigsRequest(resources=resources(single, asked))
        answer = await caller.call(some, 1)
        assert [one.error_code for one in answer.responses] == codes
        all_ = whole.AlterConfigsRequest(resources=resources(whole, asked))
        told = await caller.call(all_, 2)
        assert [one.error_code for one in told.responses] == codes
        assert broker.topics["t"].settings.values == {}


async def described(caller: Caller, *asked: tuple[int, str]) -> list[int]:
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=None
            )
            for kind, name in asked
        ]
    )
    return [one.error_code for one in (await caller.call(request, 4)).results]


async def test_configs_that_cannot_be_looked_up() -> None:
    async with started(topics={"t": 1}, nodes=2) as (_, caller):
        asked = [(TOPIC, "t"), (TOPIC, ""), (TOPIC, "none"), (BROKER, "1"), (GROUP, "")]
        assert await described(caller, *asked) == [
            NONE,
            INVALID_TOPIC,
            UNKNOWN_TOPIC,
            INVALID_REQUEST,
            INVALID_REQUEST,
        ]
        # A kind of resource that is not there fails the whole request.
        assert await described(caller, (TOPIC, "t"), (9, "x")) == [INVALID_REQUEST] * 2
