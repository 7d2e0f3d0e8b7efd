"""Whatever the brokers do, each request ends, and the view becomes true again."""

import asyncio
import random
from contextlib import suppress

import anyio
import pytest

from kafkaio._client import ANY, Client, Destination, GroupCoordinator, Leader
from kafkaio.errors import RequestTimeout
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkaio.types import TopicPartition
from tests.fakes.broker import DEFAULT, DISCONNECT, FakeCluster
from tests.unit.client.support import client_of

TPS = [TopicPartition("t", number) for number in range(6)]
GROUPS = ["a", "b", "c"]
TIMEOUT = 20.0


class Chaos:
    """Breaks things at random, as the seed says, and mends them in the end."""

    def __init__(self, cluster: FakeCluster, seed: int) -> None:
        self._cluster = cluster
        self._dice = random.Random(seed)
        for api in (ApiKey.METADATA, ApiKey.FIND_COORDINATOR):
            cluster.on(api, lambda *_: self._maybe())
        cluster.on(ApiKey.HEARTBEAT, self._heartbeat)

    def _maybe(self) -> object:
        return DISCONNECT if self._dice.random() < 0.1 else DEFAULT

    def _heartbeat(self, node, header, request: HeartbeatRequest) -> object:
        """Only the right broker answers; which one is right stands in the request."""
        if self._dice.random() < 0.1:
            return DISCONNECT
        kind, _, key = request.group_id.partition(":")
        if kind == "leader" and self._cluster.leader("t", int(key)) != node.node_id:
            return HeartbeatResponse(error_code=E.NOT_LEADER_OR_FOLLOWER)
        if kind == "group" and self._cluster.coordinator(key) != node.node_id:
            return HeartbeatResponse(error_code=E.NOT_COORDINATOR)
        return HeartbeatResponse()

    def step(self) -> None:
        cluster, dice = self._cluster, self._dice
        up = [n for n, node in cluster.nodes.items() if node.is_up]
        down = [n for n in cluster.nodes if n not in up]
        match dice.choice(["stop", "start", "drop", "leader", "group", "controller"]):
            case "stop" if len(up) > 1:
                cluster.stop(dice.choice(up))
            case "start" if down:
                cluster.start(dice.choice(down))
            case "drop":
                cluster.drop_connections(dice.choice(up))
            case "leader":
                cluster.move_leader("t", dice.randrange(6), dice.choice([-1, *up]))
            case "group":
                cluster.move_coordinator(dice.choice(GROUPS), dice.choice(up))
            case "controller":
                cluster.controller_id = dice.choice(up)

    def mend(self) -> None:
        for node in self._cluster.nodes:
            self._cluster.start(node)
        for tp in TPS:
            self._cluster.move_leader("t", tp.partition, tp.partition % 3)


def errands() -> list[tuple[str, Destination]]:
    return [
        ("any:", ANY),
        *((f"leader:{tp.partition}", Leader(tp)) for tp in TPS),
        *((f"group:{key}", GroupCoordinator(key)) for key in GROUPS),
    ]


async def ask(client: Client, text: str, to: Destination) -> int:
    """One request, which must end in time, with an answer of the right broker."""
    loop = asyncio.get_running_loop()
    begin = loop.time()
    request = HeartbeatRequest(group_id=text)
    answer = None
    with suppress(RequestTimeout):
        answer = await client.request(request, to, timeout=TIMEOUT)
    took = loop.time() - begin
    if answer is None:
        assert took == pytest.approx(TIMEOUT, abs=0.01)
        return 0
    assert answer.error_code == 0
    assert took <= TIMEOUT
    return 1


@pytest.mark.parametrize("seed", range(12))
async def test_requests_end_and_views_become_true(
    cluster: FakeCluster, seed: int
) -> None:
    chaos = Chaos(cluster, seed)
    done = 0

    async def keep_asking(text: str, to: Destination) -> None:
        nonlocal done
        for _ in range(15):
            answered = await ask(client, text, to)
            done += answered
            await anyio.sleep(0.2)

    async with client_of(cluster) as client:
        async with anyio.create_task_group() as group:
            for text, to in errands():
                group.start_soon(keep_asking, text, to)
            for _ in range(40):
                chaos.step()
                await anyio.sleep(0.3)
            chaos.mend()
        # All was mended before any of them ran out of time.
        assert done == 15 * len(errands())
        client._cluster.watch_topics("me", ["t"])
        client._cluster.request_refresh()
        await client._cluster.wait_for_update()
        for tp in TPS:
            assert client.cluster.leader(tp) == cluster.leader(*tp)
        for text, to in errands():
            assert await ask(client, text, to) == 1
