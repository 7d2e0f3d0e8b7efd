"""Steps with the offsets of groups, and a script of groups that have no members."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from uuid import UUID

from kafkaio.protocol.messages import (
    FindCoordinatorRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
)
from kafkaio.protocol.messages.metadata import MetadataRequestTopic
from kafkaio.protocol.messages.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaio.protocol.messages.offset_delete import (
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kafkaio.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.integration.differential.pair import Pair

#: Topics that both brokers have, and one that neither has.
TOPICS = ("t", "u")
ABSENT = "absent"
PARTITIONS = 3


async def get_ready(pair: Pair) -> None:
    """Learn the topics' ids, and wait until groups have a coordinator."""
    names = [MetadataRequestTopic(name=name) for name in TOPICS]
    for found in (await pair.agree(MetadataRequest(topics=names), 12))["topics"]:
        pair.ids[found["name"]] = found["topic_id"]
    pair.ids[ABSENT] = UUID(int=77)
    # The real broker makes the topic of committed offsets when a coordinator is first
    # asked for, and loads its partitions one by one; names reach every partition.
    groups = [f"g{number}" for number in range(32)]
    await pair.agree(FindCoordinatorRequest(coordinator_keys=groups), 6)
    asked = [OffsetFetchRequestGroup(group_id=name) for name in groups]
    await pair.agree(OffsetFetchRequest(groups=asked), 8)


async def commit(
    pair: Pair,
    dice: Random,
    group: str,
    member_id: str = "",
    generation: int = -1,
    instance: str | None = None,
    notes: Sequence[str | None] = (None, "", "note"),
) -> None:
    """Commit some positions.

    A group whose first commit is refused for its metadata is there for who writes and
    not for who reads, until something else is written to its shard of a real broker:
    so such metadata only where nobody looks.
    """
    version = dice.randint(7 if instance else 2, 10)
    topics = [
        OffsetCommitRequestTopic(
            name=name if version < 10 else "",
            topic_id=pair.ids[name] if version >= 10 else UUID(int=0),
            partitions=[
                OffsetCommitRequestPartition(
                    partition_index=index,
                    committed_offset=dice.randrange(100),
                    committed_leader_epoch=dice.choice([-1, 0]) if version > 5 else -1,
                    committed_metadata=dice.choice(notes),
                )
                for index in dice.sample(range(PARTITIONS + 1), dice.randint(1, 2))
            ],
        )
        for name in dice.sample((*TOPICS, ABSENT), dice.randint(1, 2))
    ]
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance,
        topics=topics,
    )
    await pair.ask(request, version)


async def fetch(
    pair: Pair,
    dice: Random,
    groups: list[str],
    member_id: str | None = None,
    epoch: int = -1,
) -> None:
    """Look up positions: some, or all."""
    version = dice.randint(9 if member_id is not None else 1, 10)
    names = dice.sample((*TOPICS, ABSENT), dice.randint(0, 3))
    wants_all = version >= 2 and dice.random() < 0.4
    indexes = dice.sample(range(PARTITIONS + 1), 2)
    if version < 8:
        single = [
            OffsetFetchRequestTopic(name=n, partition_indexes=indexes) for n in names
        ]
        request = OffsetFetchRequest(
            group_id=groups[0], topics=None if wants_all else single
        )
        await pair.ask(request, version)
        return
    topics = [
        OffsetFetchRequestTopics(
            name=name if version < 10 else "",
            topic_id=pair.ids[name] if version >= 10 else UUID(int=0),
            partition_indexes=indexes,
        )
        for name in names
    ]
    request = OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id=group,
                member_id=member_id,
                member_epoch=epoch,
                topics=None if wants_all else topics,
            )
            for group in groups
        ],
        require_stable=dice.random() < 0.5,
    )
    await pair.ask(request, version)


async def delete_offsets(pair: Pair, dice: Random, group: str) -> None:
    """Forget positions."""
    request = OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(
                name=name,
                partitions=[
                    OffsetDeleteRequestPartition(partition_index=index)
                    for index in dice.sample(range(PARTITIONS + 1), dice.randint(1, 2))
                ],
            )
            for name in dice.sample((*TOPICS, ABSENT), dice.randint(1, 2))
        ],
    )
    await pair.ask(request, 0)


async def simple_groups(pair: Pair, dice: Random, prefix: str) -> None:
    """Commit, look up and forget positions of groups that nobody joined."""
    groups = [f"{prefix}-simple-{number}" for number in range(3)]
    for _ in range(40):
        group = dice.choice([*groups, *groups, ""])
        chosen = dice.random()
        if chosen < 0.5:
            is_member = dice.random() < 0.2
            await commit(
                pair,
                dice,
                group,
                "nobody" if is_member else "",
                dice.choice([-1, -1, -1, 0, 5]),
                dice.choice([None, None, None, None, "i"]),
                [None, "note", "x" * 5000],
            )
        elif chosen < 0.8:
            some = dice.sample([*groups, "no-such-group"], 2)
            member = dice.choice([None, None, None, "nobody", ""])
            await fetch(
                pair,
                dice,
                some,
                member,
                dice.choice([-1, 0, 3]) if member is not None else -1,
            )
        else:
            await delete_offsets(pair, dice, group)
