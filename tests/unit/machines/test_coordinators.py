import pytest
from hypothesis import given, strategies as st

from kafkaio._machines.coordinators import (
    CoordinatorCache,
    CoordinatorKind,
    Found,
    NotFound,
    find_request,
    read_answer,
)
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafkaio.types import Broker

GROUP, TRANSACTION, SHARE = CoordinatorKind


def test_a_late_report_about_an_old_coordinator_is_ignored() -> None:
    cache = CoordinatorCache()
    cache.learn(GROUP, "g", 1)
    cache.learn(GROUP, "g", 2)
    assert not cache.forget(GROUP, "g", 1)
    assert cache.get(GROUP, "g") == 2
    assert cache.forget(GROUP, "g", 2)
    assert cache.get(GROUP, "g") is None
    assert not cache.forget(GROUP, "g", 2)


def test_kinds_are_apart() -> None:
    cache = CoordinatorCache()
    cache.learn(GROUP, "x", 1)
    assert cache.get(TRANSACTION, "x") is None
    assert len(cache) == 1


@given(
    st.dictionaries(
        st.tuples(st.sampled_from(CoordinatorKind), st.text()), st.integers(0, 5)
    ),
    st.integers(0, 5),
    st.sets(st.integers(0, 5)),
)
def test_a_node_that_is_gone_coordinates_nothing(known, lost, alive) -> None:
    cache = CoordinatorCache()
    for (kind, key), node in known.items():
        cache.learn(kind, key, node)
    cache.forget_node(lost)
    cache.retain(alive)
    for (kind, key), node in known.items():
        kept = node != lost and node in alive
        assert cache.get(kind, key) == (node if kept else None)
    cache.clear()
    assert not len(cache)


def test_requests_by_version() -> None:
    request, asked = find_request(TRANSACTION, ["a", "b"], 4)
    assert request == FindCoordinatorRequest(key_type=1, coordinator_keys=["a", "b"])
    assert asked == ("a", "b")
    request, asked = find_request(GROUP, ["a", "b"], 3)
    assert request == FindCoordinatorRequest(key="a", key_type=0)
    assert asked == ("a",)


@pytest.mark.parametrize(
    ("kind", "version"), [(GROUP, 0), (TRANSACTION, 1), (SHARE, 6)]
)
def test_least_version(kind: CoordinatorKind, version: int) -> None:
    assert kind.least_version == version


def test_answers_before_version_4() -> None:
    good = FindCoordinatorResponse(node_id=2, host="h", port=9)
    assert read_answer(good, ["a"], 3) == [Found("a", Broker(2, "h", 9))]
    bad = FindCoordinatorResponse(error_code=15, node_id=-1, error_message="later")
    refused = NotFound("a", E.COORDINATOR_NOT_AVAILABLE, "later")
    assert read_answer(bad, ["a"], 3) == [refused]


def test_answers_from_version_4() -> None:
    response = FindCoordinatorResponse(
        coordinators=[
            Coordinator(key="c", node_id=-1),
            Coordinator(key="b", error_code=30, error_message=None),
            Coordinator(key="a", node_id=1, host="h", port=9),
        ]
    )
    found = read_answer(response, ["a", "b", "c", "d"], 4)
    assert found[0] == Found("a", Broker(1, "h", 9))
    assert found[1] == NotFound("b", E.GROUP_AUTHORIZATION_FAILED, "")
    assert [f.error for f in found[2:] if isinstance(f, NotFound)] == [15, 15]
    assert [f.key for f in found] == ["a", "b", "c", "d"]
