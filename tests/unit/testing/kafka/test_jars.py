"""Fetching: through jgo, into our cache, checked on the way."""

import hashlib
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from kafkaio.testing.kafka import _jars as jars
from kafkaio.testing.kafka._jars import Jar, cache_directory, fetch_jars
from kafkaio.testing.kafka._releases import KafkaNotStarted

CONTENT = b"a jar"
JAR = Jar(
    group="g", artifact="a", version="1", sha256=hashlib.sha256(CONTENT).hexdigest()
)


@dataclass
class Repository:
    """A stand-in for jgo's context, project, component and artifact at once."""

    file: Path | None
    asked: list[str] = field(default_factory=list)

    def project(self, group: str, artifact: str) -> "Repository":
        self.asked.append(f"{group}:{artifact}")
        return self

    def at_version(self, version: str) -> "Repository":
        return self

    def artifact(self, classifier: str = "") -> "Repository":
        return self

    def resolve(self) -> Path:
        if self.file is None:
            raise RuntimeError("404")
        return self.file


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    file = tmp_path / "downloaded.jar"
    file.write_bytes(CONTENT)
    found = Repository(file)
    monkeypatch.setattr(jars, "maven_context", lambda: found)
    monkeypatch.setenv("KAFKAIO_CACHE", str(tmp_path / "cache"))
    return found


def test_a_jar_is_fetched_once(repository: Repository) -> None:
    (first,) = fetch_jars([JAR])
    (second,) = fetch_jars([JAR])
    assert first == second == cache_directory() / "jars" / "a-1.jar"
    assert first.read_bytes() == CONTENT
    assert repository.asked == ["g:a"]


def test_a_damaged_copy_is_fetched_again(repository: Repository) -> None:
    (path,) = fetch_jars([JAR])
    path.write_bytes(b"damaged")
    fetch_jars([JAR])
    assert path.read_bytes() == CONTENT
    assert len(repository.asked) == 2


def test_a_jar_other_than_the_pinned_one_is_refused(repository: Repository) -> None:
    with pytest.raises(KafkaNotStarted, match="g:a:1 has SHA-256"):
        fetch_jars([replace(JAR, sha256="0" * 64)])
    assert list((cache_directory() / "jars").iterdir()) == []


def test_a_jar_that_cannot_be_had_is_an_error(repository: Repository) -> None:
    repository.file = None
    with pytest.raises(KafkaNotStarted, match="could not fetch g:a:1: 404"):
        fetch_jars([JAR])


def test_fetching_can_be_called_off(repository: Repository) -> None:
    def check() -> None:
        raise KafkaNotStarted("closed")

    with pytest.raises(KafkaNotStarted, match="closed"):
        fetch_jars([JAR], check)
    assert repository.asked == []


def test_the_cache_is_where_the_user_wants_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("KAFKAIO_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "kafkaio"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_directory() == Path.home() / ".cache" / "kafkaio"
    monkeypatch.setenv("KAFKAIO_CACHE", str(tmp_path / "own"))
    assert cache_directory() == tmp_path / "own"


@pytest.mark.parametrize("missing", ["jgo.config", "jgo.maven"])
def test_without_jgo_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(KafkaNotStarted, match=r"install kafkaio\[kafka\]"):
        jars.maven_context()
