"""Members of groups for the tests here: ours, and Java's."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias
from uuid import uuid4

from kafkaio._client import Client, GroupCoordinator
from kafkaio._consumer import Consumer
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.protocol.messages import streams_group_heartbeat as streams_api
from kafkaio.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.kafka._releases import find_release
from tests.support.java import RunningJava, Toolbox
from tests.support.patience import HANGS

SOURCES = Path(__file__).parent.parent / "java" / "group"
TOOLS = Toolbox(find_release())  # it speaks to every broker from 2.1 on


def member(
    kafka: Kafka, name: str | re.Pattern[str], group: str, **options: object
) -> Consumer:
    settings: dict[str, object] = {"auto_offset_reset": "earliest"}
    if options.get("group_protocol") != "consumer":
        settings |= {"heartbeat_interval_ms": 300, "session_timeout_ms": 10_000}
    return Consumer(
        kafka.bootstrap_servers,
        topics=name,
        group_id=group,
        **(settings | options),  # type: ignore[arg-type]  # options by name
    )


async def until(condition: Callable[[], object], limit: float = HANGS) -> None:
    async with asyncio.timeout(limit):
        while not condition():  # noqa: ASYNC110  (any of several objects may change)
            await asyncio.sleep(0.02)


@asynccontextmanager
async def reading(*consumers: Consumer) -> AsyncIterator[dict[bytes | None, int]]:
    """Keep polling, as the members of a group have to; counts of the values read."""
    seen: dict[bytes | None, int] = {}

    async def read(consumer: Consumer) -> None:
        while True:
            poll = await consumer.poll(timeout=0.5)
            for record in poll.records:
                seen[record.value] = seen.get(record.value, 0) + 1

    async with asyncio.TaskGroup() as tasks:
        readers = [tasks.create_task(read(consumer)) for consumer in consumers]
        yield seen
        for reader in readers:
            reader.cancel()


class JavaMember:
    """The Java consumer, and what it was assigned last."""

    def __init__(self, running: RunningJava) -> None:
        self._running = running
        self.assigned: set[int] = set()
        self.records: list[str] = []

    async def listen(self) -> None:
        async for line in self._running:
            word, *rest = line.split()
            if word == "assigned":
                self.assigned = {int(number) for number in rest}
            elif word == "record":
                self.records.append(rest[0])


@asynccontextmanager
async def java_member(
    kafka: Kafka, group: str, topic: str, assignors: str
) -> AsyncIterator[JavaMember]:
    program = TOOLS.program(SOURCES, "GroupMember")
    async with await program.start(
        kafka.bootstrap_servers, group, topic, assignors
    ) as running:
        found = JavaMember(running)
        async with asyncio.TaskGroup() as tasks:
            listener = tasks.create_task(found.listen())
            yield found
            await running.close_input()
            await running.wait()
            listener.cancel()


def numbers(consumer: Consumer) -> set[int]:
    return {tp.partition for tp in consumer.assignment}


async def share_heartbeat(
    client: Client,
    group: str,
    member: str,
    epoch: int,
    topics: list[str] | None = None,
) -> ShareGroupHeartbeatResponse:
    """Send a heartbeat of a share group's member."""
    answer = await client.request(
        ShareGroupHeartbeatRequest(
            group_id=group,
            member_id=member,
            member_epoch=epoch,
            subscribed_topic_names=topics,
        ),
        to=GroupCoordinator(group),
    )
    assert answer.error_code == E.NONE, (E(answer.error_code), answer.error_message)
    return answer


async def share_joined(client: Client, group: str, member: str, topic: str) -> int:
    """Join a share group, and wait for an assignment; returns the member epoch."""
    answer = await share_heartbeat(client, group, member, 0, [topic])
    while answer.assignment is None or not answer.assignment.topic_partitions:
        await asyncio.sleep(0)
        answer = await share_heartbeat(client, group, member, answer.member_epoch)
    return answer.member_epoch


Tasks: TypeAlias = Sequence[streams_api.StreamsGroupHeartbeatRequestTaskIds]


class StreamsMember:
    """A member of a streams group (KIP-1071), heartbeat by heartbeat.

    It processes nothing: it says that it has the tasks that it was assigned.

    Attributes:
        member_id: its id.
        epoch: its epoch; 0 before it has joined.
        active: the active tasks that it has.
    """

    def __init__(self, client: Client, group: str) -> None:
        self._client = client
        self._group = group
        self.member_id = str(uuid4())
        self.epoch = 0
        self.active: Tasks = ()
        self._standby: Tasks = ()
        self._warmup: Tasks = ()

    async def join(self, **more: object) -> None:
        """Send the first heartbeat, and take over what it is answered.

        A member with a user endpoint may join before the coordinator knows the topics
        of the topology. Kafka 4.4 fails then, and adds no member: `StreamsGroup` looks
        for the partitions of the topics without asking whether they are known.

        Args:
            **more: fields of the request.
        """
        answer = await self._send(0, more)
        async with asyncio.timeout(HANGS):
            while answer.error_code == E.UNKNOWN_SERVER_ERROR:
                answer = await self._send(0, more)
        self._take(answer)

    async def beat(self, epoch: int | None = None) -> None:
        """Send a heartbeat, and take over what it is answered.

        Args:
            epoch: the epoch to send: -1 leaves the group.
        """
        self._take(await self._send(self.epoch if epoch is None else epoch, {}))

    async def _send(
        self, epoch: int, more: Mapping[str, object]
    ) -> streams_api.StreamsGroupHeartbeatResponse:
        request = streams_api.StreamsGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self.member_id,
            member_epoch=epoch,
            active_tasks=list(self.active),
            standby_tasks=list(self._standby),
            warmup_tasks=list(self._warmup),
            **more,  # type: ignore[arg-type]  # fields of the message
        )
        return await self._client.request(request, to=GroupCoordinator(self._group))

    def _take(self, answer: streams_api.StreamsGroupHeartbeatResponse) -> None:
        assert answer.error_code == E.NONE, (E(answer.error_code), answer.error_message)
        self.epoch = answer.member_epoch
        self.active = _owned(self.active, answer.active_tasks)
        self._standby = _owned(self._standby, answer.standby_tasks)
        self._warmup = _owned(self._warmup, answer.warmup_tasks)

    async def leave(self) -> None:
        """Leave the group."""
        await self.beat(-1)


def _owned(
    before: Tasks,
    assigned: Sequence[streams_api.StreamsGroupHeartbeatResponseTaskIds] | None,
) -> Tasks:
    """The tasks of a member after an answer, which has them only if they change."""
    if assigned is None:
        return before
    return [
        streams_api.StreamsGroupHeartbeatRequestTaskIds(
            subtopology_id=it.subtopology_id, partitions=it.partitions
        )
        for it in assigned
    ]
