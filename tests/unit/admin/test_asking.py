"""What operations on several items return and raise."""

import copy
import pickle
from collections.abc import Sequence

import anyio
import pytest

from kafkaio._client.fanout import Results
from kafkaio.admin import settled
from kafkaio.admin._asking import outcome
from kafkaio.admin._checks import distinct
from kafkaio.errors import (
    AdminErrors,
    ArgumentValueError,
    ClosedError,
    KafkaError,
    ProtocolError,
)


def results(**failed: KafkaError) -> Results[str, int]:
    return Results(found={"b": 2, "a": 1}, failed=dict(failed))


def test_results_come_in_the_order_asked() -> None:
    found = outcome("count", ["a", "b"], results())
    assert list(found.items()) == [("a", 1), ("b", 2)]


def test_one_that_failed_raises_its_error_with_the_results_of_the_others() -> None:
    error = ProtocolError("no")
    with pytest.raises(ProtocolError, match="no") as caught:
        outcome("count", ["a", "c", "b"], results(c=error))
    assert caught.value.item == "c"
    assert list(caught.value.results.items()) == [("a", 1), ("b", 2)]


def test_several_that_failed_raise_a_group() -> None:
    shared = ProtocolError("no")
    shared.__cause__ = ValueError("why")
    with pytest.raises(AdminErrors, match="count: 2 of 4 failed") as caught:
        outcome("count", ["d", "a", "c", "b"], results(c=shared, d=shared))
    group = caught.value
    assert dict(group.results) == {"a": 1, "b": 2}
    # The error that they had in common is one of each now.
    assert [each.item for each in group.exceptions] == ["d", "c"]
    assert all(isinstance(each.__cause__, ValueError) for each in group.exceptions)
    part, rest = group.split(lambda each: getattr(each, "item", None) == "c")
    assert isinstance(part, AdminErrors)
    assert isinstance(rest, AdminErrors)
    assert part.results == rest.results == group.results
    for other in (pickle.loads(pickle.dumps(group)), copy.copy(group)):
        assert [str(each) for each in other.exceptions] == ["no", "no"]
        assert [each.item for each in other.exceptions] == ["d", "c"]
        assert other.results == group.results


async def counted(items: Sequence[str], results: Results[str, int]) -> dict[str, int]:
    return outcome("count", items, results)


async def test_none_failed() -> None:
    done = await settled(counted(["a", "b"], results()))
    assert list(done.found.items()) == [("a", 1), ("b", 2)]
    assert done.failed == {}


async def test_the_error_of_one_item() -> None:
    done = await settled(counted(["c", "a"], results(c=ProtocolError("no"))))
    assert done.found == {"a": 1}
    assert [(item, str(error)) for item, error in done.failed.items()] == [("c", "no")]


async def test_the_errors_of_several_items_in_the_order_asked() -> None:
    shared = ProtocolError("no")
    asked = ["d", "b", "c", "a"]
    done = await settled(counted(asked, results(c=shared, d=shared)))
    assert list(done.found.items()) == [("b", 2), ("a", 1)]
    assert list(done.failed) == ["d", "c"]
    assert {item: error.item for item, error in done.failed.items()} == {
        "d": "d",
        "c": "c",
    }


async def test_an_error_of_the_whole_call_is_raised() -> None:
    error = ClosedError("closed")
    # The client keeps such an error, and it has been that of an item before.
    with pytest.raises(ClosedError):
        outcome("count", ["a"], Results[str, int](failed={"a": error}))

    async def failing() -> dict[str, int]:
        raise error

    with pytest.raises(ClosedError, match="closed") as caught:
        await settled(failing())
    assert caught.value is error


async def test_a_cancellation_is_that_of_the_operation() -> None:
    began = anyio.Event()

    async def hanging() -> dict[str, int]:
        began.set()
        await anyio.sleep_forever()
        raise AssertionError

    async with anyio.create_task_group() as group:
        group.start_soon(settled, hanging())
        await began.wait()
        group.cancel_scope.cancel()
    assert group.cancel_scope.cancelled_caught


def test_an_item_that_is_there_twice() -> None:
    assert distinct("topics", ["b", "a"]) == ["b", "a"]
    with pytest.raises(ArgumentValueError, match="topics: 'a' occurs twice"):
        distinct("topics", ["a", "b", "a"])
