import asyncio
from typing import Any

from kafkaio._runtime.observer import Observer, add_observer, guarded, observes

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


async def test_an_observer_that_raises_harms_nobody() -> None:
    class Mine:
        def loop_blocked(self, seconds: float, stack: str) -> None:
            raise ValueError("oops")

    reports: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: reports.append(context))
    guarded(Mine()).loop_blocked(1.0, "")
    [report] = reports
    assert report["message"] == "observer failed in loop_blocked"
    assert isinstance(report["exception"], ValueError)


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
