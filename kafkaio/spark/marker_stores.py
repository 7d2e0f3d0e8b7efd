"""Where markers are kept: what both stores do, and which one a write uses."""

from __future__ import annotations

import logging
from typing import Protocol

from kafkaio._runtime.group import TaskGroup
from kafkaio.client import Client
from kafkaio.errors import AuthorizationError, KafkaError
from kafkaio.producer import Transaction
from kafkaio.spark.marker_groups import GroupMarkers, marker_in
from kafkaio.spark.marker_log import TopicMarkers, TopicRefused
from kafkaio.spark.marker_names import TaskName
from kafkaio.spark.marker_state import AppState, Marker, RowSum
from kafkaio.types import TopicPartition

__all__ = ["MarkerStore", "TopicThenGroups", "store_of"]

_log = logging.getLogger("kafkaio.spark")


class MarkerStore(Protocol):
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
        """Note that the task's transaction has begun, and read what was before."""
        ...

    async def again(self, name: TaskName, run: str) -> AppState:
        """Read what has been noted since `begin`."""
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


class TopicThenGroups(TopicMarkers):
    """Keeps markers in a topic, and knows those that groups have kept before.

    Where the topic may not be made, groups keep the markers. If it is made later, an
    application that began with groups goes on with the topic: the group of a task is
    looked at as long as the topic has nothing of an earlier version.

    Args:
        client: a started client.
        topic: the topic of the markers.
        groups_at: the topic at which groups have kept markers; None if they have not.
    """

    def __init__(self, client: Client, topic: str, groups_at: str | None) -> None:
        super().__init__(client, topic)
        self._groups_at = groups_at

    async def begin(self, tx: Transaction, name: TaskName, run: str) -> AppState:
        """Do as `TopicMarkers.begin`; the group of the task is asked once."""
        if self._groups_at is None or _knows(self._log.reader.state(name.scope), name):
            return await super().begin(tx, name, run)
        state, marker = await self._begin_and_ask(tx, name, run)
        if marker is not None and marker.version >= 0 and not _knows(state, name):
            state.tasks[name.task] = marker
        return state

    async def _begin_and_ask(
        self, tx: Transaction, name: TaskName, run: str
    ) -> tuple[AppState, Marker | None]:
        # At once, since the two do not depend on each other: both come after the epoch
        # of the task's producer.
        markers: list[Marker | None] = []
        states: list[AppState] = []
        failures: list[KafkaError] = []

        async def ask() -> None:
            try:
                markers.append(await self._marker_of_group(name))
            except KafkaError as error:
                failures.append(error)

        async with TaskGroup() as group:
            group.start_soon(ask)
            try:
                states.append(await super().begin(tx, name, run))
            except KafkaError as error:
                failures.insert(0, error)
                group.cancel_scope.cancel()
        if failures:
            raise failures[0]
        return states[0], markers[0]

    async def _marker_of_group(self, name: TaskName) -> Marker | None:
        assert self._groups_at is not None
        at = TopicPartition(self._groups_at, 0)
        try:
            found = await self._client.committed(name.transactional_id, [at])
        except AuthorizationError:
            return None  # then groups have kept none, either
        return marker_in(found[at])


def _knows(state: AppState, name: TaskName) -> bool:
    """Whether the topic has the task's markers, or those of an earlier version."""
    is_later = any(each.version < name.version for each in state.tasks.values())
    return is_later or name.task in state.tasks


async def store_of(
    client: Client, *, topic: str | None, groups_at: str | None
) -> MarkerStore:
    """Return the store of a write, ready for use.

    Args:
        client: a started client.
        topic: the topic that keeps markers; None for groups by choice.
        groups_at: the topic at whose partition 0 groups keep markers; None if they
            cannot.

    Raises:
        TopicRefused: the topic may not be made, and groups cannot keep markers.
        ConfigurationError: the topic is not compacted.
        KafkaError: a broker did not answer, or refused.
    """
    if topic is not None:
        store = TopicThenGroups(client, topic, groups_at)
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
