"""Which releases there are, and that their jars are pinned."""

import re

import pytest

from kafkaio.testing.kafka._jars import Jar, pinned
from kafkaio.testing.kafka._options import ClusterOptions
from kafkaio.testing.kafka._releases import (
    DEFAULT_VERSION,
    RELEASES,
    KafkaNotStarted,
    Release,
    find_release,
    is_among,
)

ALL = pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)


def test_a_minor_version_is_its_latest_patch() -> None:
    assert find_release("4.3").version == "4.3.1"
    assert find_release("2.8").version == "2.8.2"
    assert find_release("2.1.1") is find_release("2.1")
    assert DEFAULT_VERSION in RELEASES


def test_an_unknown_version_names_the_known_ones() -> None:
    with pytest.raises(KafkaNotStarted, match=r"1\.0 is not pinned.*4\.3\.1"):
        find_release("1.0")
    with pytest.raises(KafkaNotStarted):
        ClusterOptions(version="0.8")


def test_a_cluster_has_brokers() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        ClusterOptions(brokers=0)


@ALL
def test_every_release_is_pinned(release: Release) -> None:
    broker, tools = pinned(release.version, "broker"), pinned(release.version, "tools")
    names = [jar.artifact for jar in broker]
    assert f"kafka_{release.scala}" in names
    assert "slf4j-simple" in names
    assert ("zookeeper" in names) >= release.zookeeper
    assert bool(release.features) is not release.zookeeper
    assert not {(j.group, j.artifact) for j in broker} & {
        (j.group, j.artifact) for j in tools
    }
    for jar in [*broker, *tools]:
        for digest in [jar.sha256, *jar.classified.values()]:
            assert re.fullmatch("[0-9a-f]{64}", digest)


@ALL
def test_one_log_back_end_only(release: Release) -> None:
    jars = pinned(release.version, "broker") + pinned(release.version, "tools")
    names = {jar.artifact for jar in jars}
    assert not names & {"slf4j-log4j12", "slf4j-reload4j", "logback-classic"}


def test_what_is_not_pinned_is_an_error() -> None:
    with pytest.raises(KafkaNotStarted, match="no jars are pinned"):
        pinned("9.9.9", "broker")


def test_a_platform_of_its_own_gets_the_small_jar() -> None:
    jar = Jar(
        group="g",
        artifact="a",
        version="1",
        sha256="all",
        classified={"linux_amd64": "small"},
    )
    assert jar.variant("linux", "x86_64") == ("linux_amd64", "small")
    assert jar.variant("linux", "aarch64") == ("", "all")
    assert jar.variant("plan9", "mips") == ("", "all")


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (("newest",), [DEFAULT_VERSION]),
        (("4.2+",), ["4.2", "4.3", "4.4"]),
        (("2.8", "newest"), ["2.8", DEFAULT_VERSION]),
        (("3.9", "4.3+"), ["3.9", "4.3", "4.4"]),
        ((), []),
    ],
)
def test_a_test_names_releases(wanted: tuple[str, ...], found: list[str]) -> None:
    among = {version for version in RELEASES if is_among(version, wanted)}
    assert among == set(found)
