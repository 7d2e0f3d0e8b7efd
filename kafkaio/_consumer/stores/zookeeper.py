"""Offsets in ZooKeeper, where consumers of Kafka 0.8 kept them."""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Protocol

from kafkaio._consumer.stores.blocking import ThreadedStore
from kafkaio._public import public
from kafkaio.errors import OffsetStoreError
from kafkaio.types import GroupMetadata, OffsetAndMetadata, TopicPartition


class _KazooResult(Protocol):
    def get(self, timeout: float) -> tuple[bytes, object]: ...


class _KazooClient(Protocol):
    # The methods of kazoo's client that this module uses.
    def start(self, timeout: float) -> None: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...
    def get_async(self, path: str) -> _KazooResult: ...
    def ensure_path(self, path: str) -> object: ...
    def set(self, path: str, value: bytes) -> object: ...


@public("kafkaio")
class ZooKeeperOffsetStore:
    """Offsets in ``/consumers/GROUP/offsets/TOPIC/PARTITION``, as decimal numbers.

    This is the layout of the high-level consumers of Kafka 0.8 and 0.9. It has no place
    for metadata and leader epochs. Each call opens a session with ZooKeeper in a thread
    and closes it again. It needs kazoo: ``pip install 'kafkaio[zookeeper]'``.

    The old consumers of the group do not take part in the groups of the brokers, so
    stop them before the first consumer of this group starts.

    Args:
        hosts: servers as ``host:port,host:port``, with ``/path`` at the end if the
            brokers' ``zookeeper.connect`` has one.
        timeout: seconds to wait for a session, and for each answer.
        auth: schemes and credentials, such as ``("digest", "name:password")``.

    Raises:
        ImportError: kazoo is not installed.
    """

    def __init__(
        self,
        hosts: str,
        *,
        timeout: float = 10.0,
        auth: Sequence[tuple[str, str]] = (),
    ) -> None:
        self._threads = ThreadedStore(self._load, self._commit)
        if find_spec("kazoo") is None:
            raise ImportError(
                "ZooKeeperOffsetStore needs kazoo; install it with: "
                "pip install 'kafkaio[zookeeper]'"
            )
        self._hosts = hosts
        self._timeout = timeout
        self._auth = auth

    def __repr__(self) -> str:
        return f"ZooKeeperOffsetStore({self._hosts!r})"

    async def load(
        self, group: GroupMetadata, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """Read the group's offsets of these partitions, those that there are.

        Raises:
            OffsetStoreError: a node does not hold an offset.
            Exception: raised by kazoo.
        """
        return await self._threads.load(group, partitions)

    async def commit(
        self, group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        """Write one node after another, in order.

        If the call is cancelled, they may still be written, but never over the offsets
        of a later call.

        Raises:
            Exception: raised by kazoo.
        """
        await self._threads.commit(group, offsets)

    @contextmanager
    def _session(self) -> Generator[_KazooClient]:
        from kazoo.client import KazooClient

        client: _KazooClient = KazooClient(
            hosts=self._hosts, timeout=self._timeout, auth_data=[*self._auth] or None
        )
        try:
            client.start(self._timeout)
            yield client
        finally:
            # Ends the session at once: ZooKeeper need not wait for its timeout.
            client.stop()
            client.close()

    def _load(
        self, group_id: str, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        from kazoo.exceptions import NoNodeError

        found = dict[TopicPartition, OffsetAndMetadata]()
        with self._session() as client:
            # All requests are sent before the first answer is awaited.
            asked = {tp: client.get_async(_path(group_id, tp)) for tp in partitions}
            for tp, pending in asked.items():
                try:
                    data, _ = pending.get(self._timeout)
                except NoNodeError:
                    continue
                found[tp] = _decode(data, _path(group_id, tp))
        return found

    def _commit(
        self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        with self._session() as client:
            for tp in sorted(offsets):
                path = _path(group_id, tp)
                client.ensure_path(path)
                client.set(path, b"%d" % offsets[tp].offset)


def _path(group_id: str, tp: TopicPartition) -> str:
    return f"/consumers/{group_id}/offsets/{tp.topic}/{tp.partition}"


def _decode(data: bytes, path: str) -> OffsetAndMetadata:
    if not data.isdigit():
        raise OffsetStoreError(f"{path} holds no offset: {data!r}")
    return OffsetAndMetadata(int(data))
