"""What a client does while answers lie; its calls have limits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, TypeAlias

import kafkaio
from kafkaio import messages
from kafkaio.errors import KafkaError
from kafkaio.protocol._api_keys import ApiKey
from tests.meaning.watch import Watch

__all__ = ["APIS", "WORKLOADS", "Scene"]

#: Seconds of the calls.
LIMIT: Final = 2.0
_COMMON: Final[dict[str, Any]] = {
    "request_timeout_ms": 1_500,
    "default_api_timeout_ms": 2_000,
    "retry_backoff_max_ms": 300,
    "reconnect_backoff_max_ms": 200,
    "metadata_max_age_ms": 1_000,
    "log": False,
}
_SENDING: Final[dict[str, Any]] = {
    **_COMMON,
    "max_block_ms": 2_000,
    "delivery_timeout_ms": 2_000,
}
_FIND: Final = ApiKey.FIND_COORDINATOR
_READING: Final = (ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA)
_GROUP: Final = (*_READING, _FIND, ApiKey.OFFSET_FETCH, ApiKey.OFFSET_COMMIT)
_CLASSIC: Final = (
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
)


#: Runs until it is cancelled.
Workload: TypeAlias = Callable[["Scene"], Coroutine[Any, Any, None]]


class Scene:
    """Where a workload runs.

    Args:
        servers: by way of the proxy.
        honest: the broker itself.
        topic: a topic with two partitions, to which somebody writes all the time.
        watch: judges the calls.

    Attributes:
        works: when the client did again what it is for.
        made: the client.
        is_over: whether answers are honest, and the client has to work.
    """

    def __init__(self, servers: str, honest: str, topic: str, watch: Watch) -> None:
        self.servers = servers
        self.honest = honest
        self.topic = topic
        self.watch = watch
        self.works = asyncio.Event()
        self.made: Any = None
        self.is_over = False

    def worked(self) -> None:
        """Note that the client did what it is for."""
        if self.is_over:
            self.works.set()


async def _true(work: Awaitable[object]) -> bool:
    await work
    return True


async def _run(
    scene: Scene, make: Callable[[], Any], work: Callable[[Any], Any]
) -> None:
    # One that says that it has to be replaced is replaced.
    while True:
        made = scene.made = make()
        try:
            started = await scene.watch.call("start", LIMIT, _true(made.start(LIMIT)))
            while started and made.statistics().state == "running":
                if await work(made):
                    break
            await asyncio.sleep(0.1)
        finally:
            with suppress(KafkaError):
                await scene.watch.call("close", LIMIT, made.close(timeout=LIMIT))


async def producer(scene: Scene) -> None:
    """An idempotent producer."""

    async def work(made: kafkaio.Producer) -> bool:
        sent = await scene.watch.call("send", 4.5, made.send(scene.topic, b"v"))
        if sent is not None:
            scene.worked()
        await scene.watch.call(
            "send_many", 4.5, made.send_many(scene.topic, [b"a", b"b", b"c"])
        )
        await scene.watch.call("flush", LIMIT, made.flush(timeout=LIMIT))
        await asyncio.sleep(0.02)
        return False

    await _run(scene, lambda: kafkaio.Producer(scene.servers, **_SENDING), work)


async def transactional(scene: Scene) -> None:
    """A producer whose records are in transactions."""

    async def transaction(made: kafkaio.Producer) -> bool:
        async with made.transaction() as tx:
            await tx.send(scene.topic, b"v")
        return True

    async def work(made: kafkaio.Producer) -> bool:
        before = scene.watch.replace
        # Begin, send and end have a limit each.
        if await scene.watch.call("transaction", 9.0, transaction(made)):
            scene.worked()
        await asyncio.sleep(0.02)
        return scene.watch.replace > before

    await _run(
        scene,
        lambda: kafkaio.Producer(
            scene.servers, transactional_id=scene.topic, **_SENDING
        ),
        work,
    )


def _consumer(**options: Any) -> Workload:
    has_group = options.pop("group", False)

    def make(scene: Scene) -> kafkaio.Consumer:
        own = {**_COMMON, **options}
        if has_group:
            own["group_id"] = scene.topic
        if options.get("group_protocol") == "classic":
            own["session_timeout_ms"] = 6_000
        return kafkaio.Consumer(
            scene.servers,
            topics=scene.topic,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=100,
            **own,
        )

    async def workload(scene: Scene) -> None:
        failed = 0

        async def work(made: kafkaio.Consumer) -> bool:
            nonlocal failed
            poll = await scene.watch.call("poll", 0.5, made.poll(timeout=0.5))
            if poll is None:
                # What cannot be read is left out, as the guide says.
                failed += 1
                await asyncio.sleep(0.02)
                if failed % 5 == 0 and made.assignment:
                    made.seek_to_end(*made.assignment)
            elif poll.records and await _committed(scene, made, has_group=has_group):
                scene.worked()
            return False

        await _run(scene, lambda: make(scene), work)

    return workload


async def _committed(scene: Scene, made: kafkaio.Consumer, *, has_group: bool) -> bool:
    if not has_group:
        return True
    done = _true(made.commit(timeout=LIMIT))
    return await scene.watch.call("commit", LIMIT, done) is not None


async def admin(scene: Scene) -> None:
    """The calls of an administrator."""
    tp = kafkaio.TopicPartition(scene.topic, 0)

    async def work(made: kafkaio.Admin) -> bool:
        number = 0
        for name, call in _admin_calls(made, scene.topic, tp).items():
            done = await scene.watch.call(name, LIMIT, _true(call()))
            number += done is not None
        if number >= 8:
            scene.worked()
        return False

    await _run(scene, lambda: kafkaio.Admin(scene.servers, **_COMMON), work)


def _admin_calls(
    made: kafkaio.Admin, topic: str, tp: kafkaio.TopicPartition
) -> dict[str, Callable[[], Awaitable[object]]]:
    return {
        "list_topics": made.list_topics,
        "describe_topics": lambda: made.describe_topics([topic]),
        "create_topics": lambda: made.create_topics(
            [kafkaio.NewTopic(topic + ".new", 1, 1)]
        ),
        "delete_topics": lambda: made.delete_topics([topic + ".new"]),
        "list_groups": made.list_groups,
        "describe_consumer_groups": lambda: made.describe_consumer_groups([topic]),
        "describe_classic_groups": lambda: made.describe_classic_groups([topic]),
        "list_consumer_group_offsets": lambda: made.list_consumer_group_offsets(
            [topic]
        ),
        "lag": lambda: made.lag([topic]),
        "describe_cluster": made.describe_cluster,
        "describe_log_dirs": made.describe_log_dirs,
        "describe_producers": lambda: made.describe_producers([tp]),
        "list_transactions": made.list_transactions,
        "describe_features": made.describe_features,
        "describe_client_quotas": made.describe_client_quotas,
    }


async def client(scene: Scene) -> None:
    """Requests of one's own."""
    tp = kafkaio.TopicPartition(scene.topic, 0)

    async def work(made: kafkaio.Client) -> bool:
        topics = [messages.MetadataRequestTopic(name=scene.topic)]
        asked: dict[str, tuple[Any, Any]] = {
            "Metadata": (messages.MetadataRequest(topics=topics), kafkaio.ANY),
            "ListGroups": (messages.ListGroupsRequest(), kafkaio.ANY),
            "DescribeCluster": (messages.DescribeClusterRequest(), kafkaio.Controller),
            "OffsetFetch": (
                messages.ListGroupsRequest(),
                kafkaio.GroupCoordinator(scene.topic),
            ),
            "ToLeader": (messages.ListGroupsRequest(), kafkaio.Leader(tp)),
        }
        number = 0
        for name, (request, to) in asked.items():
            done = await scene.watch.call(name, LIMIT, made.request(request, to=to))
            number += done is not None
        if number >= 4:
            scene.worked()
        await asyncio.sleep(0.02)
        return False

    await _run(scene, lambda: kafkaio.Client(scene.servers, **_COMMON), work)


