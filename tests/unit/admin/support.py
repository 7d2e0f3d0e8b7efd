"""What the tests of the operations share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kafkaio._config import ClientConfig
from kafkaio.admin import Admin
from tests.fakes.broker import FakeCluster

__all__ = ["admin_of"]


@asynccontextmanager
async def admin_of(cluster: FakeCluster, **options: object) -> AsyncIterator[Admin]:
    """A started admin client of a fake cluster."""
    options.setdefault("bootstrap_servers", cluster.bootstrap_servers)
    config = ClientConfig(**options)  # type: ignore[arg-type]  # checked when made
    async with Admin.from_config(config, dial=cluster.dial) as admin:
        yield admin
