"""``kafkaio log``: shows and checks the log files of a real or embedded broker."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TextIO

from kafkaio._cli.local.parsing import add_formats
from kafkaio._cli.text.document import (
    BOOLEAN,
    BYTES,
    INTEGER,
    TEXT,
    TIMESTAMP,
    Document,
    Shape,
    constant,
    fields,
    many,
    one_of,
    reference,
    rows,
)
from kafkaio._cli.text.exits import CommandFailed, Exit, short
from kafkaio._cli.text.output import Printer, error_row
from kafkaio.errors import CorruptRecord
from kafkaio.testing._log.epochs import EPOCH_FILE, read_epochs
from kafkaio.testing._log.formats import read_producer_snapshot, read_transaction_index
from kafkaio.testing._log.index import read_offset_index, read_time_index
from kafkaio.testing._log.inspect import (
    FoundBatch,
    Problem,
    base_offset_of,
    find_files,
    read_segment,
    verify,
)

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from kafkaio._cli.local.parsing import Parser

Row = Mapping[str, Any]


def add_commands(commands: _SubParsersAction[Parser]) -> None:
    """Add ``log dump`` and ``log verify``."""
    parser = commands.add_parser("log", help="show or check the files of a log")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    dump = actions.add_parser("dump", help="print the content of segments and indexes")
    dump.add_argument("--records", action="store_true", help="print each record too")
    dump.set_defaults(run=_dump, command="kafkaio log dump")
    check = actions.add_parser("verify", help="check segments, indexes, snapshots")
    check.set_defaults(run=_verify, command="kafkaio log verify")
    for action in (dump, check):
        add_formats(action)
        action.add_argument(
            "paths",
            nargs="+",
            type=Path,
            metavar="FILE|DIR",
            help="a file of a log, or a directory of a partition or a broker",
        )


def _files(chosen: argparse.Namespace) -> list[Path]:
    """The files of logs at and below the paths.

    Raises:
        CommandFailed: a path does not exist.
    """
    # All paths are checked first, so a mistake in the last one prints nothing else.
    for path in chosen.paths:
        if not path.exists():
            raise CommandFailed(f"{path}: no such file or directory")
    return [file for path in chosen.paths for file in find_files(path)]


def _verify(chosen: argparse.Namespace, out: TextIO) -> int:
    """Print every problem; return 1 if there are any, 2 without files."""
    files = 0
    problems: list[Problem] = []
    for path in _files(chosen):
        files += 1
        for problem in _problems(path):
            problems.append(problem)
            # At once: a log of terabytes takes long.
            if not chosen.format:
                out.write(f"{problem}\n")
    if chosen.format:
        found = [{"path": str(it.path), "problem": it.text} for it in problems]
        document = _VERIFIED.made([], {"problems": found, "file_count": files})
        Printer(out, chosen.format, is_terminal=False).show(document)
    else:
        out.write(f"{files} files, {len(problems)} problems\n")
    if not files:
        return Exit.USAGE
    return Exit.FAILED if problems else Exit.OK


def _dump(chosen: argparse.Namespace, out: TextIO) -> int:
    """Print every file; return 1 if one cannot be read whole, 2 without files."""
    files = _files(chosen)
    if chosen.format:
        return _dump_json(chosen, out, files)
    code = Exit.OK
    if not files:
        out.write("no files of a log found\n")
        return Exit.USAGE
    for path in files:
        out.write(f"{path}\n")
        for found in _content(path, with_records=chosen.records):
            if isinstance(found, Exception):
                out.write(f"  ! {found}\n")
                code = Exit.FAILED
            else:
                out.writelines(f"  {line}\n" for line in _lines(found))
    return code


def _dump_json(chosen: argparse.Namespace, out: TextIO, files: list[Path]) -> int:
    """Print a document, or a line for each file."""
    dumped: list[Row] = []
    errors: list[dict[str, object]] = []
    output = Printer(out, chosen.format, is_terminal=False)
    for path in files:
        entries: list[Row] = []
        for found in _content(path, with_records=chosen.records):
            if isinstance(found, Exception):
                errors.append({**error_row(found), "item": str(path)})
                sys.stderr.write(f"{chosen.command}: {path}: {short(found)}\n")
            else:
                entries.append(found)
        row = {"path": str(path), "kind": _kind(path), "entries": entries}
        # A line as soon as the file is read; one document needs all of them.
        if chosen.format == "jsonl":
            output.emit(row, ())
        else:
            dumped.append(row)
    if chosen.format == "json":
        output.show(_DUMPED.made(errors, {"files": dumped}))
    if not files:
        return Exit.USAGE
    return Exit.FAILED if errors else Exit.OK


_TIMESTAMP: Final = reference("timestamp")
_BATCH: Final = fields(
    position=INTEGER.doc("In the file, in bytes."),
    base_offset=INTEGER,
    last_offset=INTEGER,
    count=INTEGER,
    size=INTEGER.doc("In bytes."),
    magic=one_of(0, 1, 2),
    codec=one_of("none", "gzip", "snappy", "lz4", "zstd"),
    leader_epoch=INTEGER,
    max_timestamp=_TIMESTAMP,
    timestamp_type=one_of("none", "create", "log_append"),
    producer_id=INTEGER,
    producer_epoch=INTEGER,
    base_sequence=INTEGER,
    is_transactional=BOOLEAN,
    is_control=BOOLEAN,
    has_delete_horizon=BOOLEAN,
    records=many(reference("record")).doc("With --records.").optional,
)
#: By kind of file: the name of an entry's schema, and the entry.
_ENTRIES: Final[Mapping[str, tuple[str, Shape]]] = {
    "segment": ("batch", _BATCH),
    "offset_index": ("offset_entry", fields(offset=INTEGER, position=INTEGER)),
    "time_index": ("time_entry", fields(timestamp=INTEGER, offset=INTEGER)),
    "producer_snapshot": (
        "producer",
        fields(
            producer_id=INTEGER,
            producer_epoch=INTEGER,
            last_sequence=INTEGER,
            last_offset=INTEGER,
            offset_delta=INTEGER,
            timestamp=INTEGER,
            coordinator_epoch=INTEGER,
            first_offset=INTEGER,
        ),
    ),
    "transaction_index": (
        "aborted_transaction",
        fields(
            producer_id=INTEGER,
            first_offset=INTEGER,
            last_offset=INTEGER,
            stable_offset=INTEGER,
        ),
    ),
    "leader_epochs": ("epoch", fields(epoch=INTEGER, start_offset=INTEGER)),
}


def _file_of(kind: str, entries: Shape) -> dict[str, object]:
    """The schema of a file of one kind."""
    return fields(path=TEXT, kind=constant(kind), entries=entries).to_schema()


_DUMPED: Final = Document(files=many(reference("file")))
_VERIFIED: Final = Document(problems=rows(path=TEXT, problem=TEXT), file_count=INTEGER)
#: The declarations of the output, by the names of their schemas.
PRINTS: Final[Mapping[str, Document | Shape]] = {
    "dump": _DUMPED,
    "verify": _VERIFIED,
    "file": Shape(
        {
            "oneOf": [
                *(_file_of(k, many(reference(n))) for k, (n, _) in _ENTRIES.items()),
                _file_of("unknown", Shape({"type": "array", "maxItems": 0})),
            ]
        }
    ).doc("A file; its entries end before what cannot be read, which is in errors."),
    **dict(_ENTRIES.values()),
    "record": fields(
        offset=INTEGER,
        timestamp=_TIMESTAMP,
        key=BYTES,
        value=BYTES,
        headers=rows(name=TEXT, value=BYTES),
    ),
    "timestamp": TIMESTAMP,
}

#: Errors of readers for a damaged or truncated file.
_BROKEN: Final = (CorruptRecord, ValueError, IndexError)


def _content(path: Path, *, with_records: bool) -> Iterator[Row | Exception]:
    """Yield the entries of a file, then the error if it cannot be read whole.

    The error is a value and is not raised: the caller writes to stdout between two
    entries, and an OSError of that must not look like one of the file.

    Raises:
        CommandFailed: the file cannot be read at all.
    """
    try:
        yield from _entries(path, with_records=with_records)
    except _BROKEN as error:
        yield error
    except OSError as error:
        raise _unreadable(path, error) from None


def _problems(path: Path) -> Iterator[Problem]:
    """Yield the problems of a file.

    Raises:
        CommandFailed: the file cannot be read at all.
    """
    try:
        yield from verify(path)
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> CommandFailed:
    return CommandFailed(f"{path}: {error.strerror or error}")


def _kind(path: Path) -> str:
    """Return the kind of a file; ``unknown`` if it is not a file of a log."""
    if path.name == EPOCH_FILE:
        return "leader_epochs"
    return _KINDS.get(path.suffix, "unknown")


def _entries(path: Path, *, with_records: bool) -> Iterator[Row]:
    """Yield the entries of a file in their order."""
    kind = _kind(path)
    if kind == "segment":
        for found in read_segment(path):
            yield _batch_row(found, with_records=with_records)
    elif kind == "unknown":
        raise ValueError(f"{path.name} is not a file of a log")
    else:
        yield from (entry._asdict() for entry in _READERS[kind](path))


#: By suffix; the file of leader epochs has a fixed name instead.
_KINDS: Final[Mapping[str, str]] = {
    ".log": "segment",
    ".index": "offset_index",
    ".timeindex": "time_index",
    ".snapshot": "producer_snapshot",
    ".txnindex": "transaction_index",
}


class _LogEntryPort(Protocol):
    """The entry of an index or a snapshot, a named tuple."""

    def _asdict(self) -> dict[str, int]: ...


#: Offsets in an index are relative to the base offset, which the file's name has.
_READERS: Final[Mapping[str, Callable[[Path], Iterable[_LogEntryPort]]]] = {
    "leader_epochs": lambda path: read_epochs(path.read_bytes()),
    "offset_index": lambda path: read_offset_index(
        path.read_bytes(), base_offset_of(path)
    ),
    "time_index": lambda path: read_time_index(path.read_bytes(), base_offset_of(path)),
    "producer_snapshot": lambda path: read_producer_snapshot(path.read_bytes()),
    "transaction_index": lambda path: read_transaction_index(path.read_bytes()),
}
#: Booleans of a batch with the words that stand for them if they are true.
_FLAGS: Final[Mapping[str, str]] = {
    "is_transactional": "transactional",
    "is_control": "control",
    "has_delete_horizon": "delete_horizon",
}


def _batch_row(found: FoundBatch, *, with_records: bool) -> Row:
    batch = found.batch
    row: dict[str, object] = {
        "position": found.position,
        "base_offset": batch.base_offset,
        "last_offset": batch.last_offset,
        "count": batch.count,
        "size": batch.size_bytes,
        "magic": batch.magic,
        "codec": batch.compression.name.lower(),
        "leader_epoch": batch.leader_epoch,
        "max_timestamp": batch.max_timestamp,
        "timestamp_type": batch.timestamp_type.name.lower(),
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "base_sequence": batch.base_sequence,
        **{name: getattr(batch, name) for name in _FLAGS},
    }
    if with_records:
        row["records"] = [
            {
                "offset": record.offset,
                "timestamp": record.timestamp,
                "key": record.key,
                "value": record.value,
                "headers": [
                    {"name": name, "value": value} for name, value in record.headers
                ],
            }
            # A segment does not have its topic and partition; the rows do not, either.
            for record in batch.decode("", 0)
        ]
    return row


def _lines(row: Row) -> Iterator[str]:
    """Yield the lines of an entry; a batch has one for each record, too."""
    words = [
        f"{name}={value}"
        for name, value in row.items()
        if name not in _FLAGS and name != "records"
    ]
    yield " ".join(words + [text for name, text in _FLAGS.items() if row.get(name)])
    for record in row.get("records", ()):
        headers = "".join(
            f" header:{each['name']}={each['value']!r}" for each in record["headers"]
        )
        yield (
            f"  offset={record['offset']} timestamp={record['timestamp']} "
            f"key={record['key']!r} value={record['value']!r}{headers}"
        )
