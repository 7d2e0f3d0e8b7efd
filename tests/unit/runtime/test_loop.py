"""Without an event loop of asyncio, each entry says that kafkaio needs one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

import kafkaio
from kafkaio.testing import Broker

ENTRIES: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
    "client": lambda: kafkaio.Client("b:1").start(),
    "producer": lambda: kafkaio.Producer("b:1").start(),
    "consumer": lambda: kafkaio.Consumer("b:1", topics="t").start(),
    "consumer of a group": lambda: kafkaio.Consumer(
        "b:1", topics="t", group_id="g"
    ).start(),
    "consumer in a thread": lambda: kafkaio.Consumer(
        "b:1", topics="t", io_thread=True
    ).start(),
    "admin": lambda: kafkaio.Admin("b:1").start(),
    "async with": lambda: kafkaio.Producer("b:1").__aenter__(),
    "broker": lambda: Broker().__aenter__(),
}


def step(entry: str) -> None:
    """Run a coroutine as a loop of another kind would."""
    work = ENTRIES[entry]()
    try:
        work.send(None)
    finally:
        work.close()


@pytest.mark.parametrize("entry", ENTRIES)
def test_no_loop(entry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trio", None)
    with pytest.raises(kafkaio.UsageError, match=r"runs on asyncio, and no event loop"):
        step(entry)


@pytest.mark.parametrize("entry", ENTRIES)
def test_trio(entry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # What is asked of the real one in tests/crowded/test_trio.py.
    trio = SimpleNamespace(lowlevel=SimpleNamespace(current_task=object))
    monkeypatch.setitem(sys.modules, "trio", trio)
    with pytest.raises(kafkaio.UsageError, match=r"asyncio, and trio runs here: use"):
        step(entry)


def test_trio_that_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def current_task() -> object:
        raise RuntimeError("must be called from async context")

    trio = SimpleNamespace(lowlevel=SimpleNamespace(current_task=current_task))
    monkeypatch.setitem(sys.modules, "trio", trio)
    with pytest.raises(kafkaio.UsageError, match="no event loop of asyncio runs here"):
        step("client")
