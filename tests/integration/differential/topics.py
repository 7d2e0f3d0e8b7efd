"""A random script of administration: topics, partitions, configs, and what is told."""

from __future__ import annotations

from random import Random
from typing import Final
from uuid import UUID

from kafkaio.protocol.messages import (
    ApiVersionsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    MetadataRequest,
)
from kafkaio.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsTopic,
)
from kafkaio.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
)
from kafkaio.protocol.messages.delete_topics import DeleteTopicState
from kafkaio.protocol.messages.describe_configs import DescribeConfigsResource
from kafkaio.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
)
from kafkaio.protocol.messages.metadata import MetadataRequestTopic
from kafkaio.testing._broker.settings import TOPIC_DEFAULTS
from tests.integration.differential.brokers import PLACES
from tests.integration.differential.pair import Pair
from tests.integration.differential.plain import Plain

#: Of controllers and of quorums, which the embedded broker has not.
_ONLY_THERE: Final[frozenset[str]] = frozenset()
_NOBODY: Final = UUID(int=0)
_UNHEARD_OF: Final = UUID(int=79)
_NO_NAMES: Final = ("", ".", "a/b", "x" * 250)
_TOPIC: Final = 2
SETTINGS: Final = (
    ("retention.ms", "1000"),
    ("retention.ms", "-1"),
    ("max.message.bytes", "5000"),
    ("cleanup.policy", "compact"),
    ("cleanup.policy", "compact,delete"),
    ("segment.bytes", "1048576"),
    ("min.insync.replicas", "1"),
)
WRONG: Final = (
    ("retention.ms", "soon"),
    ("no.such.config", "1"),
    ("cleanup.policy", "burn"),
    ("max.message.bytes", "-5"),
    ("min.insync.replicas", "0"),
    ("retention.ms", None),
)


