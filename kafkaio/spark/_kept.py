"""Producers with transactional ids that a worker keeps from task to task.

Starting a producer takes two round trips: FindCoordinator and InitProducerId. A worker
that writes the same task in each micro-batch keeps its producer.

This does not break the rule "read the marker after the epoch is ours". The coordinator
accepts requests of an id under one epoch at a time, and epochs only grow. Let a
producer get its epoch at time G (by InitProducerId, or by the end of its last
transaction), let its next attempt read the marker at R, and let the coordinator accept
its EndTxn at E under that epoch. Then no other producer got an epoch between G and E.
If an attempt of another producer committed, it did so before G, and its rows and its
marker were complete at G, because the coordinator gives no epoch before that. G is
before R, so this attempt reads that marker. An attempt of another producer that commits
later gets its epoch after E, and reads the marker of this one.

A producer that another process has replaced notices it with its first request. That
should not carry its rows, since Spark gives these only once. So `KeptProducers.reuse`
asks the coordinator, in one round trip, unless the caller writes something else first.
It reuses a producer only if the worker wrote the previous version: Spark gives tasks to
any worker, and a producer that wrote an older version was most likely replaced.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

from kafkaio._client import Client
from kafkaio._config import ClientConfig, ProducerConfig
from kafkaio._config.options import ProducerOptions
from kafkaio._named_tuple import NamedTuple
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

    One task at a time uses a producer. A kept producer has no open transaction, so it
    closes at once, and blocks nobody: another process that uses its id replaces it.

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

        It is as good as a producer that has just started: no earlier attempt with its
        id can commit any more, and the markers of all that have committed are written.
        The caller gives it back with `give_back`, or closes it.

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
        # Taken out at once: no second task of this worker can get it meanwhile.
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
        # Not put back: the caller starts a new producer with this id, which fences it.
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
            # Also if the task was cancelled: nobody else has a reference to it.
            await kept.close(timeout=0)
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
        # Popped first, so that the dict has it last: the order is that of use.
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
