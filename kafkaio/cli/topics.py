"""``kafkaio topics``: lists, describes, creates, changes and deletes topics."""

from __future__ import annotations

import click

from kafkaio.cli.command import Group, asynchronous
from kafkaio.cli.output import Table
from kafkaio.cli.session import Session

__all__ = ["topics"]

topics = Group("topics", help="List, create, change and delete topics.")


@topics.command("list")
@click.option("--internal", is_flag=True, help="With Kafka's own topics.")
@asynchronous
async def list_topics(session: Session, *, internal: bool) -> None:
    """List topics."""
    async with session.admin() as admin:
        found = await admin.list_topics(internal=internal)
    rows = [
        {
            "name": each.name,
            "partitions": each.partitions,
            "is_internal": each.is_internal,
            "topic_id": each.topic_id,
        }
        for each in found.values()
    ]
    session.show({"topics": rows}, Table(rows, ("name", "partitions")))
