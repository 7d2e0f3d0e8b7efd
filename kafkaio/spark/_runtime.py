"""The event loop and the clients of a process that Spark runs.

Spark calls readers and writers as plain functions, one after the other, in processes of
its own: workers, which run many tasks, and planning processes. kafkaio's clients are
coroutines, and belong to one loop. So a thread has one loop, which runs while somebody
waits in `run`, and stands still in between.

To connect takes as long as a small task does, so clients and producers are kept from
task to task, by their configurations. A kept one whose life has ended is replaced.
Connections that broke while the loop stood still are opened again by the client itself.

Spark forks its workers, so nothing is opened when this module is imported, and what a
parent process has opened is never used: all state belongs to one thread of one process.
A process that is killed leaves nothing behind but sockets, which the system closes.
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
        """Return what is kept for a configuration; make and start it if need be."""
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
            # The process ends: nobody is left to whom a failure could be told.
            with contextlib.suppress(Exception):
                await kept.close(_CLOSING)


class _Home:
    """What one thread of one process has opened."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.clients = _Shelf()
        self.producers = _Shelf()
        # Made when first needed: most workers have no transactions.
        self.transactional: KeptProducers | None = None

    def end(self) -> None:
        """Close what is kept, and the loop; nothing in a process that was forked."""
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
        Exception: what the coroutine raises.
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
    """Take what is imported by now out of the garbage collector's sight, once.

    Spark's worker collects all garbage after every task. Most of what it looks at are
    modules, which stay: without them a task costs half the processor time. A planning
    process lives for one call, and calls this before it loads kafkaio: loading makes
    objects enough for a collection, which would look at all of pyspark and pyarrow, and
    cost as much as all of kafkaio.

    To be called in processes of Spark only, as those of users are their own. The
    environment variable ``KAFKAIO_SPARK_FREEZE=0`` turns it off.
    """
    global _frozen_pid
    if _frozen_pid == os.getpid() or os.environ.get(_FREEZE_VARIABLE) == "0":
        return
    _frozen_pid = os.getpid()
    gc.freeze()
