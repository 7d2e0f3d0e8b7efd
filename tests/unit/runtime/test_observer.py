import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from kafkaio._runtime.observer import (
    Observer,
    add_default_observer,
    add_observer,
    guarded,
    observes,
    remove_default_observer,
)

METHODS = {name for name in vars(Observer) if not name.startswith("_")}


def passed_on(guard: Observer) -> set[str]:
    """The events that somebody hears."""
    return {name for name in vars(guard) if not name.startswith("_")}


def test_no_observer_hears_nothing() -> None:
    observer = guarded(None)
    assert observer.connection_opened(1, "shared", "h", 9092) is None
    assert vars(observer) == {}


def test_any_object_with_some_methods_can_observe() -> None:
    heard: list[Any] = []

    class Mine:
        def throttled(self, node_id: int, seconds: float, api: str) -> None:
            heard.append((node_id, seconds))

    observer = guarded(Mine())
    observer.throttled(1, seconds=0.5, api="Fetch")
    observer.loop_blocked(1.0, "")
    assert heard == [(1, 0.5)]


def test_only_overridden_methods_are_wrapped() -> None:
    class Mine(Observer):
        def loop_blocked(self, seconds: float, stack: str) -> None: ...

    assert passed_on(guarded(Mine())) == {"loop_blocked"}


def test_an_attribute_that_is_no_method_is_ignored() -> None:
    class Mine:
        throttled = None

    assert guarded(Mine()).throttled(1, 0.5, "Fetch") is None


def test_several_observers_hear_in_their_order() -> None:
    heard: list[str] = []

    class First(Observer):
        def throttled(self, node_id: int, seconds: float, api: str) -> None:
            heard.append("first")

    class Second:
        def throttled(self, node_id: int, seconds: float, api: str) -> None:
            heard.append("second")

    class Third:
        def loop_blocked(self, seconds: float, stack: str) -> None:
            heard.append("third")

    for several in ([First(), Second(), Third()], (First(), Second(), Third())):
        heard.clear()
        guard = guarded(several)
        guard.throttled(1, 0.5, "Fetch")
        guard.loop_blocked(1.0, "")
        assert heard == ["first", "second", "third"]
        assert passed_on(guard) == {"throttled", "loop_blocked"}


async def test_one_that_raises_does_not_silence_the_others() -> None:
    heard: list[float] = []

    class Bad:
        def throttled(self, node_id: int, seconds: float, api: str) -> None:
            raise ValueError("oops")

    class Good:
        def throttled(self, node_id: int, seconds: float, api: str) -> None:
            heard.append(seconds)

    reports: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, c: reports.append(c))
    guarded([Bad(), Good()]).throttled(1, 0.5, "Fetch")
    assert heard == [0.5]
    assert len(reports) == 1


def test_an_observer_may_be_spared_some_events() -> None:
    class Mine:
        def throttled(self, node_id: int, seconds: float, api: str) -> None: ...

        def loop_blocked(self, seconds: float, stack: str) -> None: ...

    guard = guarded(None)
    add_observer(guard, Mine(), {"throttled"})
    assert passed_on(guard) == {"loop_blocked"}


# That of a future that it asks, which was cancelled.
@pytest.mark.parametrize("kind", [ValueError, asyncio.CancelledError])
async def test_an_observer_that_raises_harms_nobody(kind: type[BaseException]) -> None:
    class Mine:
        def loop_blocked(self, seconds: float, stack: str) -> None:
            raise kind("oops")

    reports: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: reports.append(context))
    guarded(Mine()).loop_blocked(1.0, "")
    [report] = reports
    assert report["message"] == "observer failed in loop_blocked"
    assert isinstance(report["exception"], kind)


def test_every_method_does_nothing_by_default() -> None:
    observer = Observer()
    assert "rebalance" in METHODS
    for name in METHODS:
        method = getattr(observer, name)
        arguments = method.__code__.co_argcount - 1
        named = {"is_renewal": True} if method.__code__.co_kwonlyargcount else {}
        assert method(*[None] * arguments, **named) is None


def test_whether_an_event_is_observed() -> None:
    class Mine(Observer):
        def loop_blocked(self, seconds: float, stack: str) -> None: ...

    for observer in (guarded(Mine()), Mine()):
        assert observes(observer, "loop_blocked")
        assert not observes(observer, "throttled")
    guard = guarded(None)
    assert not observes(guard, "loop_blocked")
    add_observer(guard, Mine())
    assert observes(guard, "loop_blocked")


