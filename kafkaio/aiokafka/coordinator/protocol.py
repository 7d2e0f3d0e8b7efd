"""What an assignor reads of the members of a group, and returns for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kafkaio import TopicPartition
from kafkaio._named_tuple import NamedTuple

__all__ = [
    "ConsumerProtocol",
    "ConsumerProtocolMemberAssignment",
    "ConsumerProtocolMemberMetadata",
]


@dataclass
class ConsumerProtocolMemberMetadata:
    """The subscription of a member.

    Attributes:
        version: version of the message; 0 is what assignors of aiokafka send.
        subscription: the topics that the member subscribes to.
        user_data: data of its assignor; empty for none.
    """

    version: int
    subscription: list[str]
    user_data: bytes


@dataclass
class ConsumerProtocolMemberAssignment:
    """What is assigned to a member.

    Attributes:
        version: version of the message; 0 is what assignors of aiokafka send.
        assignment: topics, each with numbers of partitions.
        user_data: data of the assignor. kafkaio sends none: it has to be empty.
    """

    class Assignment(NamedTuple):
        """Partitions of one topic.

        Attributes:
            topic: name of the topic.
            partitions: numbers of partitions.
        """

        topic: str
        partitions: list[int]

    version: int
    assignment: Sequence[tuple[str, list[int]]]
    user_data: bytes

    def partitions(self) -> list[TopicPartition]:
        """Return the partitions one by one."""
        return [
            TopicPartition(topic, number)
            for topic, numbers in self.assignment
            for number in numbers
        ]


class ConsumerProtocol:
    """The names that aiokafka has for the above."""

    PROTOCOL_TYPE = "consumer"
    ASSIGNMENT_STRATEGIES = ("range", "roundrobin")
    METADATA = ConsumerProtocolMemberMetadata
    ASSIGNMENT = ConsumerProtocolMemberAssignment