class TopicScript:
    """Steps chosen by dice, on a few names."""

    def __init__(self, pair: Pair, dice: Random, prefix: str) -> None:
        self.pair = pair
        self.dice = dice
        self.names = [f"{prefix}-{name}" for name in "abc"]
        self.ids: dict[str, UUID] = {}

    async def run(self, steps: int) -> None:
        """Take that many steps; what all nodes must learn has got round after each."""
        kinds = (
            [self.create] * 4
            + [self.delete, self.grow, self.grow, self.alter, self.alter]
            + [self.describe, self.describe, self.look, self.versions]
            + [self.coordinator]
        )
        for _ in range(steps):
            await self.dice.choice(kinds)()
            await self._settle()

    def wrong(self, chance: float = 0.15) -> bool:
        """Whether the next thing is to be wrong."""
        return self.dice.random() < chance

    def _name(self) -> str:
        if self.wrong(0.1):
            return self.dice.choice(_NO_NAMES)
        return self.dice.choice(self.names)

    def _absent(self) -> str:
        """Return any name, perhaps one that no script creates."""
        return "no-such-topic" if self.wrong(0.05) else self._name()

    async def _settle(self) -> None:
        asked = [MetadataRequestTopic(name=name) for name in self.names]
        request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
        for one in (await self.pair.agree(request, 12))["topics"]:
            self.ids[one["name"]] = one["topic_id"]

    async def create(self) -> None:
        """Create topics, right or wrong, or only ask whether one could."""
        version = self.dice.randint(2, 7)
        topics = [self._creatable(version) for _ in range(self.dice.randint(1, 2))]
        request = CreateTopicsRequest(
            topics=topics, timeout_ms=9000, validate_only=self.wrong()
        )
        await self.pair.ask(request, version, pick=without_configs)

    def _creatable(self, version: int) -> CreatableTopic:
        settings = [self.dice.choice(WRONG if self.wrong() else SETTINGS)]
        topic = CreatableTopic(
            name=self._name(),
            num_partitions=self.dice.choice([1, 2, 3]),
            replication_factor=1,
            configs=[
                CreatableTopicConfig(name=name, value=value)
                for name, value in settings
                if self.wrong(0.4)
            ],
        )
        if version >= 4 and self.wrong():
            topic.num_partitions = topic.replication_factor = -1
        if self.wrong():
            topic.num_partitions = self.dice.choice([0, -2])
        if self.wrong():
            topic.replication_factor = self.dice.choice([2, 0, -2])
        if self.wrong():
            topic.num_partitions = topic.replication_factor = -1
            topic.configs = []
            chosen = self.dice.choice([[[1]], [[1], [1]], [[1, 1]], [[9]], [[]]])
            topic.assignments = [
                CreatableReplicaAssignment(partition_index=index, broker_ids=nodes)
                for index, nodes in enumerate(chosen, self.dice.choice([0, 0, 0, 1]))
            ]
        return topic

    async def delete(self) -> None:
        """Delete topics by name, or by id."""
        version = self.dice.randint(1, 6)
        name = self._absent()
        request = DeleteTopicsRequest(topic_names=[name], timeout_ms=9000)
        if version >= 6:
            request.topic_names = []
            by_id = self.wrong(0.5)
            known = self.ids.get(name, _UNHEARD_OF)
            request.topics = [
                DeleteTopicState(
                    name=None if by_id else name, topic_id=known if by_id else _NOBODY
                )
            ]
        await self.pair.ask(request, version)

    async def grow(self) -> None:
        """Add partitions, or try to take some away."""
        topic = CreatePartitionsTopic(
            name=self._absent(),
            count=self.dice.choice([0, 1, 2, 3, 4, 5]),
            assignments=None,
        )
        if self.wrong():
            nodes = self.dice.choice([[1], [9], [1, 1], []])
            topic.assignments = [CreatePartitionsAssignment(broker_ids=nodes)]
        request = CreatePartitionsRequest(
            topics=[topic], timeout_ms=9000, validate_only=self.wrong()
        )
        await self.pair.ask(request, self.dice.randint(0, 3))

    async def alter(self) -> None:
        """Set, delete, append to and subtract from configs."""
        name, value = self.dice.choice(WRONG if self.wrong() else SETTINGS)
        operation = self.dice.choice([0, 0, 0, 1, 2, 3])
        config = AlterableConfig(name=name, config_operation=operation, value=value)
        resource = AlterConfigsResource(
            resource_type=77 if self.wrong(0.05) else _TOPIC,
            resource_name=self._absent(),
            configs=[config],
        )
        request = IncrementalAlterConfigsRequest(
            resources=[resource], validate_only=self.wrong()
        )
        await self.pair.ask(request, self.dice.randint(0, 1))

    async def describe(self) -> None:
        """Look configs up: some, or all that both know."""
        version = self.dice.randint(1, 4)
        keys = self.dice.sample([name for name, _ in SETTINGS], 2)
        resource = DescribeConfigsResource(
            resource_type=_TOPIC,
            resource_name=self._absent(),
            configuration_keys=self.dice.choice([None, [*keys, "no.such.config"]]),
        )
        request = DescribeConfigsRequest(
            resources=[resource], include_synonyms=self.wrong(0.3)
        )
        await self.pair.agree(request, version, pick=comparable)

    async def look(self) -> None:
        """Ask what topics there are, by name or by id."""
        version = self.dice.randint(0, 13)
        names = {*self.names, self._absent()}
        asked = [MetadataRequestTopic(name=name) for name in names]
        if version >= 12 and self.wrong(0.4):
            ids = {*self.ids.values(), _UNHEARD_OF} - {_NOBODY}
            asked = [MetadataRequestTopic(topic_id=one, name=None) for one in ids]
        request = MetadataRequest(topics=asked, allow_auto_topic_creation=version < 4)
        if version >= 4:
            await self.pair.agree(request, version)

    async def versions(self) -> None:
        """Ask what APIs are served; those that only one has are left out."""
        version = self.dice.randint(0, 4)
        request = ApiVersionsRequest(
            client_software_name="" if self.wrong() else "kafkaio",
            client_software_version="1.0",
        )
        await self.pair.ask(request, version, pick=_served)

    async def coordinator(self) -> None:
        """Ask who coordinates a group."""
        version = self.dice.randint(0, 6)
        kind = 9 if version and self.wrong() else 0
        request = FindCoordinatorRequest(key_type=kind)
        if version >= 4:
            request.coordinator_keys = self.dice.choice([["g"], ["g", "h"], [""], []])
        else:
            request.key = self.dice.choice(["g", ""])
        await self.pair.ask(request, version)


def without_configs(answer: Plain) -> Plain:
    """Leave out what DescribeConfigs is asked for, too."""
    topics = [{**one, "configs": None} for one in answer["topics"]]
    return {**answer, "topics": topics}


def _served(answer: Plain) -> Plain:
    """Leave out the APIs and features that the embedded broker has not got."""
    served = [one for one in answer["api_keys"] if one["api_key"] in _SERVED]
    names = {"group.version"}
    return {
        **answer,
        "api_keys": served,
        "supported_features": _named(answer["supported_features"], names),
        "finalized_features": _named(answer["finalized_features"], names),
    }


def comparable(answer: Plain) -> Plain:
    """Leave out topic configs that are not known here, and where a broker is."""
    results = []
    for result in answer["results"]:
        is_topic = result["resource_type"] == _TOPIC
        configs = [
            {**one, "value": "", "synonyms": [], "config_source": 0}
            if one["name"] in PLACES
            else one
            for one in result["configs"]
            if not is_topic or one["name"] in TOPIC_DEFAULTS
        ]
        here = [one for one in configs if one["name"] not in _ONLY_THERE]
        here.sort(key=lambda one: one["name"])
        results.append({**result, "configs": here})
    return {**answer, "results": results}


def _named(features: Plain, names: set[str]) -> Plain:
    return [one for one in features if one["name"] in names]


_SERVED: Final = frozenset(
    {0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20, 21, 22, 23, 32, 37, 42}
    | {44, 47, 60, 68, 69, 75}
)


async def topics(pair: Pair, dice: Random, prefix: str) -> None:
    """Topics, partitions, configs, Metadata, ApiVersions, FindCoordinator."""
    await TopicScript(pair, dice, prefix).run(40)
