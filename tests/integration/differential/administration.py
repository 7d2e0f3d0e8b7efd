"""A random script of what administrators see: the cluster, topics, configs, sizes."""

from __future__ import annotations

from random import Random
from typing import Final

from kafkaio.protocol.messages import (
    AlterConfigsRequest,
    CreateTopicsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
    DescribeTopicPartitionsRequest,
    IncrementalAlterConfigsRequest,
    MetadataRequest,
)
from kafkaio.protocol.messages.alter_configs import (
    AlterableConfig as PlainConfig,
    AlterConfigsResource as PlainResource,
)
from kafkaio.protocol.messages.create_topics import CreatableTopic
from kafkaio.protocol.messages.describe_configs import DescribeConfigsResource
from kafkaio.protocol.messages.describe_log_dirs import DescribableLogDirTopic
from kafkaio.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequestCursor as Cursor,
    TopicRequest,
)
from kafkaio.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
)
from kafkaio.protocol.messages.metadata import MetadataRequestTopic
from tests.integration.differential.pair import Pair
from tests.integration.differential.plain import without_disk
from tests.integration.differential.topics import SETTINGS, WRONG, comparable

_TOPIC: Final = 2
_BROKER: Final = 4
_GROUP: Final = 32
_BROKERS: Final = ("1", "")
_GROUP_SETTINGS: Final = (
    ("consumer.session.timeout.ms", "46000"),
    ("consumer.session.timeout.ms", "1"),
    ("consumer.session.timeout.ms", "soon"),
    ("consumer.heartbeat.interval.ms", "6000"),
    ("consumer.heartbeat.interval.ms", "1"),
    ("consumer.heartbeat.interval.ms", "15000"),
    ("consumer.assignment.interval.ms", "100"),
    ("consumer.assignment.interval.ms", "16000"),
    ("share.auto.offset.reset", "by_duration:PT1H"),
    ("share.auto.offset.reset", "later"),
    ("share.delivery.count.limit", "100"),
    ("streams.num.standby.replicas", "2"),
    ("streams.num.standby.replicas", "3"),
    ("no.such.config", "1"),
)
#: Of a broker or of the cluster; none of them matters to the other scripts.
_BROKER_SETTINGS: Final = (
    ("advertised.listeners", "PLAINTEXT://localhost:9092"),
    ("auto.create.topics.enable", "false"),
    ("group.min.session.timeout.ms", "1"),
    ("listener.name.plaintext.max.connections", "900"),
    ("log.cleaner.threads", "2"),
    ("log.cleaner.threads", "x"),
    ("log.cleanup.policy", "burn"),
    ("log.cleanup.policy", "compact"),
    ("log.cleanup.policy", "delete,compact"),
    ("log.flush.interval.ms", "3600000"),
    ("log.retention.hours", "10"),
    ("log.retention.ms", "86400000"),
    ("max.connections", "-1"),
    ("max.connections", "5000"),
    ("message.max.bytes", "-1"),
    ("message.max.bytes", "1500000"),
    ("message.max.bytes", None),
    ("min.insync.replicas", "1"),
    ("no.such.config", "1"),
    ("num.io.threads", "4"),
    ("num.io.threads", "9"),
    ("num.partitions", "3"),
    ("ssl.client.auth", "requested"),
    ("ssl.key.password", "secret"),
)


