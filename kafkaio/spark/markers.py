"""Deletes what a query that wrote exactly once leaves in Kafka: its marker groups."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kafkaio.client import Broker, Client, Destination, GroupCoordinator
from kafkaio.client.client import cluster_of
from kafkaio.client.fanout import Answer, Operation, Terms
from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.protocol.messages.delete_groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from kafkaio.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kafkaio.spark import runtime
from kafkaio.spark.exactly_once import transactional_id
from kafkaio.spark.options import WriteOptions

__all__ = ["cleanup", "delete_markers"]

#: A group that is gone is as good as deleted.
_GONE: Final = frozenset({ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND})


def cleanup(app: str, options: Mapping[str, str]) -> list[str]:
    """Delete the markers of a query that is gone, or of an application.

    Without its markers, a query that runs again writes rows again that it has written
    before. So do this only for one that will never run again; markers of the others
    expire by themselves, ``offsets.retention.minutes`` after their last batch.

    Needs the right to describe and to delete the groups.

    Args:
        app: the id of the streaming query (``query.id``, the same over its restarts),
            or the ``txnAppId``.
        options: the options of its write, of which ``kafka.*`` and
            ``transactionalIdPrefix`` count.

    Returns:
        The names of the groups that were deleted, sorted.

    Raises:
        ConfigurationError: an option is impossible.
        AuthorizationError: a group may not be deleted.
        KafkaError: a broker did not answer, or refused.
    """
    kept = {
        name: value
        for name, value in options.items()
        if name.lower().startswith("kafka.") or name.lower() == "transactionalidprefix"
    }
    chosen = WriteOptions.of(kept, is_stream=False)

    async def delete() -> list[str]:
        client = await runtime.client(chosen.client_config())
        return await delete_markers(client, chosen.transactional_id_prefix, app)

    return runtime.run(delete())


async def delete_markers(client: Client, prefix: str, app: str) -> list[str]:
    """Delete the marker groups of an application; see `cleanup`."""
    pattern = re.compile(re.escape(transactional_id(prefix, app, "")) + "[0-9]+")
    cluster = cluster_of(client)
    await cluster.refresh(client.config.default_api_timeout_ms / 1000)
    listed = await cluster.ask(_listing(), sorted(cluster.view.brokers))
    names = {name for found in listed.or_raise().values() for name in found}
    groups = sorted(name for name in names if pattern.fullmatch(name))
    deleted = await cluster.ask(_deletion(), groups)
    deleted.or_raise()
    return groups


def _listing() -> Operation[int, list[str], ListGroupsResponse]:
    def read(
        response: ListGroupsResponse, items: Sequence[int]
    ) -> Iterator[Answer[int, list[str]]]:
        names = [group.group_id for group in response.groups]
        yield Answer(items[0], names, response.error_code)

    def build(items: Sequence[int], terms: Terms) -> ListGroupsRequest:
        del items, terms
        return ListGroupsRequest()

    def destination(node_id: int) -> Destination:
        return Broker(node_id)

    return Operation(
        what="list the groups of broker",
        request=ListGroupsRequest,
        destination=destination,
        build=build,
        read=read,
    )


def _deletion() -> Operation[str, None, DeleteGroupsResponse]:
    def read(
        response: DeleteGroupsResponse, items: Sequence[str]
    ) -> Iterator[Answer[str, None]]:
        del items
        for result in response.results:
            code = 0 if result.error_code in _GONE else result.error_code
            yield Answer(result.group_id, None, code)

    def build(items: Sequence[str], terms: Terms) -> DeleteGroupsRequest:
        del terms
        return DeleteGroupsRequest(groups_names=list(items))

    return Operation(
        what="delete the group",
        request=DeleteGroupsRequest,
        destination=GroupCoordinator,
        build=build,
        read=read,
        name=repr,
    )
