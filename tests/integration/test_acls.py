"""The embedded broker's ACLs decide, and its answers tell it, as a real Kafka's do."""

from __future__ import annotations

from typing import Final

import pytest

from kafkaio.testing import Broker
from kafkaio.testing._security.config import SecurityConfig
from kafkaio.testing.kafka._properties import PRINCIPAL_RULES
from tests.integration.differential import rights
from tests.integration.differential.pair import Guarded, Side, paired
from tests.support.kafka import Kafka

pytestmark = [
    pytest.mark.kafka_versions("newest"),
    pytest.mark.not_embedded("compares the embedded broker with a real one"),
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="module"),
]

#: A user who sees internal topics sees how many partitions they have.
_BOTH: Final = {
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.num.partitions": 3,
}


def side(broker: Broker | Kafka) -> Side:
    guarded = Guarded(broker.bootstrap("MTLS"), broker.certificates.client_context)
    return Side(broker.bootstrap_servers, guarded)


async def test_without_an_authorizer_there_are_no_acls(
    kafka: Kafka, embedded: Broker
) -> None:
    async with paired(embedded.bootstrap_servers, kafka.bootstrap_servers) as pair:
        for request in rights.on_acls():
            await pair.ask(request, 3)


async def test_every_user_gets_the_answers_of_a_real_kafka() -> None:
    users = dict.fromkeys(rights.USERS, "secret")
    real = Kafka(
        tls=True,
        acls=True,
        users=users,
        delegation_tokens=True,
        config=_BOTH
        | {
            "group.consumer.heartbeat.interval.ms": 5000,
            "group.consumer.session.timeout.ms": 45_000,
        },
    )
    embedded = Broker(
        first_node_id=1,
        racks=["r1"],
        config=_BOTH,
        tls=True,
        acls=True,
        users=users,
        security=SecurityConfig(principal_rules=PRINCIPAL_RULES),
    )
    async with real, embedded, paired(side(embedded), side(real)) as pair:
        assert await rights.compare(pair) == []
