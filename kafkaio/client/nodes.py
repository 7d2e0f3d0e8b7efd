"""Reaches whichever broker can answer: the brokers known, or the bootstrap servers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from kafkaio._machines.routing import NodeLoad, least_loaded_first
from kafkaio._net.connection import Connection
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._net.pool import Pool
from kafkaio._runtime.clock import roll
from kafkaio.client.race import race
from kafkaio.errors import BrokerNotAvailable, KafkaError
from kafkaio.types import Broker

__all__ = ["Nodes"]

#: Seconds that one broker gets to answer before the next is dialled beside it.
HEAD_START: Final = 0.5


class Nodes:
    """Chooses among the brokers of a pool.

    Args:
        pool: the connections.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._known: dict[int, Broker] = {}

    @property
    def is_bootstrapping(self) -> bool:
        """Whether no broker is known yet, so that only bootstrap servers are asked."""
        return not self._known

    @property
    def known(self) -> Mapping[int, Broker]:
        """The brokers known, by node id."""
        return self._known

    def learn(self, brokers: Mapping[int, Broker]) -> None:
        """Replace the brokers known."""
        was_bootstrapping = self.is_bootstrapping
        self._known = dict(brokers)
        self._pool.set_brokers(self._known)
        if was_bootstrapping and self._known:
            # Their names may stand for a proxy; the brokers have addresses of their
            # own now. What is in flight there is at most the answer just read.
            for node_id in self._pool.bootstrap:
                self._retire(node_id)

    def start_over(self) -> None:
        """Close all connections and forget all brokers but the bootstrap servers."""
        for node_id in (*self._known, *self._pool.bootstrap):
            self._pool.close_node(node_id)
        self.learn({})

    def in_order(self) -> list[int]:
        """Node ids in the order in which to ask them."""
        loads = []
        for node_id in self._known or self._pool.bootstrap:
            ready = self._pool.ready(node_id, ConnectionClass.SHARED)
            if ready is not None:
                loads.append(NodeLoad(node_id, ready.in_flight, ready.throttled))
            else:
                wait = self._pool.wait_before(node_id)
                if self._pool.is_opening(node_id):
                    wait = max(wait, HEAD_START)
                loads.append(NodeLoad(node_id, None, wait))
        return least_loaded_first(loads, roll())

    async def any_connection(self) -> Connection:
        """A connection to the broker that can answer soonest.

        Without an idle connection brokers are dialled, each a moment after the one
        before, and the first that answers is taken: a broker that has vanished
        without a word, or that has come to a halt, holds nothing up.

        Raises:
            BrokerNotAvailable: none can be reached; names each and why.
            AuthenticationError: all refuse who we are.
        """
        while True:
            order = self.in_order()
            ready = self._pool.ready(order[0], ConnectionClass.SHARED)
            if ready is not None:
                return ready
            winner = await self._race(order)
            if not winner.in_flight:
                return winner
            # Others waited for it, too, and were faster: choose again.

    async def _race(self, order: list[int]) -> Connection:
        attempts = [
            partial(self._pool.connection, id_, ConnectionClass.SHARED) for id_ in order
        ]
        won, failures = await race(attempts, HEAD_START)
        return won[0] if won else self._give_up(failures)

    def _give_up(self, failures: list[KafkaError]) -> Connection:
        final = [f for f in failures if not f.retriable]
        if len(final) == len(failures):
            raise final[0]
        what = "; ".join(str(failure) for failure in failures)
        kind = "bootstrap server" if self.is_bootstrapping else "broker"
        raise BrokerNotAvailable(f"no {kind} can be reached: {what}") from failures[-1]

    def _retire(self, node_id: int) -> None:
        self._pool.retire(node_id)
