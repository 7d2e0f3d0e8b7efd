"""Producers with transactional ids that a worker keeps from task to task.

To start one takes two round trips: to find the coordinator, and InitProducerId. A
worker that writes the same task in one micro-batch after the other keeps its producer.

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
should not be its rows, since Spark gives these once. So `KeptProducers.reuse` asks the
coordinator, in one round trip, unless the caller writes something else first. And it
takes one only if the worker has written the version before. Spark gives tasks to any
worker: a producer that has written an older version was most likely replaced.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final, NamedTuple

from kafkaio._client import Client
from kafkaio._config import ClientConfig, ProducerConfig, ProducerOptions
from kafkaio._producer import Producer
from kafkaio._producer.current import is_current

#: How many producers are kept. A worker has one for each task that it writes in turn.
_MOST: Final = 32


class _KeptProducer(NamedTuple):
    """A producer that is kept, its client, and which version it wrote last."""

    client: Client
    producer: Producer
    version: int | None


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
        self._kept: dict[str, _KeptProducer] = {}

    @property
    def count(self) -> int:
        """How many are kept now."""
        return len(self._kept)

    async def reuse(
        self,
        client: Client,
        config: ProducerConfig,
        *,
        after: int | None = None,
        is_checked: bool = True,
        within: float | None = None,
    ) -> Producer | None:
        """Return a producer that was kept and has its id, or None: then make a new one.

        It may be used as one that has just started: no other attempt with the id that
        has begun before can commit any more, and the markers of all that have committed
        are written. The caller gives it back with `give_back`, or closes it.

        Args:
            client: a started client, whose connections it must use.
            config: the options that it must have, with a ``transactional_id``; those of
                the client do not count.
            after: the version that it must have written last; None for any.
            is_checked: whether to ask the coordinator if it still has its id. Without
                that, all this is so when its first write is acknowledged; if that
                fails, the caller closes it and starts a new one.
            within: seconds for the answer; ``default_api_timeout_ms`` by default.
        """
        wanted = ProducerConfig.sharing(client.config, _own(config), None)
        assert wanted.transactional_id is not None
        kept = self._kept.pop(wanted.transactional_id, None)
        if kept is None:
            return None
        if within is None:
            within = client.config.default_api_timeout_ms / 1000
        is_same = kept.client is client and kept.producer.config == wanted
        is_next = after is None or kept.version == after
        limit = within if is_checked else None
        if is_same and is_next and await self._is_usable(kept.producer, limit):
            return kept.producer
        await kept.producer.close(timeout=0)
        return None

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

    async def give_back(
        self, client: Client, producer: Producer, version: int | None = None
    ) -> None:
        """Keep a producer for the next task, if it has no transaction; or close it.

        One is not kept that has failed, or whose last transaction has no end yet.

        Args:
            client: the client whose connections it uses.
            producer: the producer.
            version: which version it has written.
        """
        name = producer.config.transactional_id
        found = producer.statistics()
        if name is None or found.state != "running" or found.transaction != "ready":
            await producer.close(timeout=0)
            return
        former = self._kept.pop(name, None)
        self._kept[name] = _KeptProducer(client, producer, version)
        if former is not None and former.producer is not producer:
            await former.producer.close(timeout=0)
        while len(self._kept) > self._most:
            oldest = next(iter(self._kept))
            await self._kept.pop(oldest).producer.close(timeout=0)

    async def close(self) -> None:
        """Close all that are kept."""
        while self._kept:
            _, kept = self._kept.popitem()
            await kept.producer.close(timeout=0)


def sharing(client: Client, config: ProducerConfig) -> Producer:
    """Make a producer that uses the connections of a client.

    Args:
        client: the client.
        config: the options, of which those of the client are not taken.
    """
    return Producer(client, **_own(config))


def _own(config: ProducerConfig) -> ProducerOptions:
    """Return the options that are not those of a client."""
    shared = {f.name for f in fields(ClientConfig)}
    own = [f.name for f in fields(ProducerConfig) if f.name not in shared]
    found: Any = {name: getattr(config, name) for name in own}
    options: ProducerOptions = found
    return options
