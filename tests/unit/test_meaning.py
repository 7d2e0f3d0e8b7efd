"""The fuzzer of meaning: what it changes, and that it changes nothing else."""

from __future__ import annotations

import asyncio
import random

import pytest

import kafkaio
from kafkaio.errors import KafkaError
from kafkaio.protocol._headers import decode_response, encode_response
from kafkaio.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kafkaio.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafkaio.testing import Broker
from tests.meaning.changes import lie_about, sites
from tests.meaning.proxy import Liar
from tests.support.patience import HANGS


def metadata() -> MetadataResponse:
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1, host="one", port=9092)],
        topics=[
            MetadataResponseTopic(
                name="t",
                partitions=[
                    MetadataResponsePartition(partition_index=index, leader_id=1)
                    for index in range(3)
                ],
            )
        ],
    )


def fetch() -> FetchResponse:
    part = PartitionData(partition_index=0, high_watermark=5, records=b"records")
    return FetchResponse(responses=[FetchableTopicResponse(partitions=[part])])


@pytest.mark.parametrize("make", [metadata, fetch])
def test_every_field_is_changed_some_time_and_most_changes_can_be_sent(make) -> None:
    version = make().MAX_VERSION
    paths = {site.path for site in sites(make(), version)}
    changed: set[str] = set()
    sent = 0
    for seed in range(500):
        answer = make()
        lies = lie_about(answer, version, random.Random(seed))
        changed |= {lie.path for lie in lies}
        try:
            frame = encode_response(answer, version, 1)
        except KafkaError:
            continue
        sent += 1
        assert decode_response(type(answer), version, frame[4:]) is not None
    # A struct as a whole, where it is empty already, cannot be changed.
    assert len(paths - changed) <= 3
    assert sent > 450


def test_a_seed_changes_the_same() -> None:
    for seed in range(20):
        first, second = metadata(), metadata()
        assert lie_about(first, 13, random.Random(seed)) == lie_about(
            second, 13, random.Random(seed)
        )
        assert first == second


def test_what_is_left_out_stays() -> None:
    for seed in range(100):
        lies = lie_about(metadata(), 13, random.Random(seed), ["port", "host"])
        assert not [lie for lie in lies if lie.path.endswith(("port", "host"))]


async def test_an_honest_proxy_changes_nothing() -> None:
    async with (
        Broker(topics={"t": 1}) as broker,
        Liar(broker.bootstrap_servers, 1, None) as liar,
    ):
        async with (
            kafkaio.Producer(liar.servers) as producer,
            kafkaio.Consumer(
                liar.servers, topics="t", group_id="g", auto_offset_reset="earliest"
            ) as consumer,
        ):
            await producer.send("t", b"v")
            async with asyncio.timeout(HANGS):
                assert (await anext(consumer)).value == b"v"
        assert not liar.told


async def test_a_liar_tells_what_it_changed() -> None:
    async with (
        Broker(topics={"t": 1}) as broker,
        Liar(broker.bootstrap_servers, 2, {3}) as liar,
        kafkaio.Client(liar.servers) as client,
    ):
        liar.is_lying = True
        for _ in range(4):
            try:
                await client.request(
                    kafkaio.messages.MetadataRequest(), timeout=0.3, to=kafkaio.ANY
                )
            except KafkaError:
                continue
        assert liar.told
        assert {told.api for told in liar.told} == {"METADATA"}
