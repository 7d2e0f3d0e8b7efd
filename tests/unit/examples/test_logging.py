"""The programs in the guide's page on logging run as they are printed there."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from pathlib import Path

import pytest

import kafkaio
from kafkaio._runtime import log
from kafkaio.testing import Broker
from tests.pages import python_blocks, run_block
from tests.support.patience import HANGS

PAGE = Path(__file__).parents[3] / "docs" / "guide" / "logging.md"


async def test_the_log_as_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (program,) = [
        block
        for block in python_blocks("guide/logging.md")
        if "def log_as_json" in block
    ]
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)
    logger = logging.getLogger("kafkaio")
    monkeypatch.setattr(logger, "level", logger.level)
    names = await run_block(program)
    names["log_as_json"]()
    async with (
        asyncio.timeout(HANGS),
        Broker(topics={"orders": 2}) as broker,
        kafkaio.Consumer(
            broker.bootstrap_servers,
            topics="orders",
            group_id="billing",
            client_id="billing",
        ),
    ):
        pass
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    (shown,) = re.findall(r"```json\n(.*?)\n```", PAGE.read_text(), re.DOTALL)
    printed = json.loads(shown)
    (line,) = [
        line
        for line in lines
        if line.get("kafka_event") == "assignment_changed"
        and line["kafka_change"] == "assigned"
    ]
    assert line == {
        **printed,
        "message": "[billing] partitions assigned: orders-0, orders-1",
        "kafka_partitions": ["orders-0", "orders-1"],
    }


def test_every_field_is_on_the_page() -> None:
    code = Path(log.__file__).read_text()
    body = code[code.index("# ---- lifecycle") : code.index("_LOGGERS: Final")]
    used = {
        *re.findall(r"^ {12,}(\w+)=", body, re.MULTILINE),
        *re.findall(r'"(\w+)": ', body),
    } - {"count", "error", "partition", "partitions"}
    fields = set(re.findall(r'"(kafka_\w+)"', code)) | {f"kafka_{it}" for it in used}
    page = PAGE.read_text()
    assert "kafka_node" in fields
    assert not [field for field in fields if f"`{field}`" not in page]
