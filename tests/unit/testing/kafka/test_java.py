"""Finding a Java, and the class archive."""

import os
from pathlib import Path

import pytest

from kafkaio.testing.kafka._java import (
    ClassArchive,
    Java,
    find_java,
    java_version,
    jvm_flags,
)
from kafkaio.testing.kafka._releases import KafkaNotStarted


def fake_java(directory: Path, version: str) -> Path:
    """A launcher that only knows its version."""
    path = directory / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No Java named anywhere."""
    monkeypatch.delenv("KAFKAIO_JAVA", raising=False)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    return tmp_path


def test_versions_are_read_in_both_spellings(tmp_path: Path) -> None:
    assert java_version(fake_java(tmp_path / "new", "17.0.15")) == 17
    assert java_version(fake_java(tmp_path / "old", "1.8.0_402")) == 8
    assert java_version(fake_java(tmp_path / "odd", "none")) is None
    assert java_version(tmp_path / "absent") is None


def test_java_home_comes_before_the_path(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = fake_java(bare / "home", "21")
    on_path = fake_java(bare / "path", "17")
    monkeypatch.setenv("PATH", f"{on_path.parent}{os.pathsep}/bin{os.pathsep}/usr/bin")
    assert find_java(17) == Java(on_path, 17)
    monkeypatch.setenv("JAVA_HOME", str(bare / "home"))
    assert find_java(17) == Java(home, 21)


def test_a_java_too_old_is_passed_over(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(bare / "home", "11.0.2")
    new = fake_java(bare / "path", "17")
    monkeypatch.setenv("JAVA_HOME", str(bare / "home"))
    monkeypatch.setenv("PATH", f"{new.parent}{os.pathsep}/bin{os.pathsep}/usr/bin")
    assert find_java(17).path == new
    assert find_java(11).version == 11


def test_a_java_named_outright_is_the_only_one(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = fake_java(bare / "named", "11")
    monkeypatch.setenv("KAFKAIO_JAVA", str(named))
    monkeypatch.setenv("JAVA_HOME", str(bare))
    with pytest.raises(KafkaNotStarted, match=r"no Java >= 17.*java \(11\)"):
        find_java(17)


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("KAFKAIO_CACHE", str(tmp_path / "cache"))
    return tmp_path


def archive(directory: Path, version: int, *flags: str) -> ClassArchive:
    path = directory / "java"
    if not path.exists():
        path.touch()
    return ClassArchive(Java(path, version), [Path("a.jar")], flags)


def test_an_archive_is_trained_once_and_then_used(cache: Path) -> None:
    found = archive(cache, 17)
    output = cache / "out"
    assert found.use_flags() == []
    assert found.train_flags(output) == [f"-XX:ArchiveClassesAtExit={output}"]
    found.keep(output)  # nothing written: nothing kept
    assert found.use_flags() == []
    output.write_bytes(b"classes")
    found.keep(output)
    assert found.path.read_bytes() == b"classes"
    assert found.use_flags() == [f"-XX:SharedArchiveFile={found.path}"]
    assert found.train_flags(output) == []
    assert os.listdir(found.path.parent) == [found.path.name]


def test_new_javas_write_their_newer_form(cache: Path) -> None:
    found = archive(cache, 25)
    assert found.train_flags(cache / "out") == [f"-XX:AOTCacheOutput={cache / 'out'}"]
    found.path.parent.mkdir(parents=True)
    found.path.touch()
    assert found.use_flags() == [f"-XX:AOTCache={found.path}"]


def test_old_javas_have_no_archive(cache: Path) -> None:
    assert archive(cache, 11).train_flags(cache / "out") == []


def test_other_flags_are_another_archive(cache: Path) -> None:
    assert archive(cache, 17, "-Xmx1g").path != archive(cache, 17, "-Xmx2g").path


def test_only_a_broker_that_starts_fast_does_without_the_second_compiler() -> None:
    def kinds(flags: list[str]) -> set[str]:
        return {flag for flag in flags if "Tiered" in flag or flag.endswith("GC")}

    fast, lasting = (jvm_flags("1g", fast=fast) for fast in (True, False))
    assert kinds(fast) == {"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"}
    assert kinds(lasting) == {"-XX:+UseG1GC"}
    assert {"-Xmx1g", "-Djava.net.preferIPv4Stack=true"} <= {*fast} & {*lasting}
