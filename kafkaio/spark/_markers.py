"""Lists and deletes what writes that were exactly once have left in Kafka."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal

from kafkaio._client import Client
from kafkaio._dataclass import dataclass
from kafkaio._public import public
from kafkaio.admin import Admin, settled
from kafkaio.errors import GroupError, UnknownTopicOrPartition
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.spark import _runtime as runtime
from kafkaio.spark._errors import one_of_many
from kafkaio.spark._marker_groups import groups_of, marker_in
from kafkaio.spark._marker_log import TopicMarkers
from kafkaio.spark._marker_names import marker_scope, parted, transactional_id
from kafkaio.spark._marker_state import AppState
from kafkaio.spark._options import WriteOptions

#: Options of a write that say where its markers are.
_KEPT = frozenset({"transactionalidprefix", "markertopic"})


@public("kafkaio.spark")
@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedApp:
    """An application that has markers, or a streaming query.

    Attributes:
        app: its name: ``txnAppId``, or the id of the query.
        version: the last version that it has written, at least in part.
        tasks: number of tasks that have markers.
        is_done: whether the last version is known to be in as a whole. In a stream,
            that shows by the next version.
        written: when its last marker was written; None if the store does not tell.
        store: what keeps its markers.
        topic: the topic that it writes to; empty if its rows name their topics, or the
            store does not tell.
    """

    app: str
    version: int
    tasks: int
    is_done: bool
    written: datetime | None
    store: Literal["topic", "groups"]
    topic: str = ""


@public("kafkaio.spark")
def cleanup(app: str, options: Mapping[str, str]) -> list[str]:
    """Delete the markers of a query that is gone, or of an application.

    Without its markers, a query that runs again writes rows again that it has written
    before. So do this only for one that will never run again. Markers in groups expire
    by themselves, ``offsets.retention.minutes`` after their last batch; those in a
    topic do not.

    Needs the right to read and write the topic of the markers, and to describe and
    delete the groups.

    Args:
        app: the id of the streaming query (``query.id``, the same over its restarts),
            or the ``txnAppId``.
        options: the options of its write, of which ``kafka.*``,
            ``transactionalIdPrefix`` and ``markerTopic`` count.

    Returns:
        The transactional ids of the tasks whose markers were deleted, sorted.

    Raises:
        ConfigurationError: an option is impossible.
        AuthorizationError: a marker may not be deleted.
        KafkaError: a broker did not answer, or refused.
    """
    chosen = _chosen(options)

    async def delete() -> list[str]:
        client = await runtime.client(chosen.client_config())
        topic = chosen.marker_topic
        assert topic is not None
        return await delete_markers(client, chosen.transactional_id_prefix, app, topic)

    return runtime.run(delete())


@public("kafkaio.spark")
def marked_apps(options: Mapping[str, str]) -> list[MarkedApp]:
    """Return which applications and queries have markers, sorted by their names.

    Needs the right to read the topic of the markers, and to describe the groups;
    groups that may not be described are left out.

    Args:
        options: the options of a write, of which ``kafka.*``,
            ``transactionalIdPrefix`` and ``markerTopic`` count.

    Raises:
        ConfigurationError: an option is impossible.
        AuthorizationError: the topic may not be read.
        KafkaError: a broker did not answer, or refused.
    """
    chosen = _chosen(options)

    async def find() -> list[MarkedApp]:
        client = await runtime.client(chosen.client_config())
        topic = chosen.marker_topic
        assert topic is not None
        return await list_markers(client, chosen.transactional_id_prefix, topic)

    return runtime.run(find())


def _chosen(options: Mapping[str, str]) -> WriteOptions:
    kept = {
        name: value
        for name, value in options.items()
        if name.lower().startswith("kafka.") or name.lower() in _KEPT
    }
    return WriteOptions.of({**kept, "exactlyOnce": "true"}, is_stream=True)


async def delete_markers(
    client: Client, prefix: str, app: str, topic: str
) -> list[str]:
    """Delete the markers of an application in both stores; see `cleanup`."""
    scope = marker_scope(prefix, app)
    deleted = set(await _delete_in_topic(client, prefix, app, topic))
    with one_of_many():
        async with Admin(client) as admin:
            groups = groups_of(scope, await admin.list_groups())
            deleting = await settled(admin.delete_consumer_groups(groups))
    for error in deleting.failed.values():
        # A group that is gone is as good as deleted.
        if (
            not isinstance(error, GroupError)
            or error.code != ErrorCode.GROUP_ID_NOT_FOUND
        ):
            raise error
    deleted |= {group for group in groups if group.rpartition("-")[2].isdigit()}
    return sorted(deleted)


async def _delete_in_topic(
    client: Client, prefix: str, app: str, topic: str
) -> list[str]:
    try:
        await client.partitions_for(topic)
    except UnknownTopicOrPartition:
        return []
    store, scope = TopicMarkers(client, topic), marker_scope(prefix, app)
    found = await store.scopes()
    tasks = {
        task
        for each, state in found.items()
        if parted(each)[0] == scope
        for task in state.tasks
    }
    await store.delete(scope)
    return [transactional_id(prefix, app, task) for task in sorted(tasks)]


async def list_markers(client: Client, prefix: str, topic: str) -> list[MarkedApp]:
    """Return the applications that have markers in either store; see `marked_apps`."""
    found = [
        *await _in_topic(client, prefix, topic),
        *await _in_groups(client, prefix),
    ]
    return sorted(found, key=lambda each: (each.app, each.topic, each.store))


async def _in_topic(client: Client, prefix: str, topic: str) -> list[MarkedApp]:
    try:
        await client.partitions_for(topic)
    except UnknownTopicOrPartition:
        return []
    scopes = await TopicMarkers(client, topic).scopes()
    begin = marker_scope(prefix, "")
    return [
        marked
        for scope, state in scopes.items()
        if scope.startswith(begin)
        and (marked := _marked(*parted(scope.removeprefix(begin)), state)) is not None
    ]


def _marked(app: str, output: str, state: AppState) -> MarkedApp | None:
    found = list(state.tasks.values())
    if state.done is not None:
        found.append(state.done)
    if not found:
        return None
    version = max(each.version for each in found)
    written = max(each.timestamp for each in found)
    return MarkedApp(
        app=app,
        version=version,
        tasks=len(state.tasks),
        is_done=state.done is not None and state.done.version == version,
        written=datetime.fromtimestamp(written / 1000, UTC) if written >= 0 else None,
        store="topic",
        topic=output,
    )


async def _in_groups(client: Client, prefix: str) -> list[MarkedApp]:
    pattern = re.compile(re.escape(marker_scope(prefix, "")) + "(.+)-([0-9]+)")
    with one_of_many():
        async with Admin(client) as admin:
            groups = [
                each for each in await admin.list_groups() if pattern.fullmatch(each)
            ]
            offsets = await admin.list_consumer_group_offsets(groups) if groups else {}
    versions: dict[str, list[int]] = {}
    for group, committed in offsets.items():
        match = pattern.fullmatch(group)
        assert match is not None
        for each in committed.values():
            marker = marker_in(each)
            if marker is not None and marker.rows is not None:
                versions.setdefault(match[1], []).append(marker.version)
    return [
        MarkedApp(
            app=app,
            version=max(found),
            tasks=len(found),
            is_done=False,
            written=None,
            store="groups",
        )
        for app, found in versions.items()
    ]
