"""What a release writes, and what it is held up by."""

from __future__ import annotations

import gzip
import tarfile
import zipfile
from pathlib import Path

import pytest

from releasing import archives, tree
from releasing.first_program import first_program

ROOT = Path(__file__).parents[3]
DRAFT = "## 0.2.0 (2026-01-31)\n\n### Added\n\n- A thing.\n"
CHANGELOG = """# Changelog

<!-- towncrier release notes start -->

## 0.1.0 (2026-01-01)

The first release.
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A small tree, of which nothing was released since 0.1.0."""
    files = {
        "kafkaio/_version.py": '__version__ = "0.2.0.dev0"\n',
        "CHANGELOG.md": CHANGELOG,
        "README.md": "Install it.\n",
        "docs/guide/installation.md": "It prints 0.2.0.dev0.\n",
        "docs/index.md": "kafkaio is a client of Apache Kafka.\n",
        "changelog.d/README.md": "How to write notes.\n",
        "changelog.d/+thing.added.md": "A thing.\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("version", "final"), [("0.1.0.dev0", "0.1.0"), ("1.12.3", "1.12.3")]
)
def test_a_version_leads_to_a_release(version: str, final: str) -> None:
    assert tree.final_version(version) == final


@pytest.mark.parametrize("version", ["", "1.2", "1.2.3rc1", "1.2.3.dev", "v1.2.3"])
def test_another_version_is_refused(version: str) -> None:
    with pytest.raises(ValueError, match="is not X"):
        tree.final_version(version)


def test_a_tree_before_its_release_says_what_is_missing(place: Path) -> None:
    assert tree.problems(place, "v0.2.0") == [
        "the tag v0.2.0 is not v0.2.0.dev0, the version in kafkaio/_version.py",
        "0.2.0.dev0 is not a release: python -m releasing prepare",
        "CHANGELOG.md has no section of 0.2.0.dev0 with a date",
        "changelog.d has 1 notes that are in no release",
        "docs/guide/installation.md shows 0.2.0.dev0",
    ]


def test_a_tree_that_is_prepared_can_be_released(place: Path) -> None:
    tree.prepare(place, "0.2.0", "2026-02-01", DRAFT)
    assert tree.version_of(place) == "0.2.0"
    assert tree.problems(place, "v0.2.0") == []
    assert tree.problems(place, "v0.2.1") == [
        "the tag v0.2.1 is not v0.2.0, the version in kafkaio/_version.py"
    ]
    assert tree.notes_of(place, "0.2.0") == "### Added\n\n- A thing.\n"
    assert tree.notes_of(place, "0.1.0") == "The first release.\n"
    assert tree.notes_of(place, "0.3.0") == ""
    # To prepare it again changes nothing.
    before = (place / "CHANGELOG.md").read_text()
    tree.prepare(place, "0.2.0", "2026-02-02", "")
    assert (place / "CHANGELOG.md").read_text() == before


def test_what_no_release_says_is_named(place: Path) -> None:
    tree.prepare(place, "0.2.0", "2026-02-01", DRAFT)
    (place / "README.md").write_text("There is no release on PyPI yet.")
    assert tree.problems(place, None) == ["README.md says 'no release on PyPI'"]


def test_notes_join_a_section_that_was_begun_by_hand() -> None:
    begun = CHANGELOG.replace("(2026-01-01)", "(unreleased)") + "\n## 0.0.1 (2025)\n"
    made = tree.changelog(begun, "0.1.0", "2026-02-01", DRAFT)
    assert made.partition("start -->\n\n")[2] == (
        "## 0.1.0 (2026-02-01)\n\nThe first release.\n\n### Added\n\n- A thing.\n"
        "\n## 0.0.1 (2025)\n"
    )


def test_a_changelog_without_a_place_for_notes_is_refused() -> None:
    with pytest.raises(ValueError, match="towncrier"):
        tree.changelog("# Changelog\n", "0.1.0", "2026-02-01", DRAFT)


def test_the_version_of_this_tree_leads_to_a_release() -> None:
    assert tree.final_version(tree.version_of(ROOT))
    for path, _ in tree.NOT_RELEASED:
        assert (ROOT / path).exists()


def test_the_first_program_of_the_readme_is_found() -> None:
    program = first_program((ROOT / "README.md").read_text("utf-8"))
    compile(program, "README.md", "exec")


def test_a_copy_has_what_it_was_told_to(place: Path, tmp_path: Path) -> None:
    to = tmp_path / "copy"
    names = ["README.md", "docs/guide/installation.md", "gone.md"]
    tree.copy(place, names, to)
    there = sorted(path.name for path in to.rglob("*") if path.is_file())
    assert there == ["README.md", "installation.md"]


def wheel(path: Path, **files: str) -> Path:
    with zipfile.ZipFile(path, "w") as made:
        for name, text in files.items():
            made.writestr(zipfile.ZipInfo(name), text)
    return path


def archive(path: Path, mtime: int) -> Path:
    member = tarfile.TarInfo("a")
    member.mtime = mtime
    with tarfile.open(path, "w:gz") as made:
        made.addfile(member)
    return path


def test_what_differs_between_two_builds_is_named(tmp_path: Path) -> None:
    one = wheel(tmp_path / "k-1.whl", a="1", b="2")
    (tmp_path / "again").mkdir()
    assert archives.differences(one, wheel(tmp_path / "k-2.whl", a="1", b="2")) == []
    other = wheel(tmp_path / "again" / "k-1.whl", a="1", b="3", c="4")
    assert archives.differences(one, other) == ["b", "c"]
    first = archive(tmp_path / "k.tar.gz", 1)
    assert archives.differences(first, archive(tmp_path / "l.tar.gz", 2)) == [
        "k.tar.gz and l.tar.gz",
        "a",
    ]
    around = tmp_path / "again" / "k.tar.gz"
    around.write_bytes(gzip.compress(gzip.decompress(first.read_bytes()), mtime=7))
    assert archives.differences(first, around) == ["the archive around its members"]


def test_checksums_are_those_of_sha256sum(tmp_path: Path) -> None:
    (tmp_path / "a.whl").write_bytes(b"")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert archives.checksums([tmp_path / "a.whl"]) == f"{empty}  a.whl\n"
