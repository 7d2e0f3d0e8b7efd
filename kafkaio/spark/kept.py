"""Producers with transactional ids that a worker keeps from task to task.

To start one takes two round trips: to find the coordinator, and InitProducerId. In a
stream a worker writes the same tasks in each micro-batch, under the same ids; so it
keeps the producers.

That is right beside "the marker is read after the epoch is ours". The coordinator takes
requests of an id under one epoch at a time, and epochs only grow. Say that a producer
got its epoch at a time G (by InitProducerId, or by the end of its last transaction),
that its next attempt reads the marker at R, and that the coordinator takes its EndTxn
at E under that epoch. Then nobody else has got an epoch between G and E. An attempt of
another producer that was committed was so before G. Its rows and its marker were
complete at G, because the coordinator gives no epoch before that. G comes before R, so
the marker tells of it. An attempt of another producer that is committed later gets its
epoch after E, and finds the marker of this one.

A producer that another process has replaced finds out with its first request. That
should not be its rows, since Spark gives these once. So `KeptProducers.take` asks the
coordinator, in one round trip, unless the caller writes something else first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Final

from kafkaio._machines.coordinators import CoordinatorKind
from kafkaio._runtime.clock import now
from kafkaio.client import Client
from kafkaio.client.client import cluster_of
from kafkaio.config import ClientConfig, ProducerConfig
from kafkaio.producer import Producer
from kafkaio.producer.current import is_current

__all__ = ["KeptProducers", "sharing"]

#: How many producers are kept. A worker has one for each task that it writes in turn.
_MOST: Final = 32


class KeptProducers:
    """The producers of one worker, by their transactional ids.

    A producer is taken by one task at a time. Nothing is open in one that is kept, so
    none needs time to close, and none is in anybody's way: another process that uses
    its id replaces it.

    Args:
        most: how many are kept; the least recently used goes first.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._kept: dict[str, tuple[Client, Producer]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    async def take(
        self,
        client: Client,
        config: ProducerConfig,
        *,
        is_checked: bool = True,
        within: float | None = None,
        next_ids: Iterable[str] = (),
    ) -> Producer:
        """Return a started producer: one that was kept and has its id, or a new one.

        When the call returns, no other attempt with the id that has begun before can
        commit any more, and the markers of all that have committed are written. (Where
        it is not checked, that is so when its first write is acknowledged.) The caller
        gives the producer back with `give_back`, or closes it.

        Args:
            client: a started client, whose connections are used.
            config: the options, with a ``transactional_id``; those of the client are
                not taken from it.
            is_checked: whether to ask if a kept producer still has its id. Without
                that, its first write may fail with `Fenced` or `TransactionAborted`;
                then the caller closes it and takes another one, which is new.
            within: seconds; ``default_api_timeout_ms`` by default.
            next_ids: other ids that this process may use soon. Their coordinators are
                found together with that of this one, if it has to be found.

        Raises:
            KafkaError: what `Producer.start` raises.
        """
        if within is None:
            within = client.config.default_api_timeout_ms / 1000
        deadline = now() + within
        made = sharing(client, config)
        name = made.config.transactional_id
        assert name is not None
        kept_for, kept = self._kept.pop(name, (None, None))
        if kept is not None:
            is_same = kept_for is client and kept.config == made.config
            limit = within if is_checked else None
            if is_same and await self._is_usable(kept, limit):
                return kept
            await kept.close(timeout=0)
        cluster_of(client).expect_coordinators(CoordinatorKind.TRANSACTION, next_ids)
        await made.start(max(0.001, deadline - now()))
        return made

    async def _is_usable(self, kept: Producer, within: float | None) -> bool:
        found = kept.statistics()
        if found.state != "running" or found.transaction != "ready":
            return False
        if within is None:
            return True
        try:
            return await is_current(kept, within)
        except BaseException:
            await kept.close(timeout=0)  # it was cancelled: nobody has it any more
            raise

    async def give_back(self, client: Client, producer: Producer) -> None:
        """Keep a producer for the next task, if it has no transaction; or close it.

        One is not kept that has failed, or whose last transaction was not committed for
        sure.
        """
        name = producer.config.transactional_id
        found = producer.statistics()
        if name is None or found.state != "running" or found.transaction != "ready":
            await producer.close(timeout=0)
            return
        former = self._kept.pop(name, None)
        self._kept[name] = (client, producer)
        if former is not None and former[1] is not producer:
            await former[1].close(timeout=0)
        while len(self._kept) > self._most:
            oldest = next(iter(self._kept))
            await self._kept.pop(oldest)[1].close(timeout=0)

    async def close(self) -> None:
        """Close all that are kept."""
        while self._kept:
            _, (_, producer) = self._kept.popitem()
            await producer.close(timeout=0)


def sharing(client: Client, config: ProducerConfig) -> Producer:
    """Make a producer that uses the connections of a client.

    Args:
        client: the client.
        config: the options, of which those of the client are not taken.
    """
    shared = {f.name for f in fields(ClientConfig)}
    options = {
        f.name: getattr(config, f.name)
        for f in fields(ProducerConfig)
        if f.name not in shared
    }
    return Producer(client, **options)
