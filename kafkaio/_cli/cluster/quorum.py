"""``kafkaio quorum``: the controllers, and how far each has come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

import click

from kafkaio._cli.shell.command import YES, Group, asynchronous
from kafkaio._cli.shell.session import Session
from kafkaio._cli.text.exits import CommandFailed, Exit
from kafkaio._cli.text.ids import DirectoryId
from kafkaio._cli.text.output import Table

if TYPE_CHECKING:
    from kafkaio.admin import QuorumDescription, QuorumReplica, RaftEndpoint

_STATUS: Final = (
    *("leader", "leader_epoch", "high_watermark", "max_follower_lag"),
    *("voters", "observers"),
)
_REPLICATION: Final = (
    *("node_id", "role", "directory_id", "log_end_offset", "lag"),
    *("last_fetch_time", "last_caught_up_time"),
)
_VOTERS: Final = ("node_id", "directory_id", "is_leader", "endpoints")


quorum: Group = Group(
    "quorum", help="Show, add and remove the controllers of the quorum."
)


@quorum.command("status")
@asynchronous
async def _status(session: Session) -> None:
    """Show which controller leads, and how far the slowest is behind."""
    async with session.admin() as admin:
        found = await admin.describe_metadata_quorum()
    lags = [_lag(found, it) for it in (*found.voters, *found.observers)]
    row = {
        "leader": found.leader,
        "leader_epoch": found.leader_epoch,
        "high_watermark": found.high_watermark,
        "max_follower_lag": max((lag for lag in lags if lag is not None), default=None),
        "voters": [it.node_id for it in found.voters],
        "observers": [it.node_id for it in found.observers],
    }
    session.show_row(row, _STATUS)


@quorum.command("replication")
@asynchronous
async def _replication(session: Session) -> None:
    """Show how far each node has come in the log of the metadata."""
    async with session.admin() as admin:
        found = await admin.describe_metadata_quorum()
    rows = [
        {
            "node_id": it.node_id,
            "role": role,
            "directory_id": it.directory_id,
            "log_end_offset": it.log_end_offset,
            "lag": _lag(found, it),
            "last_fetch_time": it.last_fetch_time,
            "last_caught_up_time": it.last_caught_up_time,
        }
        for role, nodes in (("voter", found.voters), ("observer", found.observers))
        for it in nodes
    ]
    for row in rows:
        if row["node_id"] == found.leader:
            row["role"] = "leader"
    session.show({"nodes": rows}, Table(rows, _REPLICATION))


@quorum.command("voters")
@asynchronous
async def _voters(session: Session) -> None:
    """List the voters and their listeners."""
    async with session.admin() as admin:
        found = await admin.describe_metadata_quorum()
    rows = [
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
    session.show({"voters": rows}, Table(rows, _VOTERS))


@quorum.command("add-voter")
@click.argument("node_id", type=click.IntRange(min=0))
@click.argument("directory_id", type=DirectoryId())
@click.argument("endpoint", nargs=-1, required=True, metavar="NAME://HOST:PORT...")
@asynchronous
async def _add(
    session: Session, node_id: int, directory_id: UUID, endpoint: tuple[str, ...]
) -> None:
    """Make a controller that follows the quorum a voter (Kafka 3.9)."""
    endpoints = [_endpoint(text) for text in endpoint]
    async with session.admin() as admin:
        await admin.add_raft_voter(node_id, directory_id, endpoints)
    row = {"node_id": node_id, "directory_id": directory_id, "added": True}
    session.show_row(row, tuple(row))


@quorum.command("remove-voter")
@click.argument("node_id", type=click.IntRange(min=0))
@click.argument("directory_id", type=DirectoryId())
@YES
@asynchronous
async def _remove(
    session: Session, node_id: int, directory_id: UUID, *, yes: bool
) -> None:
    """Take a controller's vote away (Kafka 3.9)."""
    async with session.admin() as admin:
        session.confirm([f"remove: the vote of controller {node_id}"], yes=yes)
        await admin.remove_raft_voter(node_id, directory_id)
    row = {"node_id": node_id, "directory_id": directory_id, "removed": True}
    session.show_row(row, tuple(row))


def _lag(found: QuorumDescription, it: QuorumReplica) -> int | None:
    """How many records a node is behind the leader; None if that is not known."""
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
    return RaftEndpoint(listener, host.strip("[]"), int(port))
