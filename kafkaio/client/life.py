"""The life of a client: where it is, whose it is, and why it ended."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto

from kafkaio._runtime.unclosed import Home
from kafkaio.errors import ClosedError, InternalError, KafkaError

__all__ = ["CrashListener", "Life", "State"]

#: Called with what crashed a background task.
CrashListener = Callable[[BaseException], None]


class State(Enum):
    """Where a client is in its life; nothing leads back."""

    NEW = auto()
    STARTING = auto()
    RUNNING = auto()
    CRASHED = auto()
    CLOSED = auto()


class Life:
    """Says whether a client may be used, here and now, and why not.

    Args:
        name: the client's, for messages.

    Attributes:
        state: where the client is in its life.
        home: where it was started; None before.
    """

    def __init__(self, name: str) -> None:
        self.state = State.NEW
        self._is_closed = False
        self._name = name
        self._crash: BaseException | None = None
        self._listeners: list[CrashListener] = []
        self.home: Home | None = None

    def begin(self) -> None:
        """The client starts: it belongs to this event loop and process from now on.

        Raises:
            ClosedError: it was started before.
        """
        if self.state is not State.NEW:
            raise ClosedError(
                f"the client {self._name!r} is {self.state.name.lower()}: "
                "it cannot be started again"
            )
        self.state = State.STARTING
        self.home = Home("the client")

    def close(self) -> None:
        """The client is closed; that it crashed before is not forgotten.

        Raises:
            ClosedError: it belongs to another event loop or process.
        """
        if self.home is not None:
            self.home.check()
        self.abandon()

    def abandon(self) -> None:
        """As ``close``, for an owner that is gone: asks nothing."""
        self._is_closed = True
        if self.state is not State.CRASHED:
            self.state = State.CLOSED

    @property
    def is_open(self) -> bool:
        """Whether the client was started and not closed."""
        return self.state is not State.NEW and not self._is_closed

    @property
    def left_open(self) -> str | None:
        """What is open, in words; None where it is not, or not in this process."""
        home = self.home
        if home is None or not self.is_open:
            return None
        if home.is_elsewhere:
            return None
        return f"the client {self._name!r}"

    def crashed(self, cause: BaseException) -> None:
        """A background task crashed: the client cannot be used any more."""
        self._crash = cause
        self.state = State.CRASHED

    def tell_crash(self, cause: BaseException) -> None:
        """Call every crash listener."""
        for listener in tuple(self._listeners):
            listener(cause)

    def listen(self, listener: CrashListener) -> Callable[[], None]:
        """Call ``listener`` when a task crashed; the result takes it back."""
        self._listeners.append(listener)

        def remove() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return remove

    def check(self) -> None:
        """Raise unless the client may be used from here.

        Raises:
            ClosedError: not started, closed, or of another event loop or process.
            InternalError: a background task crashed.
        """
        if self.state is State.NEW:
            raise ClosedError("the client is not started: use `async with` or start()")
        if self.home is not None:
            self.home.check()
        if self.state in {State.CRASHED, State.CLOSED}:
            raise self.why_ended()

    def why_ended(self) -> KafkaError:
        """Why the client cannot be used any more."""
        if self._crash is None:
            return ClosedError(f"the client {self._name!r} is closed")
        if isinstance(self._crash, ClosedError):
            return ClosedError(str(self._crash))
        error = InternalError(
            f"a background task of the client {self._name!r} crashed: "
            f"{type(self._crash).__name__}: {self._crash}"
        )
        error.__cause__ = self._crash
        return error
