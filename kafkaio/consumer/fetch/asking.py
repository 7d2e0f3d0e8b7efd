"""One question to one leader about many of its partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Generic, TypeVar

import anyio

from kafkaio._dataclass import dataclass
from kafkaio._net.connection_class import ConnectionClass
from kafkaio.client.cluster import Cluster
from kafkaio.errors import KafkaError, KafkaTimeout, NetworkError, RequestTimeout
from kafkaio.protocol.message import Request, Response
from kafkaio.types import TopicPartition

__all__ = ["Round", "ask_leader"]

T = TypeVar("T")
R = TypeVar("R", bound=Response)


@dataclass(slots=True)
class Round(Generic[T]):
    """What one round of questions brought.

    Attributes:
        found: answers by partition; None where there is none.
        failed: errors that asking again cannot mend.
        again: partitions to ask for again, and why.
    """

    found: dict[TopicPartition, T | None] = field(default_factory=dict)
    failed: dict[TopicPartition, KafkaError] = field(default_factory=dict)
    again: dict[TopicPartition, KafkaError] = field(default_factory=dict)


async def ask_leader(
    cluster: Cluster,
    leader: int,
    kind: type[Request[R]],
    build: Callable[[int], Request[R]],
    limit: float,
    asked: tuple[Round[T], Iterable[TopicPartition]],
) -> R | None:
    """Send one request to a leader and wait for the answer.

    Args:
        cluster: the way to the cluster.
        leader: node id.
        kind: class of the request.
        build: makes the request for a version.
        limit: seconds for it all.
        asked: where to note the failure, and for which partitions.

    Returns:
        The answer: None after a failure, which is noted.
    """
    result, partitions = asked
    try:
        with anyio.fail_after(limit):
            connection = await cluster.connection(leader, ConnectionClass.SHARED)
            request = build(connection.versions.usable(kind))
            return await connection.call(request, timeout=limit)
    except KafkaError as error:
        passes = isinstance(error, NetworkError | KafkaTimeout) and error.retriable
        failures = result.again if passes else result.failed
        failures |= dict.fromkeys(partitions, error)
    except TimeoutError as error:
        failure = RequestTimeout(f"broker {leader} did not answer in {limit:.1f} s")
        failure.__cause__ = error
        result.again |= dict.fromkeys(partitions, failure)
    return None
