"""The embedded broker answers as a real Kafka does.

Scripts drawn from seeds send the same requests to both; ``differential/plain.py``
states what is not compared, and why. A failure names its script and seed: run it with
``KAFKAIO_SEEDS=17`` and ``-k SCRIPT``; ``nox -s differential`` runs many.
"""

from __future__ import annotations

import os
from random import Random
from uuid import uuid4

import pytest

from kafkaio.testing import Broker
from kafkaio.testing.kafka import Kafka
from tests.integration.differential import brokers, nodes, scripts
from tests.integration.differential.migrations import late_members
from tests.integration.differential.offsets import get_ready
from tests.integration.differential.pair import paired

pytestmark = [
    pytest.mark.kafka_versions("newest"),
    pytest.mark.not_embedded("compares the embedded broker with a real one"),
    pytest.mark.asyncio(loop_scope="module"),
]

#: So many seeds of each script are run unless the environment says which.
SEEDS = 8


def seeds() -> range:
    first, _, last = os.environ.get("KAFKAIO_SEEDS", f"0-{SEEDS - 1}").partition("-")
    return range(int(first), int(last or first) + 1)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("script", scripts.SCRIPTS)
async def test_the_answers_are_the_same(
    script: str, kafka: Kafka, embedded: Broker
) -> None:
    for seed in seeds():
        async with paired(embedded.bootstrap_servers, kafka.bootstrap_servers) as pair:
            with pair.named(f"{script}, seed {seed}"):
                await scripts.run(script, pair, seed, f"{script}-{uuid4().hex[:6]}")


async def test_classic_members_of_a_mixed_group_have_as_much_time(
    kafka: Kafka, embedded: Broker
) -> None:
    async with paired(embedded.bootstrap_servers, kafka.bootstrap_servers) as pair:
        await get_ready(pair)
        await late_members(pair, f"late-{uuid4().hex[:6]}")


@pytest.mark.timeout(3600)
async def test_three_nodes_answer_the_same() -> None:
    async with brokers.real_nodes() as kafka, brokers.nodes_beside() as embedded:

        async def stop(node: int) -> None:
            await kafka.stop(node)
            await embedded.control.stop(node)

        async def start(node: int) -> None:
            await kafka.start(node)
            await embedded.control.restart(node)

        servers = embedded.bootstrap_servers, kafka.bootstrap_servers
        async with paired(*servers) as pair:
            await nodes.place_offsets(pair)
        for seed in seeds():
            async with paired(*servers) as pair:
                with pair.named(f"nodes, seed {seed}"):
                    unique = f"nodes-{uuid4().hex[:6]}"
                    await nodes.nodes(pair, Random(seed), unique, stop, start)
