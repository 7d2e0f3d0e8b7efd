"""Whether the brokers write a group's dead letters: only if that is certain."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafkaio._client.destinations import ANY
from kafkaio._share.dead_letters import dead_letter_topic
from kafkaio.errors import AuthorizationError, BrokerError
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kafkaio.types import Broker

OF_GROUP = "errors.deadletterqueue.topic.name"
OF_TOPIC = "errors.deadletterqueue.group.enable"
OF_BROKER = "errors.deadletterqueue.topic.name.prefix"
#: A group whose dead letters the brokers write.
WRITTEN: dict[tuple[int, str], dict[str, str | None] | int] = {
    (32, "workers"): {OF_GROUP: "dlq.jobs", "share.record.lock.duration.ms": "5"},
    (2, "dlq.jobs"): {OF_TOPIC: "true"},
    (4, "3"): {OF_BROKER: "dlq."},
}


class FakeCluster:
    """Answers with configs, or with an error code, by kind and name."""

    def __init__(self, answers: Any, *, level: int = 2) -> None:
        self.answers = answers
        self.features = SimpleNamespace(levels={"share.version": level})
        self.view = SimpleNamespace(brokers={5: None, 3: None})
        self.asked: list[tuple[int, str, object]] = []

    async def request(
        self, request: DescribeConfigsRequest, to: object, *, timeout: float
    ) -> DescribeConfigsResponse:
        assert timeout > 0
        [resource] = request.resources
        kind, name = resource.resource_type, resource.resource_name
        self.asked.append((kind, name, to))
        found = self.answers[kind, name]
        code = found if isinstance(found, int) else 0
        configs = [
            DescribeConfigsResourceResult(name=key, value=value)
            for key, value in ({} if isinstance(found, int) else found).items()
            if key in (resource.configuration_keys or ())
        ]
        result = DescribeConfigsResult(
            error_code=code,
            error_message=None,
            resource_type=kind,
            resource_name=name,
            configs=configs,
        )
        return DescribeConfigsResponse(results=[result])


async def topic_of(cluster: FakeCluster) -> str | None:
    return await dead_letter_topic(cluster, "workers", 5.0)  # type: ignore[arg-type]


async def test_they_write_them() -> None:
    cluster = FakeCluster(WRITTEN)
    assert await topic_of(cluster) == "dlq.jobs"
    assert cluster.asked == [
        (32, "workers", ANY),
        (2, "dlq.jobs", ANY),
        (4, "3", Broker(3)),
    ]


async def test_brokers_before_kafka_4_4_write_none() -> None:
    cluster = FakeCluster(WRITTEN, level=1)
    assert await topic_of(cluster) is None
    assert cluster.asked == []


@pytest.mark.parametrize(
    "change",
    [
        {(32, "workers"): {}},
        {(32, "workers"): {OF_GROUP: ""}},
        {(32, "workers"): {OF_GROUP: None}},
        {(2, "dlq.jobs"): {OF_TOPIC: "false"}},
        {(2, "dlq.jobs"): int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)},
        {(4, "3"): {OF_BROKER: "dead."}},
    ],
)
async def test_what_they_would_not_write(change: Any) -> None:
    assert await topic_of(FakeCluster({**WRITTEN, **change})) is None


async def test_brokers_that_ask_for_no_prefix() -> None:
    for prefix in ("", None):
        answers = {**WRITTEN, (4, "3"): {OF_BROKER: prefix}}
        assert await topic_of(FakeCluster(answers)) == "dlq.jobs"


@pytest.mark.parametrize(
    ("place", "code", "kind"),
    [
        ((32, "workers"), ErrorCode.GROUP_AUTHORIZATION_FAILED, AuthorizationError),
        ((2, "dlq.jobs"), ErrorCode.TOPIC_AUTHORIZATION_FAILED, AuthorizationError),
        ((4, "3"), ErrorCode.CLUSTER_AUTHORIZATION_FAILED, AuthorizationError),
        ((32, "workers"), ErrorCode.INVALID_REQUEST, BrokerError),
    ],
)
async def test_what_cannot_be_known(place: Any, code: int, kind: type) -> None:
    with pytest.raises(kind):
        await topic_of(FakeCluster({**WRITTEN, place: int(code)}))
