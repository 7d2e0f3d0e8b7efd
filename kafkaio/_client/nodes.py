"""Chooses a broker for requests that any broker can answer.

Before the first metadata arrives, these are the bootstrap servers, and again after
`Nodes.rebootstrap` (KIP-899). Afterwards they are the brokers that the metadata lists.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from socket import gaierror
from typing import Final

from kafkaio._client.retry import race
from kafkaio._machines.routing import NodeLoad, least_loaded_first
from kafkaio._net.connection import Connection
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._net.pool import Pool
from kafkaio._runtime.clock import now, roll
from kafkaio.errors import BrokerNotAvailable
from kafkaio.types import Broker

#: Seconds that one broker gets before the next one is connected to as well.
HEAD_START: Final = 0.5
#: The most brokers that one question goes to, and the seconds after which the next one
#: is asked beside one that has not answered.
ASKED: Final = 2
SILENCE: Final = 1.0
#: Requests in flight behind which one is sent before another broker is connected to.
_BEHIND: Final = 2
#: Brokers without a connection that one choice considers, from a random place on. A
#: cluster may have thousands, and a wrong answer may name thousands that do not exist.
_LOOKED_AT: Final = 32
#: Brokers that may fail before the bootstrap servers are tried as well.
_BEFORE_BOOTSTRAP: Final = 4
#: Failures that an error names.
_NAMED: Final = 5


class Nodes:
    """Knows the brokers of the cluster, and connects to the one that is least loaded.

    Args:
        pool: the connections.
        recovers: whether the bootstrap servers are tried, too, where brokers cannot be
            reached (KIP-899).

    Attributes:
        is_unresolved: whether no bootstrap server was reached because the name of none
            could be resolved; of the last attempt.
    """

    def __init__(self, pool: Pool, *, recovers: bool = True) -> None:
        self._pool = pool
        self._recovers = recovers
        self.is_unresolved: bool = False
        self._known: dict[int, Broker] = {}
        self._cluster_id: str | None = None

    @property
    def is_bootstrapping(self) -> bool:
        """Whether no broker is known, so that only bootstrap servers can be asked."""
        return not self._known

    @property
    def known(self) -> Mapping[int, Broker]:
        """The brokers of the cluster, by node id."""
        return self._known

    def update(
        self, brokers: Mapping[int, Broker], cluster_id: str | None = None
    ) -> None:
        """Replace the brokers of the cluster, if they have changed.

        Args:
            brokers: the brokers, by node id.
            cluster_id: the cluster that they belong to; None if it is unknown.
        """
        if brokers == self._known and cluster_id == self._cluster_id:
            return
        was_bootstrapping = self.is_bootstrapping
        self._known, self._cluster_id = dict(brokers), cluster_id
        self._pool.set_brokers(self._known, cluster_id)
        if was_bootstrapping and self._known:
            self._pool.leave_bootstrap()

    def rebootstrap(self) -> None:
        """Close all connections, and forget all brokers but the bootstrap servers."""
        for node_id in (*self._known, *self._pool.bootstrap):
            self._pool.close_node(node_id)
        self.update({})

    def in_order(self) -> list[int]:
        """Return the node ids, that of the least loaded broker first.

        Of the brokers without a connection it has some only, if there are many.
        """
        loads, at = [], now()
        for node_id in self._candidates():
            ready = self._pool.ready(node_id, ConnectionClass.SHARED)
            if ready is not None:
                count = ready.in_flight
                # The broker has answered a moment ago, so a request that follows at
                # once, as several do at the start, need not wait for a connection to
                # another broker.
                is_new = count <= _BEHIND and ready.ready_at > at - HEAD_START
                loads.append(NodeLoad(node_id, count, ready.throttled, is_new))
            else:
                wait = self._pool.wait_before(node_id)
                if self._pool.is_opening(node_id):
                    wait = max(wait, HEAD_START)
                loads.append(NodeLoad(node_id, None, wait))
        return least_loaded_first(loads, roll())

    def _candidates(self) -> Collection[int]:
        """The brokers to choose from; all, if they are not too many."""
        known: Collection[int] = self._known or self._pool.bootstrap
        serving = self._pool.serving() if self._pool.is_leaving_bootstrap else ()
        if serving:
            known = [*serving, *known]
        if len(known) <= _LOOKED_AT:
            return known
        ids = list(known)
        first = int(roll() * len(ids))
        window = (ids[first:] + ids[:first])[:_LOOKED_AT]
        connected = self._pool.connected(ConnectionClass.SHARED)
        return (connected & {*serving, *self._known}) | set(window)

    def why_late(self) -> str:
        """Return the connections that `any_connection` waits for; empty for none."""
        opening = self._pool.opening(ConnectionClass.SHARED)
        more = f" and {len(opening) - _NAMED} more" if len(opening) > _NAMED else ""
        named = ", ".join(opening[:_NAMED]) + more
        return f"it waits for a connection to {named}" if opening else ""

    def any_ready(self) -> Connection | None:
        """Return the open connection to the broker that can answer soonest.

        None if that one has no connection yet; `any_connection` makes one.
        """
        order = self.in_order()
        if order[0] < 0:
            self._connect_brokers(order)
        return self._pool.ready(order[0], ConnectionClass.SHARED)

    def _connect_brokers(self, order: list[int]) -> None:
        """Connect to a broker, because a bootstrap server serves only until then."""
        brokers = [node_id for node_id in order if node_id >= 0]
        if brokers and not any(map(self._pool.is_opening, brokers)):
            self._pool.prepare(brokers[0], ConnectionClass.SHARED)

    async def any_connection(self, avoid: Collection[int] = ()) -> Connection:
        """Return a connection to the broker that can answer soonest.

        If all open connections are busy, further brokers are connected to, each a head
        start after the one before, and the first success is taken. So a broker that
        does not react delays the request by no more than a head start. After several
        failures the bootstrap servers are tried, too.

        Args:
            avoid: brokers that come last, because they were asked and are silent.

        Raises:
            BrokerNotAvailable: none can be reached; names each and why.
            AuthenticationError: all refuse the client's identity.
        """
        while True:
            order = self.in_order()
            if avoid:
                order.sort(key=lambda node_id: node_id in avoid)
            if order[0] < 0:
                self._connect_brokers(order)
            ready = self._pool.ready(order[0], ConnectionClass.SHARED)
            if ready is not None:
                return ready
            winner = await self._race(order)
            if not winner.in_flight:
                return winner
            # Other tasks waited for the same connection and were faster: choose again.

    async def _race(self, order: list[int]) -> Connection:
        if self._known and self._recovers and len(order) > _BEFORE_BOOTSTRAP:
            # A client that was given wrong addresses of many brokers recovers by this.
            # With a few brokers it is soon clear that none can be reached.
            order[_BEFORE_BOOTSTRAP:_BEFORE_BOOTSTRAP] = self._pool.bootstrap
        attempts = [
            partial(self._pool.connection, id_, ConnectionClass.SHARED) for id_ in order
        ]
        won, failures = await race(attempts, HEAD_START)
        self.is_unresolved = (
            not won
            and self.is_bootstrapping
            and all(
                # Nothing but a look-up raises it.
                isinstance(failure.__cause__, gaierror | UnicodeError)
                for failure in failures
            )
        )
        if won:
            return won[0]
        if not any(failure.retriable for failure in failures):
            raise failures[0]
        what = "; ".join(str(failure) for failure in failures[:_NAMED])
        if len(failures) > _NAMED:
            what += f"; and {len(failures) - _NAMED} more"
        kind = "bootstrap server" if self.is_bootstrapping else "broker"
        raise BrokerNotAvailable(f"no {kind} can be reached: {what}") from failures[-1]
