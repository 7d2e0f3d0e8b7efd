"""Markers as records of a log: their keys and values, and how to read them; no I/O.

A key is a JSON array, ``[scope, kind, task]``. The *scope* is the beginning of the
transactional ids of an application, ``<prefix>-<app>``. The log is compacted: it keeps
the last record of each key. *Begun* and *rows* have the same key, so that the rows of a
committed transaction replace its *begun*.

`MarkerReader` reads uncommitted records and control batches, and applies the former by
the latter. A reader of committed records would stop at the first open transaction of
any producer, and open transactions are what an attempt looks for.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from typing import Final

from kafkaio._dataclass import dataclass
from kafkaio.spark._marker_state import AppState, Begun, RowsMarker, RowSum

_TASK: Final = "task"
_VERIFIED: Final = "verified"
_DONE: Final = "done"
_KINDS: Final = frozenset({_TASK, _VERIFIED, _DONE})
_ABORT: Final = 0
_COMMIT: Final = 1


def key_of(scope: str, kind: str, task: int = 0) -> bytes:
    """Return the key of a marker."""
    return json.dumps([scope, kind, task]).encode()


def begun_record(scope: str, task: int, version: int, run: str) -> tuple[bytes, bytes]:
    """Return key and value: a transaction of the task has begun."""
    value = {"version": version, "run": run}
    return key_of(scope, _TASK, task), json.dumps(value).encode()


def rows_record(
    scope: str, task: int, version: int, run: str, rows: RowSum
) -> tuple[bytes, bytes]:
    """Return key and value: the task's transaction has these rows."""
    return key_of(scope, _TASK, task), _value(version, run, rows)


def verified_record(
    scope: str, task: int, version: int, run: str
) -> tuple[bytes, bytes]:
    """Return key and value: the run has the same rows for the task as another run."""
    value = {"version": version, "run": run}
    return key_of(scope, _VERIFIED, task), json.dumps(value).encode()


def done_record(
    scope: str, version: int, run: str, rows: RowSum
) -> tuple[bytes, bytes]:
    """Return key and value: the whole version is in."""
    return key_of(scope, _DONE), _value(version, run, rows)


def _value(version: int, run: str, rows: RowSum) -> bytes:
    value = {
        "version": version,
        "run": run,
        "rows": rows.rows,
        "digest": f"{rows.digest:016x}",
        "way": rows.way,
    }
    return json.dumps(value).encode()


@dataclass(frozen=True, slots=True)
class _MarkerEntry:
    """A marker as it was read."""

    scope: str
    kind: str
    task: int
    version: int
    run: str
    rows: RowSum | None
    timestamp: int
    offset: int


@dataclass(frozen=True, slots=True)
class _Removal:
    """A record without a value: the marker of its key was deleted."""

    scope: str
    kind: str
    task: int


