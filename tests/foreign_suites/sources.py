"""Gets the tests of a suite into a folder; none of them is kept in this repository."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

from tests.foreign_suites.suites import Archive, Repository, Suite

__all__ = ["SourceMissing", "unpack"]

_SECONDS: Final = 600


class SourceMissing(Exception):
    """The tests could not be got; says how to give a folder with them."""


def unpack(suite: Suite, given: Path | None, place: Path) -> None:
    """Copy the tests of a suite into an empty folder.

    Only the tests: beside the package's own source they would import that instead of
    what is installed.

    Args:
        suite: the suite.
        given: a checkout or an unpacked archive that is there already; None fetches it.
        place: the folder.

    Raises:
        SourceMissing: they could not be fetched, or the folder does not have them.
    """
    fetched = place.with_name(f"{place.name}-source")
    source = given or _fetched(suite.source, fetched)
    for name in suite.folders:
        found = source / name
        if found.is_dir():
            shutil.copytree(found, place / name, dirs_exist_ok=True)
        elif found.is_file():
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy(found, place / name)
        else:
            raise SourceMissing(f"{source} has no {name}")


def _fetched(source: Archive | Repository, place: Path) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    if isinstance(source, Repository):
        checkout = place / "checkout"
        clone = ("git", "clone", "-q", "--depth", "1", "--branch", source.tag)
        _run(*clone, source.url, str(checkout))
        return checkout
    # `pip download` would build the package to learn what it depends on: --no-deps
    # still asks for its metadata, which both packages can give without their tools.
    _run(
        *(sys.executable, "-m", "pip", "download", "-q", "--no-deps"),
        *("--no-binary", ":all:", "--dest", str(place), source.requirement),
    )
    archives = list(place.glob("*.tar.gz"))
    if len(archives) != 1:
        raise SourceMissing(f"{source.requirement}: {len(archives)} archives")
    with tarfile.open(archives[0]) as archive:
        archive.extractall(place, filter="data")
    (unpacked,) = (path for path in place.iterdir() if path.is_dir())
    return unpacked


def _run(*command: str) -> None:
    try:
        subprocess.run(command, check=True, timeout=_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        raise SourceMissing(
            f"{' '.join(command)}: {error}. Give a folder that has the tests: "
            "--source FOLDER, or the variable KAFKAIO_SUITE_SOURCE"
        ) from error
