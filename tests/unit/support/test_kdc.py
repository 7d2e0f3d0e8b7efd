"""What a Kerberos server needs; tests/integration/test_gssapi.py runs one."""

import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from kafkaio.testing.kafka._guard import Guard
from kafkaio.testing.kafka._launcher import Launcher
from kafkaio.testing.kafka._nodes import JvmNode
from kafkaio.testing.kafka._releases import KafkaNotStarted, find_release
from tests.support.kafka import Kafka
from tests.support.kafka.kdc import Kdc


def never(node: JvmNode, command: Sequence[str | Path]) -> None:
    raise AssertionError((node, command))


def test_missing_programs_are_named_with_their_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("tests.support.kafka.kdc._MORE_PLACES", ())
    with pytest.raises(KafkaNotStarted) as caught:
        Kdc(tmp_path / "kdc", never)
    said = str(caught.value)
    assert "krb5kdc, kdb5_util, kadmin.local, kinit" in said
    assert "apt-get install krb5-kdc krb5-admin-server krb5-user" in said
    assert not (tmp_path / "kdc").exists()


def test_a_cluster_without_it_says_how_to_get_one() -> None:
    with pytest.raises(RuntimeError, match="start it with gssapi=True"):
        _ = Kafka(sasl=True).kdc


def test_a_second_attempt_of_the_brokers_leaves_it_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = Launcher(find_release(), "64m", fast=True)
    home = tmp_path / "cluster"
    node = JvmNode(0, home / "kdc", {})
    node.directory.mkdir(parents=True)
    monkeypatch.setattr(launcher, "_directory", home)
    monkeypatch.setattr(launcher, "_guard", Guard(home))
    try:
        launcher.spawn(node, ["sleep", "600"])
        launcher.wipe()
        assert node.pid is not None
        assert node.directory.exists()
    finally:
        launcher.close()
    assert node.returncode == -signal.SIGKILL
    assert not home.exists()
    with pytest.raises(KafkaNotStarted, match="closed"):
        launcher.spawn(node, ["true"])