class MarkerReader:
    """The state of all applications in a log, up to a position.

    Attributes:
        position: the offset up to which the log was read.
        strangers: number of records that are not markers.
    """

    __slots__ = ("_begun", "_open", "_scopes", "position", "strangers")

    def __init__(self) -> None:
        self.position: int = 0
        self.strangers: int = 0
        self._scopes: dict[str, AppState] = {}
        # The markers in open transactions, by producer.
        self._open: dict[int, list[_MarkerEntry | _Removal]] = {}
        # The offsets at which the last transactions of each task began.
        self._begun: dict[tuple[str, int], deque[int]] = {}

    def record(
        self,
        producer_id: int,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        offset: int = -1,
    ) -> None:
        """Take a record in.

        Args:
            producer_id: the producer, if the record is part of a transaction; else -1.
            key: its key.
            value: its value.
            timestamp: milliseconds since the Unix epoch.
            offset: where it is in the log.
        """
        entry = _parsed(key, value, timestamp, offset)
        if entry is None:
            self.strangers += 1
        elif producer_id < 0:
            # Outside of transactions, as `finish` and `delete` write: counts at once.
            self._apply(entry)
        else:
            self._open.setdefault(producer_id, []).append(entry)
            if isinstance(entry, _MarkerEntry) and entry.kind == _TASK:
                # Several, because another attempt may have begun since; few, because an
                # attempt asks only for its own, which is recent.
                last = self._begun.setdefault(
                    (entry.scope, entry.task), deque(maxlen=8)
                )
                last.append(offset)

    def control(self, producer_id: int, kind: int | None) -> None:
        """Take a control batch in, which ends the transaction of a producer.

        Args:
            producer_id: the producer.
            kind: 0 for an abort, 1 for a commit; None if compaction has removed the
                marker, together with all records of the transaction.
        """
        if kind not in {_ABORT, _COMMIT}:
            return
        for entry in self._open.pop(producer_id, ()):
            if kind == _COMMIT:
                self._apply(entry)

    def is_undecided(self, scope: str, task: int) -> bool:
        """Return whether the rows of a task are in a transaction without an end.

        For an attempt that has just begun, this is an earlier transaction of the task
        that the coordinator has ended, and whose control batch is missing.
        """
        # The attempt's own *begun* has no rows yet, so it does not count.
        return any(entry.rows is not None for entry in self._open_of(scope, task))

    def has_begun_at(self, scope: str, task: int, offset: int) -> bool:
        """Return whether the *begun* of a task at an offset has been read.

        Its transaction may have ended since, by another attempt that fenced it.
        """
        return offset in self._begun.get((scope, task), ())

    def _open_of(self, scope: str, task: int) -> Iterator[_MarkerEntry]:
        for entries in self._open.values():
            for entry in entries:
                if not isinstance(entry, _MarkerEntry) or entry.kind != _TASK:
                    continue
                if (entry.scope, entry.task) == (scope, task):
                    yield entry

    @property
    def scopes(self) -> list[str]:
        """The applications that have markers, sorted."""
        found = {entry.scope for each in self._open.values() for entry in each}
        return sorted(found | self._scopes.keys())

    def state(self, scope: str) -> AppState:
        """Return the state of an application, as far as the log was read."""
        known = self._scopes.get(scope) or AppState.empty()
        opened: dict[int, Begun] = {}
        for producer_id, entries in self._open.items():
            for entry in entries:
                if (
                    isinstance(entry, _MarkerEntry)
                    and entry.scope == scope
                    and entry.kind == _TASK
                ):
                    opened[entry.task] = Begun(
                        entry.version, entry.run, producer_id, entry.timestamp
                    )
        return AppState(
            done=known.done,
            tasks=dict(known.tasks),
            verified=dict(known.verified),
            open=opened,
        )

    def keys(self, scope: str) -> list[bytes]:
        """The keys of all committed markers of an application."""
        known = self._scopes.get(scope)
        if known is None:
            return []
        found = [key_of(scope, _TASK, task) for task in sorted(known.tasks)]
        found += [key_of(scope, _VERIFIED, task) for task in sorted(known.verified)]
        return found if known.done is None else [*found, key_of(scope, _DONE)]

    def _apply(self, entry: _MarkerEntry | _Removal) -> None:
        state = self._scopes.setdefault(entry.scope, AppState.empty())
        if isinstance(entry, _Removal):
            self._remove(state, entry)
        elif entry.kind == _VERIFIED:
            state.verified[entry.task] = entry.version, entry.run
        elif entry.rows is not None:
            marker = RowsMarker(entry.version, entry.run, entry.rows, entry.timestamp)
            if entry.kind == _TASK:
                state.tasks[entry.task] = marker
            # A late request of a driver that is gone does not take a version back.
            elif state.done is None or state.done.version <= marker.version:
                state.done = marker

    def _remove(self, state: AppState, entry: _Removal) -> None:
        if entry.kind == _TASK:
            state.tasks.pop(entry.task, None)
        elif entry.kind == _VERIFIED:
            state.verified.pop(entry.task, None)
        else:
            state.done = None
        if not (state.tasks or state.verified or state.done):
            del self._scopes[entry.scope]


def _parsed(
    key: bytes | None, value: bytes | None, timestamp: int, offset: int
) -> _MarkerEntry | _Removal | None:
    """Read a record; None if it is not a marker."""
    # Anyone with the right may write to the topic: nothing in a record may raise.
    try:
        scope, kind, task = json.loads(key or b"")
        if not (isinstance(scope, str) and kind in _KINDS and _is_whole(task)):
            return None
        if value is None:
            return _Removal(scope, kind, task)
        found = json.loads(value)
        version, run = found["version"], found["run"]
        if not (_is_whole(version) and isinstance(run, str)):
            return None
        rows = _rows_in(found)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if kind == _DONE and rows is None:
        return None
    return _MarkerEntry(scope, kind, task, version, run, rows, timestamp, offset)


def _rows_in(found: dict[str, object]) -> RowSum | None:
    if "rows" not in found:
        return None
    rows, digest, way = found["rows"], found["digest"], found["way"]
    if not (_is_whole(rows) and _is_whole(way) and isinstance(digest, str)):
        raise ValueError
    assert isinstance(rows, int)
    assert isinstance(way, int)
    return RowSum(rows, int(digest, 16) % 2**64, way)


def _is_whole(value: object) -> bool:
    # JSON's true is an int of Python.
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    return 0 <= value < 2**63
