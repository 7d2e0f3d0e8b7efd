"""Clients that were given no id have one by which they are told apart."""

from __future__ import annotations

import asyncio
import gc
import logging
import pickle
from typing import Any

import pytest

import kafkaio
from kafkaio._client.cluster import _unclaimed, with_client_id
from kafkaio._config import ClientConfig, ConsumerConfig, ProducerConfig
from kafkaio.testing import Broker
from tests.support.patience import HANGS


def id_of(thing: Any) -> str:
    """Return the client id of a client of any kind."""
    config = getattr(thing, "config", None) or thing._config
    client_id: str = config.client_id
    return client_id


@pytest.mark.parametrize(
    ("make", "prefix"),
    [
        (kafkaio.Producer, "kafkaio-producer-"),
        (kafkaio.Consumer, "kafkaio-consumer-"),
        (lambda: kafkaio.Consumer(group_id="one"), "kafkaio-consumer-one-"),
        (lambda: kafkaio.ShareConsumer(group_id="w"), "kafkaio-share-consumer-w-"),
        (kafkaio.Admin, "kafkaio-admin-"),
        (kafkaio.Client, "kafkaio-client-"),
        (
            lambda: kafkaio.Producer.from_properties({"bootstrap.servers": "a:1"}),
            "kafkaio-producer-",
        ),
        (
            lambda: kafkaio.Consumer.from_config(ConsumerConfig.of("a:1", {})),
            "kafkaio-consumer-",
        ),
    ],
)
def test_two_of_a_kind_have_other_numbers(make: Any, prefix: str) -> None:
    one, other = make(), make()
    ids = [id_of(one), id_of(other)]
    assert ids[0] != ids[1]
    for name in ids:
        assert name.startswith(prefix)
        assert int(name.removeprefix(prefix)) > 0
    assert not _unclaimed


def test_a_number_is_free_again_when_its_client_is_gone() -> None:
    """A process that makes a client for each piece of work has few ids."""
    seen = set()
    for _ in range(50):
        producer = kafkaio.Producer()
        seen.add(id_of(producer))
        del producer
        gc.collect()
    assert len(seen) <= 3  # others may be collected meanwhile


def test_an_id_that_was_given_stays_as_it_is() -> None:
    producers = [kafkaio.Producer(client_id="billing") for _ in range(2)]
    assert [id_of(it) for it in producers] == ["billing"] * 2
    config = ProducerConfig.of("a:1", {"client_id": "kafkaio"})
    assert id_of(kafkaio.Producer.from_config(config)) == "kafkaio"


def test_a_configuration_has_none_until_a_client_is_made_of_it() -> None:
    config = ProducerConfig.of("a:1", {"linger_ms": 7})
    assert config.client_id == ""
    one = kafkaio.Producer.from_config(config)
    assert config.client_id == ""
    assert one.config != config
    assert one.config.linger_ms == 7
    assert pickle.loads(pickle.dumps(one.config)) == one.config


def test_a_long_group_makes_no_long_id() -> None:
    consumer = kafkaio.Consumer(group_id="g" * 1000)
    assert len(id_of(consumer)) < 100


def test_users_of_a_shared_client_have_its_id() -> None:
    client = kafkaio.Client()
    producer = kafkaio.Producer(client)
    assert id_of(producer) == id_of(client)


def test_an_id_without_a_client_is_not_given_again() -> None:
    one = with_client_id(ClientConfig.of("a:1", {}), "odd")
    other = with_client_id(ClientConfig.of("a:1", {}), "odd")
    assert (one.client_id, other.client_id) == ("kafkaio-odd-1", "kafkaio-odd-2")
    for name in (one.client_id, other.client_id):
        del _unclaimed[name]


async def test_brokers_and_the_log_have_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kafkaio")
    async with (
        asyncio.timeout(HANGS),
        Broker(topics={"t": 2}) as broker,
        kafkaio.Consumer(broker.bootstrap_servers, topics="t", group_id="g") as one,
        kafkaio.Consumer(broker.bootstrap_servers, topics="t", group_id="g") as two,
        kafkaio.Admin(broker.bootstrap_servers) as admin,
    ):
        (group,) = (await admin.describe_consumer_groups(["g"])).values()
        names = {member.client_id for member in group.members}
        assert names == {id_of(one), id_of(two)}
        assert len(names) == 2
    for name in names:
        assert any(line.startswith(f"[{name}] ") for line in caplog.messages)
