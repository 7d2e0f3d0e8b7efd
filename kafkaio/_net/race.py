"""Several attempts to connect, of which the first that succeeds is taken (RFC 8305)."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from kafkaio._runtime.clock import now
from kafkaio._runtime.group import TaskGroup
from kafkaio._runtime.scopes import CancelScope
from kafkaio._runtime.wakeup import Wakeup

#: Seconds after which the next attempt begins beside those that have no answer yet
#: (RFC 8305, section 5).
STAGGER: Final = 0.25

#: Returns a connected socket.
Attempt: TypeAlias = Callable[[], Awaitable[socket.socket]]


class Race:
    """Begins an attempt when the one before has failed, or has taken long.

    Args:
        attempts: in the order in which to begin them; each closes its socket if it
            fails or is cancelled.
        stagger: seconds that an attempt has before the next begins beside it.

    Attributes:
        winner: the attempt that has succeeded, by its place; None for none.
        failures: the attempts that have failed, and why.
    """

    def __init__(self, attempts: Sequence[Attempt], stagger: float = STAGGER) -> None:
        self._attempts = attempts
        self._stagger = stagger
        self.winner: int | None = None
        self.failures: dict[int, Exception] = {}
        self._sock: socket.socket | None = None
        self._scope = CancelScope()
        self._failed = Wakeup()

    async def run(self, until: float) -> socket.socket | None:
        """Run it; all attempts have ended when it returns, or is cancelled.

        Args:
            until: when to give up, by the loop's clock.

        Returns:
            The socket of the winner; None if all failed, or none succeeded in time.
        """
        self._scope.deadline = until
        try:
            with self._scope:
                if len(self._attempts) == 1:
                    await self._try(0)
                else:
                    await self._try_all()
        except BaseException:
            if self._sock is not None:
                self._sock.close()
            raise
        return self._sock

    async def _try_all(self) -> None:
        async with TaskGroup() as group:
            for place in range(len(self._attempts)):
                group.start_soon(self._try, place)
                await self._failed.wait(now() + self._stagger)

    async def _try(self, place: int) -> None:
        try:
            sock = await self._attempts[place]()
        except Exception as error:  # noqa: BLE001 - the caller of the race raises it
            self.failures[place] = error
            self._failed.notify()
            return
        if self._sock is not None:  # two succeeded in the same turn of the loop
            sock.close()
            return
        self.winner, self._sock = place, sock
        self._scope.cancel()
