"""Tests of the data source that need no Spark."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _collector(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the collector of this process as it is, for the tests that come after."""
    monkeypatch.setenv("KAFKAIO_SPARK_FREEZE", "0")
