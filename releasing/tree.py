"""The files of a tree that a release writes, and what keeps a tree from being one."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

VERSION = Path("kafkaio/_version.py")
CHANGELOG = Path("CHANGELOG.md")
FRAGMENTS = Path("changelog.d")
#: Texts that show the version of an install.
SHOWN = (Path("docs/guide/installation.md"),)
#: What no released text says.
NOT_RELEASED = (
    (Path("README.md"), "no release on PyPI"),
    (Path("README.md"), "alpha, no release"),
    (Path("docs/guide/installation.md"), "no release on PyPI"),
    (Path("docs/index.md"), "no release on PyPI"),
)

_WRITTEN = re.compile(r'(?<=__version__ = ")[^"]+(?=")')
_FINAL = re.compile(r"\d+\.\d+\.\d+")
_UNRELEASED = re.compile(r"\b\d+\.\d+\.\d+\.dev\d+\b")
_MARK = "<!-- towncrier release notes start -->\n"


def version_of(root: Path) -> str:
    """Return the version of a tree, from the one place that it is written in.

    Raises:
        ValueError: it is not there.
    """
    found = _WRITTEN.search((root / VERSION).read_text("utf-8"))
    if found is None:
        raise ValueError(f"{VERSION} has no version")
    return found[0]


def final_version(version: str) -> str:
    """Return the release that a version leads to: 0.1.0 for 0.1.0.dev0.

    Raises:
        ValueError: it is not a version of this project.
    """
    found = _FINAL.match(version)
    rest = version[found.end() :] if found else version
    if found is None or not re.fullmatch(r"(\.dev\d+)?", rest):
        raise ValueError(f"{version!r} is not X.Y.Z or X.Y.Z.devN")
    return found[0]


def copy(root: Path, names: Iterable[str], to: Path) -> None:
    """Copy the files of a checkout, and nothing that was made beside them."""
    shutil.rmtree(to, ignore_errors=True)
    for name in names:
        if (root / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, to / name)


def fragments(root: Path) -> list[Path]:
    """Return the notes of changes since the last release."""
    found = (root / FRAGMENTS).glob("*.md")
    return sorted(path for path in found if path.name != "README.md")


def prepare(root: Path, version: str, date: str, draft: str) -> None:
    """Write version and changelog of a release, and remove the notes that are in it.

    Args:
        root: the tree.
        version: the release.
        date: its day, as YYYY-MM-DD.
        draft: what towncrier makes of the notes.
    """
    before = version_of(root)
    path = root / VERSION
    path.write_text(_WRITTEN.sub(version, path.read_text("utf-8")), "utf-8")
    for name in SHOWN:
        text = (root / name).read_text("utf-8")
        (root / name).write_text(text.replace(before, version), "utf-8")
    path, notes = root / CHANGELOG, fragments(root)
    if notes:
        text = changelog(path.read_text("utf-8"), version, date, draft)
        path.write_text(text, "utf-8")
        for note in notes:
            note.unlink()


def changelog(text: str, version: str, date: str, draft: str) -> str:
    """Return a changelog with the notes of a release.

    They come at the end of the section of that version, if somebody has begun it by
    hand ("## 0.1.0 (unreleased)"), else in a new section on top.

    Raises:
        ValueError: the changelog has no mark for new sections.
    """
    notes = draft.partition("\n### ")
    body = f"### {notes[2].strip()}\n" if notes[1] else ""
    heading = f"## {version} ({date})\n"
    begun = f"## {version} (unreleased)\n"
    before, found, after = text.partition(begun)
    if found:
        section, mark, rest = after.partition("\n## ")
        return f"{before}{heading}{section.rstrip()}\n\n{body}{mark}{rest}"
    before, found, after = text.partition(_MARK)
    if not found:
        raise ValueError(f"{CHANGELOG} has no line {_MARK.strip()!r}")
    return f"{before}{found}\n{heading}\n{body}{after}"


def notes_of(root: Path, version: str) -> str:
    """Return the section of a release in the changelog; empty if there is none."""
    text = (root / CHANGELOG).read_text("utf-8")
    heading = re.search(rf"^## {re.escape(version)} \(.*\)\n", text, re.MULTILINE)
    if heading is None:
        return ""
    return text[heading.end() :].partition("\n## ")[0].strip() + "\n"


def problems(root: Path, tag: str | None) -> list[str]:
    """Return what keeps a tree from being released, each with its remedy.

    Args:
        root: the tree.
        tag: the tag that stands for it, or None if it has none yet.
    """
    version = version_of(root)
    found = []
    if tag is not None and tag != f"v{version}":
        found.append(f"the tag {tag} is not v{version}, the version in {VERSION}")
    if not _FINAL.fullmatch(version):
        found.append(f"{version} is not a release: python -m releasing prepare")
    text = (root / CHANGELOG).read_text("utf-8")
    if not re.search(rf"^## {re.escape(version)} \(\d", text, re.MULTILINE):
        found.append(f"{CHANGELOG} has no section of {version} with a date")
    if left := fragments(root):
        found.append(f"{FRAGMENTS} has {len(left)} notes that are in no release")
    for path in SHOWN:
        text = (root / path).read_text("utf-8")
        found += [f"{path} shows {shown}" for shown in set(_UNRELEASED.findall(text))]
    found += [
        f"{path} says {words!r}"
        for path, words in NOT_RELEASED
        if words in (root / path).read_text("utf-8")
    ]
    return found
