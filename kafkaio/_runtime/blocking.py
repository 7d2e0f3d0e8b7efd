"""An asynchronous iterator for callers that have no event loop: each step blocks them.

The iterator runs on an event loop in a thread of its own. So a step works wherever it
is called: in a program without a loop, beside a loop that runs (in a notebook), and in
the threads of a library that pulls.

Invariants:

- Nothing is read ahead here: the thread makes a step when a caller asks for one.
- A caller that waits gets an answer, also if the thread ends first.
- The thread ends with the iterator: after the last item, after an exception, also
  KeyboardInterrupt, with `BlockingIterator.close`, when the iterator is collected, and
  when the interpreter exits. So the thread must not refer to the iterator.
- A step after an exception raises again. An end in its place would look like the end of
  the data.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import suppress
from typing import Protocol, Self, TypeVar
from weakref import WeakSet

from kafkaio._generic import Generic
from kafkaio._runtime.scopes import CancelScope
from kafkaio.errors import ClosedError, InternalError

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

#: Seconds that a caller waits for the source to close.
_CLOSING = 5.0
#: Seconds after which a caller that waits can be interrupted.
_INTERRUPTIBLE = 0.5


class BlockingSourcePort(Protocol[T_co]):
    """The source of items, which runs in the thread."""

    async def start(self) -> None:
        """Open what is needed; called once, before the first step."""
        ...

    async def __anext__(self) -> T_co:
        """Return the next item."""
        ...

    async def aclose(self) -> None:
        """Close everything, in bounded time; also after `start` has failed."""
        ...


class BlockingIterator(Iterator[T]):
    """Iterates over a `BlockingSourcePort` from any thread, one step at a time.

    The constructor returns when the source has started.

    Args:
        source: the items; from now on it belongs to the thread.
        name: of the thread, and for messages.

    Raises:
        ClosedError: no thread can be started.
        Exception: the source raised it when it started; the thread has ended.
    """

    def __init__(self, source: BlockingSourcePort[T], name: str) -> None:
        self._name = name
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._reason: str | None = None
        self._is_over = False
        self._thread = _Thread(source, name)
        # It may run in any thread, even that of the source, so it does not wait.
        self._finalizer = weakref.finalize(self, self._thread.stop)
        self._finalizer.atexit = False  # `_end_all` does that, and waits
        try:
            self._thread.start()
        except BaseException:
            self._end()
            raise

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        """Return the next item.

        If the caller is interrupted (Ctrl+C), the step is cancelled.

        Raises:
            StopIteration: no item is left, or the iterator was closed.
            ClosedError: an earlier step has failed, or this is another process.
            Exception: the step raised it.
        """
        if os.getpid() != self._pid:  # before the lock: after a fork nobody releases it
            raise ClosedError(
                f"{self._name} was started in another process: begin anew after fork"
            )
        with self._lock:
            if self._reason is not None:
                raise ClosedError(f"{self._name} has failed before: {self._reason}")
            if self._is_over:
                raise StopIteration
            try:
                return self._thread.step()
            except StopAsyncIteration:
                self._end()
            except BaseException as error:
                self._reason = f"{type(error).__name__}: {error}"
                self._end()
                raise
        raise StopIteration

    def close(self) -> None:
        """End the thread, and wait five seconds for it at most. May be called again.

        A step that another thread waits for raises ClosedError.
        """
        self._end()

    def _end(self) -> None:
        self._is_over = True
        self._thread.stop()
        self._thread.join()


class _Thread(Generic[T]):
    """Makes the steps."""

    def __init__(self, source: BlockingSourcePort[T], name: str) -> None:
        self._source = source
        self._name = name
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._scope: CancelScope | None = None
        self._is_stopped = False
        # The result for the caller, None for the start. One call at a time.
        self._answer: Future[T | None] = Future()
        self._asked = asyncio.Event()

    # ---- called by the iterator, in any thread -------------------------------------

    def start(self) -> None:
        """Start the thread, and wait until the source has started."""
        try:
            self._thread.start()
        except RuntimeError as error:  # too many, or the interpreter ends
            raise ClosedError(f"{self._name}: {error}") from error
        _threads.add(self)  # type: ignore[arg-type]  # of whatever type
        _end_at_exit()
        _result(self._answer)

    def step(self) -> T:
        """Have the source make a step, and wait for it."""
        answer: Future[T | None] = Future()
        self._answer = answer
        if self._loop is None or self._is_stopped:
            raise self._gone()
        try:
            self._loop.call_soon_threadsafe(self._asked.set)
        except RuntimeError:  # the loop is closed
            raise self._gone() from None
        try:
            # The thread answers before it ends, so this waits for one step at most.
            return _result(answer)  # type: ignore[return-value]  # None is the start's
        finally:
            # So that neither the item nor the frames of an error stay in memory.
            self._answer = Future()
            del answer

    def stop(self) -> None:
        """Make the thread end soon; does not wait. May be called again."""
        self._is_stopped = True
        if self._loop is not None and self._pid == os.getpid():
            with suppress(RuntimeError):  # it is closed
                self._loop.call_soon_threadsafe(self._cancel)

    def join(self) -> None:
        """Wait for the end of the thread, if it was started and this is not it."""
        is_here = threading.get_ident() == self._thread.ident
        if self._thread.ident is not None and not is_here and self._pid == os.getpid():
            self._thread.join(_CLOSING)

    def _gone(self) -> ClosedError:
        return ClosedError(f"{self._name} is closed")

    # ---- in the thread -------------------------------------------------------------

    def _main(self) -> None:
        try:
            with asyncio.Runner() as runner:
                runner.run(self._live())
        except BaseException as error:  # noqa: BLE001  (raised by the caller)
            failure = InternalError(f"the thread of {self._name} crashed: {error!r}")
            failure.__cause__ = error
            self._fail(failure)
        finally:
            # The loop is closed: later calls find it closed and raise.
            self._fail(self._gone())

    async def _live(self) -> None:
        self._scope = CancelScope()
        self._loop = asyncio.get_running_loop()
        if self._is_stopped:  # `stop` came before there was a loop to cancel in
            self._scope.cancel()
        try:
            with self._scope:
                await self._serve()
        finally:
            await self._source.aclose()

    async def _serve(self) -> None:
        source = self._source
        try:
            await source.start()
            self._succeed(None)
            while True:
                await self._asked.wait()
                self._asked.clear()
                self._succeed(await source.__anext__())
        except Exception as error:  # noqa: BLE001  (raised where the caller waits)
            self._fail(error)

    def _succeed(self, item: T | None) -> None:
        with suppress(InvalidStateError):
            self._answer.set_result(item)

    def _fail(self, error: Exception) -> None:
        with suppress(InvalidStateError):  # it was answered
            self._answer.set_exception(error)

    def _cancel(self) -> None:
        if self._scope is not None:
            self._scope.cancel()


def _result(answer: Future[T]) -> T:
    # On Windows, Ctrl+C does not interrupt a wait before its limit.
    while not answer.done():
        wait((answer,), _INTERRUPTIBLE)
    return answer.result()


#: The threads that run, in this process and in the one that it was forked from.
_threads: WeakSet[_Thread[object]] = WeakSet()


def _end_all() -> None:
    """End the threads while the interpreter can still run them."""
    running = [*_threads]
    for thread in running:
        thread.stop()
    for thread in running:
        thread.join()


_is_registered = False


def _end_at_exit() -> None:
    global _is_registered
    if not _is_registered:
        _is_registered = True
        atexit.register(_end_all)
