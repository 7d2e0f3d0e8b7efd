"""The event loop and the clients of a process that Spark runs.

Spark calls readers and writers as plain functions, one after the other, in processes of
its own: workers, which run many tasks, and planning processes. kafkaio's clients are
asynchronous, and belong to one loop. So each thread has one loop, which runs during
`run` only.

Connecting takes as long as a small task, so clients and producers are kept from task to
task, by their configurations. One that has ended is replaced. The client itself reopens
connections that broke while the loop did not run.

Spark forks its workers, so importing this module opens nothing, and a child process
never uses what its parent has opened: all state belongs to one thread of one process. A
process that is killed leaves only sockets behind, which the system closes.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import gc
import os
import threading
from collections.abc import Callable, Coroutine, Hashable
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from kafkaio._client import Client
    from kafkaio._config import ClientConfig, ProducerConfig
    from kafkaio._producer import Producer
    from kafkaio.spark._kept import KeptProducers

T = TypeVar("T")
KeptT = TypeVar("KeptT", bound="Client | Producer")

#: How many clients, and how many producers, are kept. A query has one configuration
#: of each; there are more where queries share a worker.
_MOST: Final = 2
#: Seconds that the end of a process waits for each of them to close.
_CLOSING: Final = 2.0
#: Set this variable to 0 to leave the garbage collector of workers as it is.
_FREEZE_VARIABLE: Final = "KAFKAIO_SPARK_FREEZE"


class _Shelf:
    """Objects of one kind that are kept for the next task, by their configurations.

    The least recently used is closed when there are too many.
    """

    def __init__(self) -> None:
        self._kept: dict[Hashable, Client | Producer] = {}

    async def take(self, config: Hashable, make: Callable[[], KeptT]) -> KeptT:
        """Return the object of a configuration; make and start it if there is none."""
        # Popped, and put back last: the order of the dict is that of use. If the start
        # fails or is cancelled, nothing half started is kept.
        found = self._kept.pop(config, None)
        if found is not None and found.statistics().state != "running":
            await found.close(_CLOSING)
            found = None
        if found is None:
            found = make()
            await found.start()
        self._kept[config] = found
        while len(self._kept) > _MOST:
            oldest = next(iter(self._kept))
            await self._kept.pop(oldest).close(_CLOSING)
        return found  # type: ignore[return-value]  # each key is of one class

    async def close(self) -> None:
        """Close all that is kept."""
        while self._kept:
            _, kept = self._kept.popitem()
            # The process ends: no caller is left to get the error.
            with contextlib.suppress(Exception):
                await kept.close(_CLOSING)


class _Home:
    """The loop, the clients and the producers of one thread of one process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.clients = _Shelf()
        self.producers = _Shelf()
        # Made when first needed: most workers have no transactions.
        self.transactional: KeptProducers | None = None

    def end(self) -> None:
        """Close the kept objects and the loop; do nothing in a forked process."""
        # A child inherits the `atexit` handlers and the sockets of its parent: closing
        # a connection here would end the parent's.
        loop = self.loop
        if self.pid != os.getpid() or loop.is_closed() or loop.is_running():
            return
        if self.transactional is not None:
            with contextlib.suppress(Exception):
                loop.run_until_complete(self.transactional.close())
        loop.run_until_complete(self.clients.close())
        loop.run_until_complete(self.producers.close())
        loop.close()


_local = threading.local()


def _home() -> _Home:
    found: _Home | None = getattr(_local, "home", None)
    if found is None or found.pid != os.getpid() or found.loop.is_closed():
        found = _local.home = _Home()
        # A loop may be run in its own thread only, and `atexit` runs in the main one.
        if threading.current_thread() is threading.main_thread():
            atexit.register(found.end)
    return found


#: The process whose collector was frozen.
_frozen_pid = 0


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on this thread's loop, and return its result.

    Where the thread is running a loop of its own already, as in a notebook, the
    coroutine runs in another thread meanwhile, and nothing is kept afterwards.

    Raises:
        Exception: the error of the coroutine.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _run(coroutine)
    return _run_in_thread(coroutine)


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    return _home().loop.run_until_complete(coroutine)


def _run_in_thread(coroutine: Coroutine[Any, Any, T]) -> T:
    from concurrent.futures import ThreadPoolExecutor

    def work() -> T:
        try:
            return _run(coroutine)
        finally:
            _home().end()

    with ThreadPoolExecutor(1, thread_name_prefix="kafkaio.spark") as thread:
        return thread.submit(work).result()


async def client(config: ClientConfig) -> Client:
    """Return a client that has started; it stays open for the next task.

    Nobody but this module closes it.

    Raises:
        KafkaError: it could not start, as `Client.start` says.
    """
    from kafkaio._client import Client

    return await _home().clients.take(config, lambda: Client.from_config(config))


async def producer(config: ProducerConfig) -> Producer:
    """Return a producer that has started; it stays open for the next task.

    Not for transactional producers, which `transactional` keeps. Nobody but this module
    closes it.

    Raises:
        KafkaError: it could not start, as `Producer.start` says.
    """
    from kafkaio._producer import Producer

    return await _home().producers.take(config, lambda: Producer.from_config(config))


def transactional() -> KeptProducers:
    """Return the producers with transactional ids that this thread keeps."""
    home = _home()
    if home.transactional is None:
        from kafkaio.spark._kept import KeptProducers

        home.transactional = KeptProducers()
    return home.transactional


def freeze() -> None:
    """Exclude the imported modules from garbage collection, once in a process.

    Spark's worker collects all garbage after every task, and most of the objects that
    are traversed belong to modules, which stay. Without them a task costs half the
    processor time. A planning process lives for one call, and calls this before it
    loads kafkaio: loading triggers a collection, which would traverse all of pyspark
    and pyarrow, and cost as much as loading kafkaio.

    Only for processes of Spark, and not for those of users. The environment variable
    ``KAFKAIO_SPARK_FREEZE=0`` turns it off.
    """
    # By process: a forked worker imports more after the fork.
    global _frozen_pid
    if _frozen_pid == os.getpid() or os.environ.get(_FREEZE_VARIABLE) == "0":
        return
    _frozen_pid = os.getpid()
    gc.freeze()
