"""Prints results: tables, columns, JSON.

At a terminal rich draws a table. In a pipe the same table is a line of names and a line
for each row, with tabs between the columns. ``--json`` prints
one document, whose schema is in ``kafkaio/_cli/schemas``; ``--jsonl`` prints a line of
JSON for each row.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Final, TextIO
from uuid import UUID

from kafkaio._cli.text.exits import short, visible
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from rich.table import Table as RichTable

Row = Mapping[str, object]


@dataclass(frozen=True)
class TableColumn:
    """A column of a table.

    Attributes:
        key: the key of the row.
        title: the head; by default the key in capitals, with spaces.
        style: returns the rich style of a value; used at a terminal only.
    """

    key: str
    title: str = ""
    style: Callable[[object], str] | None = None

    @property
    def head(self) -> str:
        """The head of the column."""
        return self.title or self.key.replace("_", " ").upper()


@dataclass(frozen=True)
class Table:
    """Rows for people.

    Attributes:
        rows: the rows, each a mapping; values as in `plain`.
        columns: the columns to show; a string stands for a column of that key.
        title: a line above the table; empty for none.
    """

    rows: Sequence[Row]
    columns: Sequence[str | TableColumn]
    title: str = ""

    def heads(self) -> list[TableColumn]:
        """Return the columns."""
        return [TableColumn(it) if isinstance(it, str) else it for it in self.columns]


class Printer:
    """Writes results to stdout.

    Args:
        out: the file.
        format: ``json``, ``jsonl``, or empty for tables.
        is_terminal: whether a person reads it.
    """

    def __init__(self, out: TextIO, format: str, *, is_terminal: bool) -> None:  # noqa: A002
        self.out = out
        self.format = format
        self.is_terminal = is_terminal
        self._emitted = False

    @property
    def is_table(self) -> bool:
        """Whether people read what is printed, not programs that want JSON."""
        return not self.format

    def show(
        self, document: Mapping[str, object], *tables: Table, is_row: bool = False
    ) -> None:
        """Print a result: a document for programs, tables for people.

        Args:
            document: for ``--json``. With ``--jsonl`` each row of its first list is a
                line.
            is_row: whether the document itself is the only row, even if it has lists.
            tables: for people; a table without rows prints its heads.
        """
        if self.format == "json":
            self.line(json.dumps(plain(document), indent=2, ensure_ascii=False))
        elif self.format == "jsonl":
            for row in [document] if is_row else _rows_of(document):
                self.line(_compact(row))
        elif self.is_terminal:
            self._draw(tables)
        else:
            for index, table in enumerate(tables):
                self._columns(table, is_first=not index)

    def emit(self, row: Row, columns: Sequence[str | TableColumn]) -> None:
        """Print one row of a stream at once: a line of JSON, or of columns.

        Args:
            row: the row.
            columns: the columns to print without ``--json``; never their heads.
        """
        if self.format:
            self.line(_compact(row))
        else:
            keys = [c.key if isinstance(c, TableColumn) else c for c in columns]
            self.line("\t".join(_cell(row.get(key)) for key in keys))
        # A program reads the row while the command runs; stdout in a pipe is buffered.
        self.out.flush()

    def line(self, text: str) -> None:
        """Print a line unchanged."""
        self.out.write(f"{text}\n")

    def _columns(self, table: Table, *, is_first: bool) -> None:
        # A blank line separates two tables.
        if not is_first:
            self.line("")
        if table.title:
            self.line(visible(table.title))
        heads = table.heads()
        self.line("\t".join(each.head for each in heads))
        for row in table.rows:
            self.line("\t".join(_cell(row.get(each.key)) for each in heads))

    def _draw(self, tables: Sequence[Table]) -> None:
        from rich.console import Console

        console = Console(file=self.out, highlight=False, soft_wrap=False)
        for table in tables:
            console.print(drawn(table))


def _rows_of(document: Mapping[str, object]) -> Sequence[object]:
    """Return the first list of a document; the document itself if it has none."""
    for value in document.values():
        if isinstance(value, Sequence) and not isinstance(value, str | bytes):
            return value
    return [document]


def drawn(table: Table) -> RichTable:
    """Return a table as rich draws it.

    A value wider than its column is folded and not cut: people copy ids from tables.
    """
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    drawing = RichTable(
        box=box.SIMPLE_HEAD, title=visible(table.title) or None, title_justify="left"
    )
    heads = table.heads()
    for each in heads:
        values = [row.get(each.key) for row in table.rows]
        # Numbers are aligned right; a missing number does not change that.
        is_number = all(isinstance(v, int | float | None) for v in values)
        drawing.add_column(
            each.head, justify="right" if is_number else "left", overflow="fold"
        )
    for row in table.rows:
        drawing.add_row(
            *(
                # A Text and not a str: rich would take [name] in a str for markup.
                Text(
                    _drawn_cell(row.get(each.key)),
                    style=each.style(row.get(each.key)) if each.style else "",
                )
                for each in heads
            )
        )
    return drawing


def _drawn_cell(value: object) -> str:
    """Return a value as a terminal shows it: times to the second, in UTC."""
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds").replace("+00:00", "Z")
    return _cell(value)


def _cell(value: object) -> str:
    return visible(cell(value))


def cell(value: object) -> str:
    """Return a value for people: ``-`` for None, commas in lists."""
    made = plain(value)
    if made is None:
        return "-"
    if isinstance(made, bool):
        return "yes" if made else "no"
    if isinstance(made, list):
        return ",".join(cell(each) for each in made) or "-"
    if isinstance(made, dict):
        # Bytes that are not UTF-8: base64 is for programs, escapes are for people.
        if isinstance(value, bytes):
            return repr(value)[2:-1]
        return ",".join(f"{name}={cell(each)}" for name, each in made.items()) or "-"
    if isinstance(made, float):
        return f"{made:.3f}".rstrip("0").rstrip(".")
    return str(made)


def plain(value: object) -> object:
    """Return a value that `json` can write.

    Bytes are text if they are UTF-8, else ``{"base64": ...}``; times are ISO 8601,
    durations seconds; an enumeration is its value; a partition is ``topic-0``; an error
    is an object with its class, its message and, from a broker, its code.
    """
    # An IntEnum is an int, too, and is printed by its value below.
    if value is None or (isinstance(value, bool | int | float) and not _is_enum(value)):
        return value
    for kind, make in _PLAIN:
        if isinstance(value, kind):
            return make(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    return str(value)


def _is_enum(value: object) -> bool:
    return isinstance(value, Enum)


def _of_bytes(value: bytes) -> object:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(value).decode()}


def error_row(
    error: BaseException, names: Mapping[str, str] | None = None
) -> dict[str, object]:
    """Return the entry of an error in ``errors``: class, message, item and code.

    Args:
        error: the error.
        names: as for `short`.
    """
    found: dict[str, object] = {
        "error": type(error).__name__,
        "message": short(error, names or {}),
    }
    item = getattr(error, "item", None)
    if item is not None:
        found["item"] = plain(item)
    name = getattr(error, "name", None)
    if isinstance(name, str):
        found["code"] = name
    return found


def _of_set(values: AbstractSet[object]) -> object:
    # Sets have no order, and output that changes from run to run breaks diffs.
    return sorted((plain(each) for each in values), key=str)


#: The first class that fits decides, so special cases come before general ones: an
#: enumeration before str (some are both), str and bytes before Iterable.
_PLAIN: Final[tuple[tuple[type, Callable[..., object]], ...]] = (
    (Enum, lambda value: plain(value.value)),
    (str, str),
    (bytes, _of_bytes),
    (TopicPartition, lambda value: f"{value.topic}-{value.partition}"),
    (datetime, lambda value: value.isoformat()),
    (timedelta, lambda value: value.total_seconds()),
    (UUID, str),
    (BaseException, error_row),
    (Mapping, lambda value: {cell(k): plain(v) for k, v in value.items()}),
    (AbstractSet, _of_set),
    (Iterable, lambda value: [plain(each) for each in value]),
)


def _compact(row: object) -> str:
    return json.dumps(plain(row), ensure_ascii=False, separators=(",", ":"))
