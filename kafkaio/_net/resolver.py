"""Names to addresses, in threads of the client's own.

A name is looked up each time: after a connection has dropped, it may stand for other
machines. The addresses of the last look-up are used where the name server is slow or
fails, and not where it answers that the name does not exist.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Iterable
from functools import partial
from itertools import zip_longest
from typing import Final, TypeAlias

from kafkaio._runtime.clock import now
from kafkaio._runtime.own_thread import start_thread

#: An address family, and an address as ``socket.connect`` takes it.
Address: TypeAlias = tuple[socket.AddressFamily, tuple[str | int | bytes, ...]]

#: How many names are looked up at once; each takes a thread.
MOST_THREADS: Final = 8
#: Seconds after which a look-up is slow, and the addresses found last are taken.
SLOW: Final = 1.0
#: Seconds after which a look-up that hangs is not waited for by new callers: it may
#: have begun on a network, or with a name server, that is gone.
STALE: Final = 10.0
#: Names whose addresses are remembered.
_REMEMBERED: Final = 1_000
#: Failures that say nothing about the name: the name server failed, or was silent.
_PASSING: Final = frozenset({socket.EAI_AGAIN, socket.EAI_FAIL})

_Name: TypeAlias = tuple[str, int]


class Resolver:
    """Looks names up. One per client; the number of its threads is bounded.

    Callers that ask for the same name at once share one look-up.
    """

    def __init__(self) -> None:
        # The newest look-up of each name that has not ended.
        self._lookups: dict[_Name, _Lookup] = {}
        # Look-ups that wait for a thread.
        self._queue: deque[_Lookup] = deque()
        self._threads = 0
        # The addresses found last, the names used least recently first.
        self._known: dict[_Name, list[Address]] = {}

    async def resolve(self, host: str, port: int, timeout: float) -> list[Address]:
        """Return the addresses of a host in the order in which to try them.

        Families take turns, beginning with that of the first address (RFC 8305). If
        the call is cancelled, the look-up goes on, and is remembered.

        Args:
            host: a name, or an address, which is returned as it is.
            port: port number.
            timeout: seconds to wait.

        Raises:
            TimeoutError: the name server did not answer in time.
            OSError: the name cannot be resolved.
            ValueError: the host is not a valid name.
        """
        name = (host, port)
        if (literal := _literal(host, port)) is not None:
            return [literal]
        lookup = self._lookup(name)
        known = self._known.get(name)
        patience = timeout if known is None else min(SLOW, timeout)
        lookup.waiters += 1
        try:
            await asyncio.wait([lookup.found], timeout=patience)
        finally:
            lookup.waiters -= 1
            self._drop_unwanted(lookup)
        if not lookup.found.done():
            if known is None:
                raise TimeoutError
            return known
        try:
            return lookup.found.result()
        except socket.gaierror as error:
            if known is None or error.errno not in _PASSING:
                raise
            return known

    def _lookup(self, name: _Name) -> _Lookup:
        lookup = self._lookups.get(name)
        if lookup is None or lookup.is_stale:
            lookup = self._lookups[name] = _Lookup(name)
            self._queue.append(lookup)
            self._start_next()
        return lookup

    def _start_next(self) -> None:
        while self._queue and self._threads < MOST_THREADS:
            lookup = self._queue.popleft()
            lookup.began_at = now()
            work = partial(_look_up, *lookup.name)
            thread = start_thread(work, f"kafkaio resolves {lookup.name[0]}")
            self._threads += 1
            thread.add_done_callback(partial(self._ended, lookup))

    def _ended(self, lookup: _Lookup, thread: asyncio.Future[list[Address]]) -> None:
        self._threads -= 1
        self._end(lookup)
        error = thread.exception()
        if error is None:
            self._remember(lookup.name, thread.result())
            lookup.found.set_result(thread.result())
        else:
            if isinstance(error, socket.gaierror) and error.errno not in _PASSING:
                self._known.pop(lookup.name, None)
            lookup.fail(error)
        self._start_next()

    def _end(self, lookup: _Lookup) -> None:
        if self._lookups.get(lookup.name) is lookup:
            del self._lookups[lookup.name]

    def _remember(self, name: _Name, found: list[Address]) -> None:
        self._known.pop(name, None)
        self._known[name] = found
        if len(self._known) > _REMEMBERED:
            del self._known[next(iter(self._known))]

    def _drop_unwanted(self, lookup: _Lookup) -> None:
        """Remove a look-up that nobody waits for from the queue."""
        if not lookup.waiters and lookup.began_at is None:
            self._queue.remove(lookup)
            self._end(lookup)


class _Lookup:
    """One look-up of a name, and how many wait for it."""

    __slots__ = ("began_at", "found", "name", "waiters")

    def __init__(self, name: _Name) -> None:
        self.name = name
        self.waiters = 0
        self.began_at: float | None = None
        loop = asyncio.get_running_loop()
        self.found: asyncio.Future[list[Address]] = loop.create_future()

    @property
    def is_stale(self) -> bool:
        return self.began_at is not None and now() >= self.began_at + STALE

    def fail(self, error: BaseException) -> None:
        self.found.set_exception(error)
        self.found.exception()  # retrieved, whether or not it is waited for


def _literal(host: str, port: int) -> Address | None:
    """Return the address that a text is; a scope (``%eth0``) has to be looked up."""
    from ipaddress import ip_address  # takes a millisecond to import, so not earlier

    if "%" in host:
        return None
    try:
        version = ip_address(host).version
    except ValueError:
        return None
    return (socket.AF_INET if version == 4 else socket.AF_INET6), (host, port)


def _look_up(host: str, port: int) -> list[Address]:
    """Ask the system; runs in a thread."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses: dict[Address, None] = {
        (family, (str(address[0]), *address[1:])): None
        for family, _, _, _, address in found
    }
    if not addresses:
        raise socket.gaierror(socket.EAI_NONAME, "the name has no addresses")
    return interleaved(addresses)


def interleaved(addresses: Iterable[Address]) -> list[Address]:
    """Let the families take turns, beginning with that of the first address."""
    families: dict[socket.AddressFamily, list[Address]] = {}
    for address in addresses:
        families.setdefault(address[0], []).append(address)
    turns = zip_longest(*families.values())
    return [address for turn in turns for address in turn if address is not None]
