"""Offsets in ZooKeeper, behind a stand-in for kazoo."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from kafkaio import OffsetStoreError, ZooKeeperOffsetStore
from kafkaio.types import GroupMetadata, OffsetAndMetadata, TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
GROUP = GroupMetadata(group_id="g")


class NoNodeError(Exception):
    """As kazoo's."""


class Nodes:
    """The tree that clients see, and how they came and went."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}
        self.sessions: list[dict[str, object]] = []
        self.closed = 0
        self.refuses = False


class Pending:
    def __init__(self, data: bytes | None) -> None:
        self.data = data

    def get(self, timeout: float) -> tuple[bytes, object]:
        assert timeout == 3.0
        if self.data is None:
            raise NoNodeError
        return self.data, None


class Client:
    """What the store uses of kazoo's client."""

    def __init__(self, tree: Nodes, options: dict[str, object]) -> None:
        self.tree = tree
        tree.sessions.append(options)

    def start(self, timeout: float) -> None:
        assert timeout == 3.0
        if self.tree.refuses:
            raise ConnectionError("nobody there")

    def stop(self) -> None:
        self.tree.closed += 1

    def close(self) -> None:
        self.tree.closed += 1

    def get_async(self, path: str) -> Pending:
        return Pending(self.tree.data.get(path))

    def ensure_path(self, path: str) -> None:
        self.tree.data.setdefault(path, b"")

    def set(self, path: str, value: bytes) -> None:
        assert path in self.tree.data
        self.tree.data[path] = value


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Nodes:
    tree = Nodes()
    contents: dict[str, dict[str, object]] = {
        "kazoo": {},
        "kazoo.client": {"KazooClient": lambda **options: Client(tree, options)},
        "kazoo.exceptions": {"NoNodeError": NoNodeError},
    }
    for name, content in contents.items():
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, module)
    return tree


def load(store: ZooKeeperOffsetStore) -> Mapping[TopicPartition, OffsetAndMetadata]:
    # The loop of the tests here jumps over time, and knows nothing of threads.
    return asyncio.run(store.load(GROUP, [A, B]))


def test_the_layout_of_old_consumers(nodes: Nodes) -> None:
    store = ZooKeeperOffsetStore("one:2181/kafka", timeout=3.0)
    assert repr(store) == "ZooKeeperOffsetStore('one:2181/kafka')"
    assert load(store) == {}
    nodes.data["/consumers/g/offsets/t/1"] = b"42"
    assert load(store) == {B: OffsetAndMetadata(42)}
    offsets = {A: OffsetAndMetadata(2**40, "lost", 3), B: OffsetAndMetadata(7)}
    asyncio.run(store.commit(GROUP, offsets))
    assert nodes.data == {
        "/consumers/g/offsets/t/0": b"1099511627776",
        "/consumers/g/offsets/t/1": b"7",
    }
    options = {"hosts": "one:2181/kafka", "timeout": 3.0, "auth_data": None}
    assert nodes.sessions == [options] * 3
    assert nodes.closed == 6


def test_who_asks_and_who_refuses(nodes: Nodes) -> None:
    auth = [("digest", "me:secret")]
    store = ZooKeeperOffsetStore("one", timeout=3.0, auth=auth)
    nodes.refuses = True
    with pytest.raises(ConnectionError):
        load(store)
    assert nodes.sessions[0]["auth_data"] == auth
    assert nodes.closed == 2


@pytest.mark.parametrize("data", [b"", b"-1", b"7 ", b"x"])
def test_what_is_no_offset(nodes: Nodes, data: bytes) -> None:
    nodes.data["/consumers/g/offsets/t/0"] = data
    with pytest.raises(OffsetStoreError, match="/consumers/g/offsets/t/0 holds no"):
        load(ZooKeeperOffsetStore("one", timeout=3.0))


def test_without_kazoo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "kafkaio._consumer.stores.zookeeper.find_spec", lambda name: None
    )
    with pytest.raises(ImportError, match=r"pip install 'kafkaio\[zookeeper\]'"):
        ZooKeeperOffsetStore("one")
