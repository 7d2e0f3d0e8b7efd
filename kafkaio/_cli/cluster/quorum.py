"""``kafkaio quorum``: the controllers, and their lag in the metadata log."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

import click

from kafkaio._cli.shell.command import YES, Group, asynchronous
from kafkaio._cli.shell.session import CommandSession
from kafkaio._cli.text.document import (
    BOOLEAN,
    INTEGER,
    TEXT,
    TIME_OR_NULL,
    UUID,
    Document,
    many,
    one_of,
    rows,
)
from kafkaio._cli.text.exits import CommandFailed, Exit
from kafkaio._cli.text.ids import DirectoryId

if TYPE_CHECKING:
    from kafkaio.admin import QuorumDescription, QuorumReplica, RaftEndpoint

_STATUS: Final = Document(
    leader=INTEGER.or_null,
    leader_epoch=INTEGER,
    high_watermark=INTEGER,
    # Null while the leader does not know the offset of any node.
    max_follower_lag=INTEGER.or_null,
    voters=many(INTEGER),
    observers=many(INTEGER),
)
_REPLICATION: Final = Document(
    nodes=rows(
        node_id=INTEGER,
        role=one_of("leader", "voter", "observer"),
        # Null in a quorum of static voters, and before Kafka 3.9 (KIP-853).
        directory_id=UUID,
        log_end_offset=INTEGER.or_null,
        lag=INTEGER.or_null,
        # Null if the leader does not know them (KIP-836).
        last_fetch_time=TIME_OR_NULL,
        last_caught_up_time=TIME_OR_NULL,
    )
)
_VOTERS: Final = Document(
    voters=rows(
        node_id=INTEGER, directory_id=UUID, is_leader=BOOLEAN, endpoints=many(TEXT)
    )
)
_ADDED: Final = Document(node_id=INTEGER, directory_id=UUID, added=BOOLEAN)
_REMOVED: Final = Document(node_id=INTEGER, directory_id=UUID, removed=BOOLEAN)


quorum: Group = Group(
    "quorum", help="Show, add and remove the controllers of the quorum."
)


@quorum.command("status", prints=_STATUS)
@asynchronous
async def _status(session: CommandSession) -> None:
    """Show which controller leads, and how far the slowest is behind."""
    async with session.admin() as admin:
        found = await admin.describe_metadata_quorum()
    lags = [_lag(found, it) for it in (*found.voters, *found.observers)]
    session.show(
        _STATUS,
        leader=found.leader,
        leader_epoch=found.leader_epoch,
        high_watermark=found.high_watermark,
        max_follower_lag=max((lag for lag in lags if lag is not None), default=None),
        voters=[it.node_id for it in found.voters],
        observers=[it.node_id for it in found.observers],
    )


@quorum.command("replication", prints=_REPLICATION)
@asynchronous
async def _replication(session: CommandSession) -> None:
    """Show how far each node has come in the log of the metadata."""
    async with session.admin() as admin:
        found = await admin.describe_metadata_quorum()
    nodes = [
        {
            "node_id": it.node_id,
            "role": role,
            "directory_id": it.directory_id,
            "log_end_offset": it.log_end_offset,
            "lag": _lag(found, it),
            "last_fetch_time": it.last_fetch_time,
            "last_caught_up_time": it.last_caught_up_time,
        }
        for role, own in (("voter", found.voters), ("observer", found.observers))
        for it in own
    ]
    # The description lists the leader among the voters.
    for row in nodes:
        if row["node_id"] == found.leader:
            row["role"] = "leader"
    session.show(_REPLICATION, nodes=nodes)


@quorum.command("voters", prints=_VOTERS)
@asynchronous
async def _voters(session: CommandSession) -> None:
    """List the voters and their listeners."""
    async with session.admin() as admin:
        found = await admin.describe_metadata_quorum()
    voters = [
        {
            "node_id": it.node_id,
            "directory_id": it.directory_id,
            "is_leader": it.node_id == found.leader,
            "endpoints": [
                f"{each.listener}://{each.host}:{each.port}"
                for each in found.endpoints.get(it.node_id, ())
            ],
        }
        for it in found.voters
    ]
    session.show(_VOTERS, voters=voters)


@quorum.command("add-voter", prints=_ADDED)
@click.argument("node_id", type=click.IntRange(min=0))
@click.argument("directory_id", type=DirectoryId())
@click.argument("endpoint", nargs=-1, required=True, metavar="NAME://HOST:PORT...")
@asynchronous
async def _add(
    session: CommandSession,
    node_id: int,
    directory_id: uuid.UUID,
    endpoint: tuple[str, ...],
) -> None:
    """Make a controller that follows the quorum a voter (Kafka 3.9)."""
    endpoints = [_endpoint(text) for text in endpoint]
    async with session.admin() as admin:
        await admin.add_raft_voter(node_id, directory_id, endpoints)
    session.show(_ADDED, node_id=node_id, directory_id=directory_id, added=True)


@quorum.command("remove-voter", prints=_REMOVED)
@click.argument("node_id", type=click.IntRange(min=0))
@click.argument("directory_id", type=DirectoryId())
@YES
@asynchronous
async def _remove(
    session: CommandSession, node_id: int, directory_id: uuid.UUID, *, yes: bool
) -> None:
    """Take a controller's vote away (Kafka 3.9)."""
    async with session.admin() as admin:
        session.confirm([f"remove: the vote of controller {node_id}"], yes=yes)
        await admin.remove_raft_voter(node_id, directory_id)
    session.show(_REMOVED, node_id=node_id, directory_id=directory_id, removed=True)


def _lag(found: QuorumDescription, it: QuorumReplica) -> int | None:
    """The number of records a node is behind the leader; None if it is unknown."""
    ends = {each.node_id: each.log_end_offset for each in found.voters}
    end = None if found.leader is None else ends.get(found.leader)
    if end is None or it.log_end_offset is None:
        return None
    return max(0, end - it.log_end_offset)


def _endpoint(text: str) -> RaftEndpoint:
    from kafkaio.admin import RaftEndpoint

    listener, slashes, address = text.partition("://")
    host, colon, port = address.rpartition(":")
    if not (listener and slashes and host and colon and port.isdecimal()):
        message = f"{text!r} is not NAME://HOST:PORT, such as CONTROLLER://c1:9093"
        raise CommandFailed(message, Exit.USAGE)
    # An IPv6 address has brackets in a URL, and none in the protocol.
    return RaftEndpoint(listener, host.strip("[]"), int(port))
