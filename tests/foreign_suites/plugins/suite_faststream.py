"""A plugin of pytest: FastStream's tests look for the broker at localhost:9092."""

from __future__ import annotations

from importlib import import_module

from suite_run import address


def pytest_collection_finish() -> None:
    settings = import_module("tests.brokers.kafka.settings").Settings
    settings.__init__.__defaults__ = (address()["plain"],)
