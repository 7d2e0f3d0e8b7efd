"""``kafkaio log``: shows and checks the log files of a real or embedded broker."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from kafkaio._records.batch import Batch
from kafkaio.cli.exits import CommandFailed
from kafkaio.errors import CorruptRecord
from kafkaio.testing.log.epochs import EPOCH_FILE, read_epochs
from kafkaio.testing.log.formats import read_producer_snapshot, read_transaction_index
from kafkaio.testing.log.index import read_offset_index, read_time_index
from kafkaio.testing.log.inspect import (
    base_offset_of,
    find_files,
    read_segment,
    verify,
)
from kafkaio.types import Record

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from kafkaio.cli.parsing import Parser

__all__ = ["add_commands"]


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
    for path in chosen.paths:
        if not path.exists():
            raise CommandFailed(f"{path}: no such file or directory")
    return [file for path in chosen.paths for file in find_files(path)]


def _verify(chosen: argparse.Namespace, out: TextIO) -> int:
    """Print every problem; return 1 if there is one, 2 if there is no file."""
    files = problems = 0
    for path in _files(chosen):
        files += 1
        try:
            for problem in verify(path):
                problems += 1
                out.write(f"{problem}\n")
        except OSError as error:
            raise CommandFailed(f"{path}: {error.strerror or error}") from None
    out.write(f"{files} files, {problems} problems\n")
    if not files:
        return 2
    return 1 if problems else 0


def _dump(chosen: argparse.Namespace, out: TextIO) -> int:
    """Print every file; return 1 if one cannot be read whole, 2 if there is none."""
    code = 0
    files = _files(chosen)
    if not files:
        out.write("there are no files of a log\n")
        return 2
    for path in files:
        out.write(f"{path}\n")
        try:
            lines = _lines(path, with_records=chosen.records)
            out.writelines(f"  {line}\n" for line in lines)
        except (CorruptRecord, ValueError, IndexError) as error:
            out.write(f"  ! {error}\n")
            code = 1
        except OSError as error:
            raise CommandFailed(f"{path}: {error.strerror or error}") from None
    return code


def _lines(path: Path, *, with_records: bool) -> Iterator[str]:
    if path.name == EPOCH_FILE:
        for epoch in read_epochs(path.read_bytes()):
            yield f"epoch={epoch.epoch} start_offset={epoch.start_offset}"
    elif path.suffix == ".log":
        yield from _batch_lines(path, with_records=with_records)
    else:
        reader = _READERS.get(path.suffix)
        if reader is None:
            raise ValueError(f"{path.name} is not a file of a log")
        for row in reader(path):
            yield " ".join(f"{name}={value}" for name, value in row.items())


_READERS: dict[str, Callable[[Path], Iterator[dict[str, int]]]] = {
    ".index": lambda path: (
        entry._asdict()
        for entry in read_offset_index(path.read_bytes(), base_offset_of(path))
    ),
    ".timeindex": lambda path: (
        entry._asdict()
        for entry in read_time_index(path.read_bytes(), base_offset_of(path))
    ),
    ".snapshot": lambda path: (
        entry._asdict() for entry in read_producer_snapshot(path.read_bytes())
    ),
    ".txnindex": lambda path: (
        entry._asdict() for entry in read_transaction_index(path.read_bytes())
    ),
}


def _batch_lines(path: Path, *, with_records: bool) -> Iterator[str]:
    for found in read_segment(path):
        yield f"position={found.position} {_describe(found.batch)}"
        if with_records:
            for record in found.batch.decode("", 0):
                yield "  " + _describe_record(record)


def _describe(batch: Batch) -> str:
    flags = [
        name
        for name, is_set in (
            ("transactional", batch.is_transactional),
            ("control", batch.is_control),
            ("delete_horizon", batch.has_delete_horizon),
        )
        if is_set
    ]
    fields = {
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
    }
    words = [f"{name}={value}" for name, value in fields.items()]
    return " ".join(words + flags)


def _describe_record(record: Record) -> str:
    headers = "".join(f" header:{name}={value!r}" for name, value in record.headers)
    return (
        f"offset={record.offset} timestamp={record.timestamp} "
        f"key={record.key!r} value={record.value!r}{headers}"
    )