def test_an_observer_can_be_removed() -> None:
    heard: list[str] = []

    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

        def loop_blocked(self, seconds: float, stack: str) -> None:
            heard.append(self.name)

    guard = guarded(Named("first"))
    remove = add_observer(guard, Named("second"))
    add_observer(guard, Named("third"))
    guard.loop_blocked(1.0, "")
    remove()
    guard.loop_blocked(1.0, "")
    assert heard == ["first", "second", "third", "first", "third"]
    alone = guarded(None)
    remove = add_observer(alone, Named("one"))
    assert observes(alone, "loop_blocked")
    remove()
    remove()
    assert not observes(alone, "loop_blocked")
    assert passed_on(alone) == set()


class Counting(Observer):
    """Notes what is throttled and closed, and has a part in headers and handlers."""

    def __init__(self) -> None:
        self.noted: list[object] = []

    def throttled(self, node_id: int, seconds: float, api: str) -> None:
        self.noted.append(node_id)

    def closed(self, kind: str, name: str, source: object) -> None:
        self.noted.append(kind)

    def inject(self, topic: str, headers: Any) -> Any:
        return (*headers, (topic, b""))

    @contextmanager
    def handling(self, what: object, group: str | None) -> Iterator[None]:
        self.noted.append((what, group))
        yield
        self.noted.append("done")


@pytest.fixture
def default() -> Iterator[Counting]:
    observer = Counting()
    add_default_observer(observer)
    yield observer
    remove_default_observer(observer)


def test_a_default_observer_is_called_beside_the_given_one(default: Counting) -> None:
    class Mine:
        noted = 0

        def throttled(self, node_id: int, seconds: float, api: str) -> None:
            self.noted = node_id

    mine = Mine()
    for given in (mine, [mine], None):
        guarded(given).throttled(3, 0.1, "Fetch")
    assert mine.noted == 3
    assert default.noted == [3, 3, 3]


def test_a_default_observer_brings_only_what_it_has(default: Counting) -> None:
    assert passed_on(guarded(None)) == {"throttled", "closed", "inject", "handling"}


def test_a_default_observer_is_added_once(default: Counting) -> None:
    add_default_observer(default)
    guarded(default).throttled(1, 0.1, "Fetch")  # nor beside itself
    guarded(None).throttled(2, 0.1, "Fetch")
    assert default.noted == [1, 2]


def test_one_of_the_same_class_takes_its_place(default: Counting) -> None:
    class Special(Counting):
        """Of the same kind."""

    given = Special()
    guarded([given]).throttled(1, 0.1, "Fetch")
    assert given.noted == [1]
    assert default.noted == []


def test_a_default_observer_that_is_removed_is_only_told_what_closes(
    default: Counting,
) -> None:
    guard = guarded(None)
    kept = guard.throttled
    remove_default_observer(default)
    remove_default_observer(default)
    kept(1, 0.1, "Fetch")
    guard.throttled(1, 0.1, "Fetch")
    assert guard.inject("orders", ()) == ()
    with guard.handling("a record", None):
        pass
    assert default.noted == []
    guard.closed("client", "c", object())  # type: ignore[arg-type]
    assert default.noted == ["client"]
    assert vars(guarded(None)) == {}


def test_handlers_work_within_every_observer_in_their_order() -> None:
    first, second = Counting(), Counting()
    guard = guarded([first, second])
    with guard.handling("a record", "g"):
        assert first.noted == second.noted == [("a record", "g")]
    assert first.noted == second.noted == [("a record", "g"), "done"]


class Suppressing:
    @contextmanager
    def handling(self, what: object, group: str | None) -> Iterator[None]:
        with suppress(BaseException):
            yield


class Oops(Exception):
    pass


@pytest.mark.parametrize("error", [Oops, asyncio.CancelledError])
def test_no_observer_keeps_what_a_handler_raises(error: type[BaseException]) -> None:
    guard = guarded([Suppressing(), Suppressing()])
    with pytest.raises(error), guard.handling("a record", None):
        raise error


@pytest.mark.parametrize("when", ["before", "after"])
async def test_an_observer_that_fails_around_a_handler_harms_nobody(when: str) -> None:
    failures: list[Any] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: failures.append(context))

    class Failing:
        @contextmanager
        def handling(self, what: object, group: str | None) -> Iterator[None]:
            if when == "before":
                raise Oops
            yield
            raise Oops

    other, is_handled = Counting(), False
    with guarded([Failing(), other]).handling("a record", None):
        is_handled = True
    assert is_handled
    assert other.noted == [("a record", None), "done"]
    assert [type(each["exception"]) for each in failures] == [Oops]
