"""A plugin of pytest: puts kafkaio in the place of aiokafka, and records outcomes.

It is loaded by ``-p`` before any test is collected. It imports nothing of our own
tests: the folders of foreign tests are named ``tests``, too.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

import pytest

#: Characters of a reason.
_MOST: Final = 200

if os.environ["KAFKAIO_SUITE_CLIENT"] == "kafkaio":
    import kafkaio.aiokafka

    kafkaio.aiokafka.install()


def address() -> dict[str, str]:
    """Return the fields of ``brokers.Address``."""
    found: dict[str, str] = json.loads(os.environ["KAFKAIO_SUITE_ADDRESS"])
    return found


class _Recorder:
    """Keeps the worst outcome of the steps of each test, and why it failed."""

    _RANK: Final = {"passed": 0, "skipped": 1, "failed": 2}

    def __init__(self, place: Path) -> None:
        self._place = place
        #: Outcome and reason by test.
        self._outcomes: dict[str, tuple[str, str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome in self._RANK:  # not the "rerun" of pytest-rerunfailures
            self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.outcome != "passed":
            self._note(report)

    def _note(self, report: Any) -> None:
        known, _ = self._outcomes.get(report.nodeid, ("passed", ""))
        if report.nodeid in self._outcomes and (
            self._RANK[report.outcome] <= self._RANK[known]
        ):
            return
        crash = getattr(report.longrepr, "reprcrash", None)
        reason = getattr(crash, "message", str(report.longrepr or ""))
        first = next(iter(reason.strip().splitlines()), "")
        self._outcomes[report.nodeid] = (report.outcome, first[:_MOST])

    def pytest_sessionfinish(self) -> None:
        self._place.write_text(json.dumps(self._outcomes, indent=1))


def pytest_configure(config: pytest.Config) -> None:
    place = Path(os.environ["KAFKAIO_SUITE_OUTCOMES"])
    config.pluginmanager.register(_Recorder(place))
