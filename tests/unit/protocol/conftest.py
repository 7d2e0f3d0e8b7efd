"""Tests that run with each tier of the codec."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.unit.protocol.tiers import Tier, tier_of


# Of a module: Hypothesis refuses fixtures of a function.
@pytest.fixture(scope="module", params=Tier, ids=lambda tier: tier.name.lower())
def tier(request: pytest.FixtureRequest) -> Generator[Tier]:
    with tier_of(request.param):
        yield request.param
