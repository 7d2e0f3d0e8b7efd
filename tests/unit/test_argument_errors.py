"""A wrong argument is a UsageError that is also the built-in exception it replaces."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import kafkaio
from kafkaio import _arguments as arguments, errors, messages
from kafkaio.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ConfigurationError,
    KafkaError,
    UsageError,
)
from kafkaio.testing import Broker
from kafkaio.types import OffsetAndMetadata, TopicPartition

NAN = float("nan")
TP = TopicPartition("t", 0)
LIST_GROUPS = messages.ListGroupsRequest()

Check = Callable[[], object]
#: What refuses an argument, and the class of the error.
CHECKS: list[tuple[str, Check, type[UsageError]]] = [
    ("a topic of bytes", lambda: arguments.check_topic(b"t"), ArgumentTypeError),
    ("no topic", lambda: arguments.check_topic(None), ArgumentTypeError),
    ("an empty topic", lambda: arguments.check_topic(""), ArgumentValueError),
    ("topics of ints", lambda: arguments.topics_of([1]), ArgumentTypeError),
    ("one number of topics", lambda: arguments.topics_of(5), ArgumentTypeError),
    ("topics of bytes", lambda: arguments.topics_of(b"t"), ArgumentTypeError),
    ("a topic without a name", lambda: arguments.topics_of(""), ArgumentValueError),
    ("one without a name", lambda: arguments.topics_of(["t", ""]), ArgumentValueError),
    ("a text for a number", lambda: arguments.check_partition("0"), ArgumentTypeError),
    ("a flag for a number", lambda: arguments.check_partition(True), ArgumentTypeError),
    ("a negative number", lambda: arguments.check_partition(-1), ArgumentValueError),
    ("a list for a pair", lambda: arguments.partition_of(["t", 0]), ArgumentTypeError),
    (
        "a partition of a typed topic",
        lambda: arguments.partition_of((kafkaio.Topic("t"), 0)),
        ArgumentTypeError,
    ),
    ("a triple", lambda: arguments.partition_of(("t", 0, 1)), ArgumentTypeError),
    ("a pair in disorder", lambda: arguments.partition_of((0, "t")), ArgumentTypeError),
    (
        "a flagged pair",
        lambda: arguments.partition_of(("t", True)),
        ArgumentTypeError,
    ),
    ("an unnamed pair", lambda: arguments.partition_of(("", 0)), ArgumentValueError),
    (
        "a negative pair",
        lambda: arguments.partition_of(("t", -1)),
        ArgumentValueError,
    ),
    ("an offset of text", lambda: arguments.offset_of("5"), ArgumentTypeError),
    ("a flag for an offset", lambda: arguments.offset_of(False), ArgumentTypeError),
    ("a huge offset", lambda: arguments.offset_of(2**63), ArgumentValueError),
    (
        "no offset but metadata",
        lambda: arguments.offset_of(OffsetAndMetadata("5")),
        ArgumentTypeError,
    ),
    (
        "metadata of bytes",
        lambda: arguments.offset_of(OffsetAndMetadata(5, b"")),
        ArgumentTypeError,
    ),
    (
        "an epoch of text",
        lambda: arguments.offset_of(OffsetAndMetadata(5, "", "1")),
        ArgumentTypeError,
    ),
    ("a share of one", lambda: arguments.count_of("n", 1.5, 9), ArgumentTypeError),
    ("a flag for a count", lambda: arguments.count_of("n", True, 9), ArgumentTypeError),
    ("a count of none", lambda: arguments.count_of("n", 0, 9), ArgumentValueError),
    ("a time of text", lambda: arguments.seconds_of("s", "1"), ArgumentTypeError),
    ("a flag for a time", lambda: arguments.seconds_of("s", True), ArgumentTypeError),
    ("no time", lambda: arguments.seconds_of("s", None), ArgumentTypeError),
    ("a negative time", lambda: arguments.seconds_of("s", -0.1), ArgumentValueError),
    ("no number", lambda: arguments.seconds_of("s", NAN), ArgumentValueError),
    ("options", lambda: kafkaio.Client("a:1", nonsense=1), ConfigurationError),
    ("an option's type", lambda: kafkaio.Client("a:1", log=1), ConfigurationError),
    ("servers", lambda: kafkaio.Client(5), ConfigurationError),
    ("properties", lambda: kafkaio.Client.from_properties(5), ConfigurationError),
]


@pytest.mark.parametrize(
    ("check", "error"), [each[1:] for each in CHECKS], ids=[each[0] for each in CHECKS]
)
def test_what_a_check_refuses(check: Check, error: type[UsageError]) -> None:
    with pytest.raises(UsageError) as caught:
        check()
    assert type(caught.value) is error
    assert isinstance(caught.value, (TypeError, ValueError))


def test_what_is_right_is_returned() -> None:
    assert arguments.topics_of("t") == ("t",)
    assert arguments.topics_of(["b", "a", "b"]) == ("b", "a")
    assert arguments.topics_of([]) == ()
    assert arguments.partition_of(("t", 0)) == TP
    assert type(arguments.partition_of(("t", 0))) is TopicPartition
    assert arguments.offset_of(-1) == OffsetAndMetadata(-1)
    noted = OffsetAndMetadata(5, "note", 1)
    assert arguments.offset_of(noted) is noted
    assert arguments.count_of("n", None, 500) == 500
    assert arguments.count_of("n", 1, 500) == 1
    assert arguments.seconds_of("s", 0) == 0
    assert arguments.seconds_of("s", float("inf")) == float("inf")
    assert arguments.seconds_of("s", -5, float("-inf")) == -5
    arguments.check_topic("t")
    arguments.check_partition(0)


Call = Callable[[kafkaio.Client], Awaitable[object]]
#: Calls of a running client, the class of the error and the argument that it names.
CALLS: list[tuple[str, Call, type[UsageError], str]] = [
    ("no request", lambda c: c.request(b"x"), ArgumentTypeError, "request"),
    (
        "a number for a broker",
        lambda c: c.request(LIST_GROUPS, to=1),
        ArgumentTypeError,
        "to",
    ),
    (
        "a class for a place",
        lambda c: c.request(LIST_GROUPS, to=kafkaio.Leader),
        ArgumentTypeError,
        "to",
    ),
    (
        "a time of text",
        lambda c: c.request(LIST_GROUPS, timeout="1"),
        ArgumentTypeError,
        "timeout",
    ),
    (
        "no number",
        lambda c: c.request(LIST_GROUPS, timeout=NAN),
        ArgumentValueError,
        "timeout",
    ),
    (
        "a flag for the time to close",
        lambda c: c.close(timeout=True),
        ArgumentTypeError,
        "timeout",
    ),
    (
        "a negative time to close",
        lambda c: c.close(timeout=-1),
        ArgumentValueError,
        "timeout",
    ),
]


@pytest.mark.parametrize(
    ("call", "error", "name"),
    [each[1:] for each in CALLS],
    ids=[each[0] for each in CALLS],
)
async def test_what_a_client_refuses(
    broker: Broker, call: Call, error: type[UsageError], name: str
) -> None:
    async with kafkaio.Client(broker.bootstrap_servers) as client:
        with pytest.raises(UsageError, match=rf"^{name}\b") as caught:
            await call(client)
        assert type(caught.value) is error
        assert client.statistics().state == "running"


@pytest.fixture(scope="module")
def topics() -> dict[str, int]:
    return {"topic": 1}


@pytest.fixture
async def broker(topics: dict[str, int]) -> Any:
    async with Broker(topics=topics) as broker:
        yield broker


def example(name: str) -> KafkaError:
    kind = getattr(errors, name)
    if issubclass(kind, errors.LogTruncated):
        made: KafkaError = kind("t", 1, 5, 3)
    elif issubclass(kind, errors.BrokerError):
        made = kind("refused", code=3, name="X", retriable=True)
    elif issubclass(kind, errors.DeserializationError):
        record = kafkaio.Record("t", 1, 5, 0, b"k", b"v")
        made = kind("wrong", is_key=True, record=record)
    elif issubclass(kind, errors.AcknowledgeFailed):
        tp = kafkaio.TopicPartition("t", 1)
        made = kind("lost", topic_partition=tp, first_offset=5, last_offset=7)
    elif issubclass(kind, errors.SchemaError):
        made = kind("orders-value", "wrong", status=404, code=40401)
    else:
        made = kind("wrong")
    made.add_note("seen by the caller")
    return made


@pytest.mark.parametrize(
    "name", [each for each in errors.__all__ if each != "AdminErrors"]
)
def test_errors_are_pickled_and_copied_whole(name: str) -> None:
    error = example(name)
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert again.args == error.args
        assert vars(again) == vars(error)
        assert again.retriable == error.retriable


@pytest.mark.parametrize("name", errors.__all__)
def test_the_tree_in_the_documentation_is_that_of_the_classes(name: str) -> None:
    (line,) = re.findall(rf"^[ │├└─]*{name} .*$", errors.__doc__ or "", re.MULTILINE)
    builtins = [TypeError, ValueError, TimeoutError, ConnectionError]
    kind = getattr(errors, name)
    for builtin in builtins:
        own = builtin in kind.__bases__
        assert (f"({builtin.__name__})" in line) == own
