"""Tables that are updated until Ctrl+C.

At a terminal rich replaces the table by the next one. In a pipe, and with ``--json`` or
``--jsonl``, each snapshot is printed after the one before: a program reads it line by
line.

While the cluster does not answer, the last table stays, with the time of the failure
below it. The watch goes on when a broker answers again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from kafkaio._cli.shell.session import CommandSession
from kafkaio._cli.text.exits import lines_of
from kafkaio._cli.text.output import Row, Table, drawn
from kafkaio._named_tuple import NamedTuple
from kafkaio.errors import KafkaError, UsageError

#: Seconds after which a snapshot counts as unanswered. The first one has the time of a
#: whole call, because its failure ends the command.
_CHECK_SECONDS: Final = 5.0


class Snapshot(NamedTuple):
    """The state of the cluster at one time.

    Attributes:
        rows: the rows, for JSON.
        tables: the tables, for people.
    """

    rows: Sequence[Row]
    tables: Sequence[Table]


async def watch(
    session: CommandSession,
    observe: Callable[[float], Awaitable[Snapshot]],
    *,
    interval: float,
    rounds: int | None = None,
) -> None:
    """Observe the cluster and show it, again and again.

    Args:
        session: the command.
        observe: asks the cluster, for so many seconds at most.
        interval: seconds between two snapshots.
        rounds: how many snapshots to take; until Ctrl+C if None.

    Raises:
        KafkaError: the first snapshot failed, or the call is wrong.
    """
    screen = _Screen(session)
    with screen:
        done = 0
        while rounds is None or done < rounds:
            if done:
                await asyncio.sleep(interval)
            limit = _CHECK_SECONDS if done else session.connection.timeout
            try:
                screen.show(await observe(limit))
            except UsageError:
                # A wrong call fails each time.
                raise
            except (KafkaError, ExceptionGroup) as error:
                if not done:
                    raise
                screen.complain(next(lines_of(error, session.given.names), "no answer"))
            done += 1


class _Screen:
    """Where snapshots are shown."""

    def __init__(self, session: CommandSession) -> None:
        self._session = session
        self._live = None
        # The last tables stay on the screen while the cluster does not answer.
        self._last: Sequence[Table] = ()
        # When the cluster stopped to answer; None while it answers.
        self._since: datetime | None = None
        if session.out.is_terminal and session.out.is_table:
            from rich.console import Console
            from rich.live import Live

            # Without a thread of its own that refreshes: the table changes when it is
            # drawn, and at no other time.
            self._live = Live(
                console=Console(file=session.out.out, highlight=False),
                auto_refresh=False,
            )

    def __enter__(self) -> None:
        if self._live is not None:
            self._live.start()

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, seen: Snapshot) -> None:
        self._since = None
        self._last = seen.tables
        out = self._session.out
        if self._live is not None:
            self._draw("")
            return
        if out.is_table:
            out.show({}, *seen.tables)
        else:
            now = datetime.now(UTC)
            for row in seen.rows:
                out.emit({"time": now, **row}, ())
        out.out.flush()

    def complain(self, text: str) -> None:
        self._since = self._since or datetime.now(UTC)
        line = f"no answer since {self._since:%H:%M:%S} UTC: {text}"
        if self._live is None:
            self._session.note(line)
        else:
            self._draw(line)

    def _draw(self, line: str) -> None:
        from rich.console import Group
        from rich.text import Text

        assert self._live is not None
        shown = datetime.now(UTC)
        foot = Text(line, "red") if line else Text(f"{shown:%H:%M:%S} UTC", "dim")
        tables = [drawn(each) for each in self._last]
        self._live.update(Group(*tables, foot), refresh=True)