class AdminScript:
    """Steps chosen by dice, on a few topics, a group and the brokers."""

    def __init__(self, pair: Pair, dice: Random, prefix: str) -> None:
        self.pair = pair
        self.dice = dice
        self.names = [f"{prefix}-{name}" for name in "abc"]
        self.group = f"{prefix}-group"

    async def run(self, steps: int) -> None:
        """Create two of the topics, and take that many steps."""
        topics = [
            CreatableTopic(name=name, num_partitions=count, replication_factor=1)
            for name, count in zip(self.names, (1, 5), strict=False)
        ]
        await self.pair.ask(CreateTopicsRequest(topics=topics, timeout_ms=9000), 4)
        asked = [MetadataRequestTopic(name=name) for name in self.names]
        request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
        errors: set[int] = set()
        while 0 not in errors:
            told = (await self.pair.agree(request, 12))["topics"]
            errors = {one["error_code"] for one in told}
        kinds = (
            [self.cluster, self.topics, self.sizes]
            + [self.partitions] * 3
            + [self.replace, self.alter, self.configs] * 2
        )
        for _ in range(steps):
            await self.dice.choice(kinds)()
        await self._reset_brokers()

    async def _reset_brokers(self) -> None:
        """Take all dynamic configs of brokers back, for those who come after."""
        for name in _BROKERS:
            request = IncrementalAlterConfigsRequest(
                resources=[
                    AlterConfigsResource(
                        resource_type=_BROKER,
                        resource_name=name,
                        configs=[
                            AlterableConfig(name=config, config_operation=1, value=None)
                            for config in sorted({name for name, _ in _BROKER_SETTINGS})
                            if config != "min.insync.replicas"
                        ],
                    )
                ]
            )
            await self.pair.ask(request, 1)
        await self._look_up([(_BROKER, name) for name in _BROKERS])

    def wrong(self, chance: float = 0.15) -> bool:
        """Whether the next thing is to be wrong."""
        return self.dice.random() < chance

    def _name(self) -> str:
        return self.dice.choice(["", "a/b"]) if self.wrong() else self._any_of_ours()

    def _any_of_ours(self) -> str:
        return self.dice.choice(self.names)

    async def cluster(self) -> None:
        """Ask who is up."""
        version = self.dice.randint(0, 2)
        request = DescribeClusterRequest(
            include_cluster_authorized_operations=self.wrong(0.5),
            endpoint_type=self.dice.choice([1, 1, 2, 7]) if version else 1,
            include_fenced_brokers=version >= 2 and self.wrong(0.5),
        )
        await self.pair.ask(request, version)

    async def topics(self) -> None:
        """Ask for topics in the old way, and what may be done with them."""
        asked = [MetadataRequestTopic(name=self._name()) for _ in range(2)]
        version = self.dice.randint(8, 13)
        request = MetadataRequest(
            topics=asked,
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=self.wrong(0.5),
            include_cluster_authorized_operations=version < 11 and self.wrong(0.5),
        )
        await self.pair.ask(request, version)

    async def partitions(self) -> None:
        """Ask for topics, page by page."""
        names = self.dice.sample([*self.names, "a/b"], self.dice.randint(1, 3))
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in names],
            response_partition_limit=self.dice.choice([1, 2, 3, 2000]),
        )
        if self.wrong(0.3):
            request.cursor = Cursor(
                topic_name=self._any_of_ours(),
                partition_index=self.dice.choice([0, 1, 3, 9, -1]),
            )
        await self.pair.ask(request, 0)

    async def sizes(self) -> None:
        """Ask how large partitions are."""
        topics = [
            DescribableLogDirTopic(topic=name, partitions=[0, 3]) for name in self.names
        ]
        request = DescribeLogDirsRequest(topics=topics)
        await self.pair.agree(request, self.dice.randint(1, 5), pick=without_disk)

    def _resource(self) -> tuple[int, str]:
        kind = self.dice.choice([_TOPIC] * 4 + [_BROKER] * 2 + [_GROUP, 77])
        if kind == _BROKER:
            return kind, self.dice.choice([*_BROKERS * 3, "9", "x"])
        if kind == _GROUP:
            return kind, "" if self.wrong() else self.group
        return kind, self._name()

    def _settings(self, kind: int) -> list[tuple[str, str | None]]:
        if kind == _GROUP:
            return [self.dice.choice(_GROUP_SETTINGS)]
        if kind == _BROKER:
            return [self.dice.choice(_BROKER_SETTINGS)]
        found = dict(self.dice.sample(SETTINGS, self.dice.randint(0, 2)))
        return [*found.items(), *([self.dice.choice(WRONG)] if self.wrong() else [])]

    async def replace(self) -> None:
        """Set all configs of a resource anew."""
        kind, name = self._resource()
        configs = [PlainConfig(name=n, value=v) for n, v in self._settings(kind)]
        resource = PlainResource(
            resource_type=kind, resource_name=name, configs=configs
        )
        request = AlterConfigsRequest(
            resources=[resource], validate_only=self.wrong(0.3)
        )
        await self.pair.ask(request, self.dice.randint(0, 2))
        await self._settle([(kind, name)])

    async def _settle(self, changed: list[tuple[int, str]]) -> None:
        """Wait until a real broker has what its controller took: it goes by that."""
        if any(kind == _BROKER for kind, _ in changed):
            await self._look_up([(_BROKER, name) for name in _BROKERS])

    async def alter(self) -> None:
        """Change several configs of several resources."""
        asked = [self._resource() for _ in range(self.dice.randint(1, 2))]
        resources = [
            AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    AlterableConfig(
                        name=config,
                        config_operation=self.dice.choice([0, 0, 0, 1, 2, 3]),
                        value=value,
                    )
                    for config, value in self._settings(kind)
                ],
            )
            for kind, name in asked
        ]
        if len(resources) == len(resources[0].configs) == 1 and self.wrong():
            # Among others, the order would count in which Java's maps have them.
            resources[0].configs[0].config_operation = 9
        request = IncrementalAlterConfigsRequest(
            resources=resources, validate_only=self.wrong(0.3)
        )
        await self.pair.ask(request, self.dice.randint(0, 1))
        await self._settle(asked)

    async def configs(self) -> None:
        """Look configs up."""
        await self._look_up([self._resource() for _ in range(self.dice.randint(1, 2))])

    async def _look_up(self, resources: list[tuple[int, str]]) -> None:
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=kind, resource_name=name, configuration_keys=None
                )
                for kind, name in resources
            ],
            include_synonyms=self.wrong(0.3),
        )
        await self.pair.agree(request, self.dice.randint(1, 4), pick=comparable)


async def administration(pair: Pair, dice: Random, prefix: str) -> None:
    """DescribeCluster, DescribeTopicPartitions, configs, DescribeLogDirs."""
    await AdminScript(pair, dice, prefix).run(40)
