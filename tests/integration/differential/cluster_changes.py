"""A random script of what concerns the whole cluster: quotas, features, controllers."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from kafkaio.protocol.messages import (
    AlterClientQuotasRequest,
    AlterReplicaLogDirsRequest,
    ApiVersionsRequest,
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    CreateTopicsRequest,
    DescribeClientQuotasRequest,
    DescribeLogDirsRequest,
    DescribeQuorumRequest,
    UnregisterBrokerRequest,
    UpdateFeaturesRequest,
)
from kafkaio.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequestEntityData as Name,
    AlterClientQuotasRequestEntryData as Entry,
    OpData,
)
from kafkaio.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirTopic,
)
from kafkaio.protocol.messages.create_topics import CreatableTopic
from kafkaio.protocol.messages.describe_client_quotas import ComponentData
from kafkaio.protocol.messages.describe_quorum import (
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from kafkaio.protocol.messages.update_features import FeatureUpdateKey
from tests.integration.differential.pair import Pair
from tests.integration.differential.plain import Names, Plain

_KEYS: Final = (
    *("producer_byte_rate", "consumer_byte_rate", "request_percentage"),
    *("controller_mutation_rate", "connection_creation_rate", "no_such_quota"),
)
_VALUES: Final = (1.0, 5.0, 1.5, 0.0, -1.0, 3e9, 9.3e18, 200.0)
_ADDRESSES: Final = (None, "", "1.2.3.4", "::1", "localhost", "nobody.invalid")
#: What both have, and their levels; kafkaio's has no others.
_FEATURES: Final = {"group.version": 1, "transaction.version": 2}
#: How far the metadata is, when somebody heard of it, and how often a leader of it was
#: elected: the only controller of a busy machine may elect itself anew.
_MOVING: Final = frozenset(
    {
        *("high_watermark", "log_end_offset", "leader_epoch"),
        *("last_fetch_timestamp", "last_caught_up_timestamp"),
    }
)


async def cluster_changes(pair: Pair, dice: Random, prefix: str) -> None:
    """Take steps chosen by dice; quotas and levels are as before in the end."""
    script = _Script(pair, dice, prefix)
    await script.begin()
    kinds = (
        [script.alter_quotas] * 4
        + [script.describe_quotas] * 4
        + [script.update_features] * 3
        + [script.describe_quorum, script.move_replicas, script.unregister]
    )
    for _ in range(40):
        await dice.choice(kinds)()
    await script.end()


class _Script:
    def __init__(self, pair: Pair, dice: Random, prefix: str) -> None:
        self.pair = pair
        self.dice = dice
        self.topic = f"{prefix}-t"
        self.group = f"{prefix}-g"
        self.users = (None, "", f"{prefix}-a", f"{prefix}-b")
        self.paths: dict[int, str] = {}
        self.altered: dict[tuple[tuple[str, str | None], ...], None] = {}

    async def begin(self) -> None:
        """Create the topic, and find the directories."""
        topic = CreatableTopic(name=self.topic, num_partitions=2, replication_factor=1)
        await self.pair.ask(CreateTopicsRequest(topics=[topic], timeout_ms=9000), 4)
        for side in self.pair.sides:
            told = await side.ask(DescribeLogDirsRequest(topics=None), 4)
            self.paths[id(side)] = told.results[0].log_dir

    async def end(self) -> None:
        """Remove all quotas, and put the levels in force that there were."""
        entries = [
            self._entry(entity, [(key, None) for key in keys])
            for entity in self.altered
            for keys in [_KEYS[4:5] if dict(entity).keys() == {"ip"} else _KEYS[:4]]
        ]
        await self.pair.ask(AlterClientQuotasRequest(entries=entries), 1, pick=_sorted)
        await self._look_up([])
        for name, level in _FEATURES.items():
            await self._update([self._feature(name, level, 1)])
        await self.features()

    # ---- quotas ----------------------------------------------------------------------

    def _entity(self) -> tuple[tuple[str, str | None], ...]:
        dice = self.dice
        if dice.random() < 0.3:
            return (("ip", dice.choice(_ADDRESSES)),)
        wrong = [(), (("frog", "x"),), (("ip", "::1"), ("user", "x")), (("", "x"),)]
        if dice.random() < 0.1:
            return dice.choice(wrong)
        names = [("user", dice.choice(self.users)), ("client-id", dice.choice("cd"))]
        return tuple(dice.sample(names, dice.randint(1, 2)))

    def _entry(
        self,
        entity: Sequence[tuple[str, str | None]],
        changes: Sequence[tuple[str, float | None]],
    ) -> Entry:
        return Entry(
            entity=[Name(entity_type=kind, entity_name=name) for kind, name in entity],
            ops=[
                OpData(key=key, value=value or 0.0, remove=value is None)
                for key, value in changes
            ],
        )

    async def alter_quotas(self) -> None:
        """Set and remove some."""
        dice = self.dice
        entries = []
        for _ in range(dice.randint(0, 3)):
            entity = self._entity()
            # Of several that are wrong, it is Java's to choose which one it tells.
            changes = [
                (dice.choice(_KEYS), dice.choice((*_VALUES, None)))
                for _ in range(dice.choice([0, 1, 1, 2]))
            ]
            entries.append(self._entry(entity, changes))
            self.altered[tuple(sorted(entity, key=str))] = None
        request = AlterClientQuotasRequest(
            entries=entries, validate_only=dice.random() < 0.2
        )
        await self.pair.ask(request, dice.randint(0, 1), pick=_sorted)

    async def describe_quotas(self) -> None:
        """Look some up."""
        dice = self.dice
        kinds = ["user", "client-id", "ip", "frog", ""]
        await self._look_up(
            [
                ComponentData(
                    entity_type=kind,
                    match_type=dice.choice([0, 1, 2, 2, 7]),
                    match=dice.choice([None, None, "c", "::1", *self.users]),
                )
                for kind in dice.choices(kinds, [5, 5, 3, 1, 1], k=dice.randint(0, 2))
            ],
            strict=dice.random() < 0.4,
        )

    async def _look_up(
        self, components: list[ComponentData], *, strict: bool = False
    ) -> None:
        request = DescribeClientQuotasRequest(components=components, strict=strict)
        await self.pair.agree(request, self.dice.randint(0, 1), pick=_sorted)

    # ---- features, controllers, brokers, directories ---------------------------------

    def _feature(self, name: str, level: int, kind: int) -> FeatureUpdateKey:
        return FeatureUpdateKey(
            feature=name, max_version_level=level, upgrade_type=kind
        )

    async def _update(
        self, updates: list[FeatureUpdateKey], *, validate_only: bool = False
    ) -> None:
        request = UpdateFeaturesRequest(
            feature_updates=updates, validate_only=validate_only, timeout_ms=9000
        )
        await self.pair.ask(request, self.dice.randint(1, 2))

    async def update_features(self) -> None:
        """Raise or lower levels."""
        dice = self.dice
        updates = [
            self._feature(
                dice.choice(["group.version", "transaction.version", "no.such", ""]),
                dice.randint(-1, 3),
                dice.choice([1, 1, 2, 3, 7]),
            )
            for _ in range(dice.randint(0, 2))
        ]
        if len({each.feature for each in updates}) == len(updates):
            await self._update(updates, validate_only=dice.random() < 0.3)
            await self.features()

    async def features(self) -> None:
        """Ask for the levels, and whether groups of KIP-848 are on."""
        request = ApiVersionsRequest(
            client_software_name="a", client_software_version="1"
        )
        await self.pair.agree(request, 4, pick=_levels)
        beat = ConsumerGroupHeartbeatRequest(group_id=self.group, member_epoch=7)
        await self.pair.agree(beat, 1)
        described = ConsumerGroupDescribeRequest(group_ids=[self.group])
        await self.pair.agree(described, 1)

    async def describe_quorum(self) -> None:
        """Ask who the controllers are."""
        dice = self.dice
        topic = DescribeQuorumRequestTopicData(
            topic_name=dice.choice(["__cluster_metadata"] * 3 + ["x"]),
            partitions=[
                DescribeQuorumRequestPartitionData(
                    partition_index=dice.choice([0, 0, 0, 1])
                )
            ],
        )
        topics = [topic] if dice.random() < 0.9 else []
        request = DescribeQuorumRequest(topics=topics)
        await self.pair.agree(request, dice.randint(0, 2), pick=_settled)

    async def move_replicas(self) -> None:
        """Move replicas to the directory that there is, or to another."""
        dice = self.dice
        own = dice.random() < 0.7
        topics = [
            AlterReplicaLogDirTopic(name=name, partitions=dice.sample([0, 1, 7], 2))
            for name in dice.sample([self.topic, "no-such-topic"], dice.randint(0, 2))
        ]

        def request(names: Names) -> AlterReplicaLogDirsRequest:
            paths = [
                self.paths[id(side)] for side in self.pair.sides if side.names is names
            ]
            path = paths[0] if own and paths else "/no/such/directory"
            return AlterReplicaLogDirsRequest(
                dirs=[AlterReplicaLogDir(path=path, topics=topics)]
            )

        await self.pair.ask(request, dice.randint(1, 2), pick=_sorted)

    async def unregister(self) -> None:
        """Forget a broker that there never was."""
        request = UnregisterBrokerRequest(broker_id=self.dice.choice([99, -1]))
        await self.pair.ask(request, 0)


def _sorted(answer: Plain) -> Plain:
    """Sort every list: the order is that of a map of Java's."""
    if isinstance(answer, dict):
        return {key: _sorted(value) for key, value in answer.items()}
    if isinstance(answer, list):
        return sorted((_sorted(each) for each in answer), key=repr)
    return answer


def _settled(answer: Plain) -> Plain:
    """Leave out how far the metadata is, but not whether it is told."""
    if isinstance(answer, dict):
        return {
            key: value > 0 if key in _MOVING else _settled(value)
            for key, value in answer.items()
        }
    if isinstance(answer, list):
        return [_settled(each) for each in answer]
    return answer


def _levels(answer: Plain) -> Plain:
    return sorted(
        (each["name"], each["max_version_level"])
        for each in answer["finalized_features"]
        if each["name"] in _FEATURES
    )
