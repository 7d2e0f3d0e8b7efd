"""``python -m kafkaio.spark``."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from kafkaio.errors import ConfigurationError
from kafkaio.spark import __main__ as command
from kafkaio.spark._markers import MarkedApp

SERVERS = "kafka.bootstrap.servers=host:9092"


def test_markers_are_listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    when = datetime(2026, 7, 14, tzinfo=UTC)
    marked = MarkedApp(
        app="daily", version=7, tasks=4, is_done=True, written=when, store="topic"
    )
    asked: list[Mapping[str, str]] = []

    def marked_apps(options: Mapping[str, str]) -> list[MarkedApp]:
        asked.append(options)
        return [marked]

    monkeypatch.setattr(command, "marked_apps", marked_apps)
    assert command.main(["list", SERVERS, "transactionalIdPrefix=team"]) == 0
    shown = "daily\t-\t7\tdone\t4\t2026-07-14T00:00:00+00:00\ttopic\n"
    assert capsys.readouterr().out == shown
    assert asked == [
        {"kafka.bootstrap.servers": "host:9092", "transactionalIdPrefix": "team"}
    ]


def test_markers_are_deleted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "cleanup", lambda app, _: [f"kafkaio-{app}-0"])
    assert command.main(["delete", "daily", SERVERS]) == 0
    assert capsys.readouterr().out == "kafkaio-daily-0\n"


def test_failures_are_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: Mapping[str, str]) -> list[MarkedApp]:
        raise ConfigurationError("no")

    monkeypatch.setattr(command, "marked_apps", refuse)
    assert command.main(["list", SERVERS]) == 1
    assert capsys.readouterr().err == "ConfigurationError: no\n"
    with pytest.raises(SystemExit):
        command.main(["list", "no value"])
