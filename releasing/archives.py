"""Compares what two builds made of the same files."""

from __future__ import annotations

import hashlib
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path


def differences(one: Path, other: Path) -> list[str]:
    """Return what differs between two archives: nothing if the bytes are the same."""
    if one.read_bytes() == other.read_bytes():
        return []
    found = [] if one.name == other.name else [f"{one.name} and {other.name}"]
    members, others = dict(_members(one)), dict(_members(other))
    names = sorted(members.keys() | others.keys())
    found += [name for name in names if members.get(name) != others.get(name)]
    return found or ["the archive around its members"]


def _members(path: Path) -> Iterator[tuple[str, object]]:
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            for info in wheel.infolist():
                read = wheel.read(info)
                yield info.filename, (info.date_time, info.external_attr, read)
        return
    with tarfile.open(path) as archive:
        for member in archive:
            content = archive.extractfile(member)
            facts = member.mtime, member.mode, member.uid, member.uname
            yield member.name, (facts, content.read() if content else b"")


def checksums(paths: Iterable[Path]) -> str:
    """Return the lines of a file SHA256SUMS."""
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted(paths)
    )
