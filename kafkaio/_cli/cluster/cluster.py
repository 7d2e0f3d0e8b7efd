"""``kafkaio cluster``: the cluster and its brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from kafkaio._cli.shell.command import YES, Group, asynchronous
from kafkaio._cli.shell.session import Session
from kafkaio._cli.text.output import Table

if TYPE_CHECKING:
    from kafkaio.admin import ClusterDescription

_BROKERS: Final = ("node_id", "host", "port", "rack", "is_fenced")


cluster: Group = Group(
    "cluster", help="Describe the cluster and its brokers; forget a broker."
)


@cluster.command("describe")
@asynchronous
async def _describe(session: Session) -> None:
    """Show the id of the cluster, its controller and what you may do with it.

    Without ZooKeeper brokers name one that forwards to the controller, which
    ``kafkaio quorum status`` names.
    """
    async with session.admin() as admin:
        found = await admin.describe_cluster(include_authorized_operations=True)
    row = {
        "cluster_id": found.cluster_id,
        "controller": found.controller,
        "brokers": [it.node_id for it in found.brokers],
        "operations": None
        if found.authorized_operations is None
        else sorted(found.authorized_operations),
    }
    columns = ("cluster_id", "controller", "brokers", "operations")
    session.show_row(row, columns)


@cluster.command("brokers")
@click.option(
    "--fenced", is_flag=True, help="Those too that are not alive (Kafka 4.0)."
)
@asynchronous
async def _brokers(session: Session, *, fenced: bool) -> None:
    """List the brokers."""
    async with session.admin() as admin:
        found = await admin.describe_cluster(include_fenced_brokers=fenced)
    rows = _rows(found)
    session.show({"brokers": rows}, Table(rows, _BROKERS))


@cluster.command("unregister")
@click.argument("node_id", type=click.IntRange(min=0))
@YES
@asynchronous
async def _unregister(session: Session, node_id: int, *, yes: bool) -> None:
    """Forget a broker that was shut down for good."""
    async with session.admin() as admin:
        session.confirm([f"unregister: broker {node_id}"], yes=yes)
        await admin.unregister_broker(node_id)
    row = {"node_id": node_id, "unregistered": True}
    session.show_row(row, tuple(row))


def _rows(found: ClusterDescription) -> list[dict[str, object]]:
    return [
        {
            "node_id": it.node_id,
            "host": it.host,
            "port": it.port,
            "rack": it.rack,
            "is_fenced": it.node_id in found.fenced,
        }
        for it in found.brokers
    ]
