"""``kafkaio cluster``: the cluster and its brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from kafkaio._cli.shell.command import YES, Group, asynchronous
from kafkaio._cli.shell.session import CommandSession
from kafkaio._cli.text.document import BOOLEAN, INTEGER, TEXT, Document, many, rows

if TYPE_CHECKING:
    from kafkaio.admin import ClusterDescription

#: The operations that the user may perform on the cluster (KIP-430).
_DESCRIBED: Final = Document(
    cluster_id=TEXT.or_null,
    controller=INTEGER.or_null,
    brokers=many(INTEGER),
    operations=many(TEXT).or_null,
)
#: A fenced broker is registered and not alive. It is listed on request (KIP-1073).
_BROKERS: Final = Document(
    brokers=rows(
        node_id=INTEGER, host=TEXT, port=INTEGER, rack=TEXT.or_null, is_fenced=BOOLEAN
    )
)
_UNREGISTERED: Final = Document(node_id=INTEGER, unregistered=BOOLEAN)

cluster: Group = Group(
    "cluster",
    help="Describe the cluster and its brokers; forget a broker or a controller.",
)


@cluster.command("describe", prints=_DESCRIBED)
@asynchronous
async def _describe(session: CommandSession) -> None:
    """Show the id of the cluster, its controller and your rights on it.

    Without ZooKeeper brokers name one that forwards to the controller, which
    ``kafkaio quorum status`` names.
    """
    async with session.admin() as admin:
        found = await admin.describe_cluster(include_authorized_operations=True)
    operations = found.authorized_operations
    session.show(
        _DESCRIBED,
        cluster_id=found.cluster_id,
        controller=found.controller,
        brokers=[it.node_id for it in found.brokers],
        operations=None if operations is None else sorted(operations),
    )


@cluster.command("brokers", prints=_BROKERS)
@click.option(
    "--fenced", is_flag=True, help="Those too that are not alive (Kafka 4.0)."
)
@asynchronous
async def _brokers(session: CommandSession, *, fenced: bool) -> None:
    """List the brokers."""
    async with session.admin() as admin:
        found = await admin.describe_cluster(include_fenced_brokers=fenced)
    session.show(_BROKERS, brokers=_rows(found))


@cluster.command("unregister", prints=_UNREGISTERED)
@click.argument("node_id", type=click.IntRange(min=0))
@YES
@asynchronous
async def _unregister(session: CommandSession, node_id: int, *, yes: bool) -> None:
    """Forget a broker that was shut down for good."""
    async with session.admin() as admin:
        session.confirm([f"unregister: broker {node_id}"], yes=yes)
        await admin.unregister_broker(node_id)
    session.show(_UNREGISTERED, node_id=node_id, unregistered=True)


@cluster.command("unregister-controller", prints=_UNREGISTERED)
@click.argument("node_id", type=click.IntRange(min=0))
@YES
@asynchronous
async def _unregister_controller(
    session: CommandSession, node_id: int, *, yes: bool
) -> None:
    """Forget a controller that was shut down for good (Kafka 4.4)."""
    async with session.admin() as admin:
        session.confirm([f"unregister: controller {node_id}"], yes=yes)
        await admin.unregister_controller(node_id)
    session.show(_UNREGISTERED, node_id=node_id, unregistered=True)


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
