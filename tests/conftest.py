"""What every test has to keep: no secret is shown, and slowness is no failure.

The passwords, keys and tokens of all tests match `SECRET`. The text of each error of
kafkaio that is made, each line that it logs, and all that a test writes are searched
for them; a test in which one is found fails.
"""

from __future__ import annotations

import logging
import re
import signal
from collections.abc import Callable, Generator
from functools import wraps
from typing import TYPE_CHECKING, Final

import pytest

from kafkaio.errors import KafkaError

if TYPE_CHECKING:
    from kafkaio.testing.kafka import Kafka

SECRET: Final = re.compile(
    r"\b(?:alice|another|bob|carl|carol|orders|wrong)-secret|secret-token|a secret/1"
    r"|hunter2|kafkaio-testing|token-0451|\bpencil\b|s3cret-Pa55|s3cr3t-of-orders"
)
# A shell ignores Ctrl+C in what it runs in the background, and so would the programs
# that tests interrupt: they inherit it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

#: What was shown since the last test.
_shown: list[str] = []


def _search(text: str) -> None:
    if SECRET.search(text):
        _shown.append(text)


def _watch(kind: type[KafkaError]) -> bool:
    """Search the text of each error of a class, and of its subclasses, when made.

    Those that are an OSError, too, and their bases are left alone: an ``__init__``
    would change how they are made. What they repeat was searched before.

    Returns:
        Whether the class is searched.
    """
    below = [_watch(each) for each in kind.__subclasses__()]  # all, so a list
    if issubclass(kind, OSError) or not all(below):
        return False
    original = kind.__init__

    @wraps(original)
    def make(error: KafkaError, *args: object, **facts: object) -> None:
        original(error, *args, **facts)
        _search(f"{error} {vars(error)}")

    setattr(kind, "__init__", make)  # noqa: B010 - mypy: a method is not assigned
    return True


class _Search(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith("kafkaio"):
            _search(self.format(record))


#: Seconds that each test has, whatever its marker says: less is a limit of the machine.
LEAST: Final = 600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let no test end because the machine is busy (see `tests.support.patience`)."""
    for item in items:
        marker = item.get_closest_marker("timeout")
        if marker is not None and marker.args and marker.args[0] < LEAST:
            item.add_marker(pytest.mark.timeout(LEAST), append=False)


def _tells_more_than_slowness(record: logging.LogRecord) -> bool:
    return not record.msg.startswith("Executing %s took")


def pytest_configure() -> None:
    _watch(KafkaError)
    logging.getLogger().addHandler(_Search())
    # In debug mode asyncio logs each callback that takes long, as all do on a busy
    # machine. Tests assert that nothing is logged.
    logging.getLogger("asyncio").addFilter(_tells_more_than_slowness)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[
    None, pytest.TestReport, pytest.TestReport
]:
    report = yield
    for _, text in report.sections:
        _search(text)
    if _shown and report.passed:
        report.outcome = "failed"
        report.longrepr = "shows a secret:\n" + "\n".join(_shown)
    _shown.clear()
    return report


@pytest.fixture(scope="session")
def real_kafka_source() -> Callable[[int, str], Kafka]:
    """Start releases before KRaft, too, which need a ZooKeeper."""
    from tests.support.kafka import real_kafka  # imports cost time

    return real_kafka
