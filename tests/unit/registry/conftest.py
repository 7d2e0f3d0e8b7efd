"""What the tests of the registry's client share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.registries import FakeRegistry


@pytest.fixture
async def fake() -> AsyncIterator[FakeRegistry]:
    """A registry as Confluent's 7: without GUIDs, and ids alone for registrations."""
    async with FakeRegistry() as fake:
        yield fake
