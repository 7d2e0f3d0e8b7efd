"""The port of both stores of markers, and the choice of one for a write."""

from __future__ import annotations

import logging
from typing import Protocol

from kafkaio._client import Client
from kafkaio._producer.transaction import Transaction
from kafkaio.spark._marker_groups import GroupMarkers
from kafkaio.spark._marker_log import TopicMarkers, TopicRefused
from kafkaio.spark._marker_names import TaskName
from kafkaio.spark._marker_state import AppState, RowSum

_log = logging.getLogger("kafkaio.spark")


class MarkerStorePort(Protocol):
    """Keeps the markers of applications.

    All methods raise a KafkaError if the cluster refuses, or does not answer within
    ``default_api_timeout_ms``.
    """

    topic: str
    #: Whether `begin` writes in the transaction, before it reads.
    begins_by_writing: bool

    async def prepare(self) -> None:
        """Check, once for each worker, that markers can be kept."""

    async def begin(self, tx: Transaction, name: TaskName, run: str) -> AppState:
        """Record that the task's transaction has begun; return the state before."""
        ...

    async def again(self, name: TaskName, run: str) -> AppState:
        """Return the state with the markers since `begin`."""
        ...

    async def mark(
        self, tx: Transaction, name: TaskName, run: str, rows: RowSum
    ) -> None:
        """Note the rows of the task in the transaction."""

    async def verify(self, tx: Transaction, name: TaskName, run: str) -> None:
        """Note in a transaction that the run has the rows of another one."""

    async def refuse(self, name: TaskName, run: str) -> None:
        """Note that the version must not be written any further."""

    async def look(self, scope: str, version: int = 0) -> AppState:
        """Read all of an application, in the driver."""
        ...

    async def finish(self, scope: str, version: int, run: str, rows: RowSum) -> None:
        """Note that a whole version is in."""


async def store_of(
    client: Client,
    *,
    topic: str | None,
    groups_at: str | None,
    output: str | None = None,
) -> MarkerStorePort:
    """Return the store of a write, ready for use.

    Args:
        client: a started client.
        topic: the topic that keeps markers; None for groups by choice.
        groups_at: the topic at whose partition 0 groups keep markers; None if they
            cannot.
        output: the topic that is written to; None if the rows name their topics.

    Raises:
        TopicRefused: the topic may not be made, and groups cannot keep markers.
        ConfigurationError: the topic is not compacted.
        KafkaError: a broker did not answer, or refused.
    """
    if topic is not None:
        store = TopicMarkers(client, topic, groups_at, output)
        try:
            await store.prepare()
        except TopicRefused as error:
            if groups_at is None:
                raise
            _warn_of_groups(topic, error)
        else:
            return store
    assert groups_at is not None  # the options have checked that
    groups = GroupMarkers(client, groups_at)
    await groups.prepare()
    return groups


_warned: set[str] = set()


def _warn_of_groups(topic: str, error: TopicRefused) -> None:
    if topic not in _warned:
        _warned.add(topic)
        _log.warning("%s; until then groups keep the markers", error)
