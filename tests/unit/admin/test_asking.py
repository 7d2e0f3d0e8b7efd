"""What operations on several items return and raise."""

import copy
import pickle

import pytest

from kafkaio._client.fanout import Results
from kafkaio.admin._asking import distinct, outcome
from kafkaio.errors import AdminErrors, ArgumentValueError, KafkaError, ProtocolError


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


def test_errors_are_returned_on_demand() -> None:
    error = ProtocolError("no")
    everything = outcome("count", ["c", "a"], results(c=error), return_errors=True)
    assert list(everything.items()) == [("c", error), ("a", 1)]
    assert error.item == "c"


def test_an_item_that_is_there_twice() -> None:
    assert distinct("topics", ["b", "a"]) == ["b", "a"]
    with pytest.raises(ArgumentValueError, match="topics: 'a' is there twice"):
        distinct("topics", ["a", "b", "a"])