WORKLOADS: Final[dict[str, Workload]] = {
    "producer": producer,
    "transactional": transactional,
    "classic": _consumer(group=True, group_protocol="classic"),
    "consumer": _consumer(group=True, group_protocol="consumer"),
    "groupless": _consumer(),
    "admin": admin,
    "client": client,
}

#: The APIs whose answers lie, one or all of them at a time.
APIS: Final[dict[str, tuple[int, ...]]] = {
    "producer": (
        ApiKey.PRODUCE,
        ApiKey.PRODUCE,
        ApiKey.METADATA,
        ApiKey.METADATA,
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.API_VERSIONS,
    ),
    "transactional": (
        ApiKey.PRODUCE,
        ApiKey.METADATA,
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.END_TXN,
        _FIND,
    ),
    "classic": (*_GROUP, *_CLASSIC),
    "consumer": (*_GROUP, *[ApiKey.CONSUMER_GROUP_HEARTBEAT] * 5),
    "groupless": (*_READING, ApiKey.FETCH, ApiKey.API_VERSIONS),
    "admin": (
        ApiKey.METADATA,
        _FIND,
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.LIST_GROUPS,
        ApiKey.DESCRIBE_GROUPS,
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        ApiKey.OFFSET_FETCH,
        ApiKey.LIST_OFFSETS,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.DESCRIBE_LOG_DIRS,
        ApiKey.DESCRIBE_PRODUCERS,
        ApiKey.LIST_TRANSACTIONS,
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        ApiKey.API_VERSIONS,
    ),
    "client": (ApiKey.METADATA, _FIND, ApiKey.DESCRIBE_CLUSTER, ApiKey.API_VERSIONS),
}
