"""Who uses a client, and the telemetry of these users once it is needed (KIP-714).

Few brokers take the metrics of clients. So what pushes them (`pusher`) is loaded with
the first connection to a broker that does, or when a program asks for it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING
from uuid import UUID

from kafkaio._client.nodes import Nodes
from kafkaio._config import ClientConfig
from kafkaio._net.connection import Connection
from kafkaio._runtime.observer import Observed, Observer
from kafkaio.protocol import _api_numbers as apis
from kafkaio.types import Metric

if TYPE_CHECKING:
    from kafkaio._client.telemetry.pusher import TelemetryPusher


def _nothing() -> None:
    pass


class Telemetry:
    """The users of one client, and what pushes their metrics.

    Args:
        config: the client's options.
        nodes: connects to a broker.
        observer: the client's.
        statistics: returns the statistics of the client.

    Attributes:
        is_offered: whether a broker was connected to that offers telemetry.
        kinds: the kinds of the users that there are or were, in order.
        share_groups: the groups of the share consumers among them.
        sources: the users, referred to weakly.
        resources: returns the attributes of all metrics, for each user.
    """

    def __init__(
        self,
        config: ClientConfig,
        nodes: Nodes,
        observer: Observer,
        statistics: Callable[[], object],
    ) -> None:
        self._config = config
        self._nodes = nodes
        self._observer = observer
        self._statistics = statistics
        self.is_offered: bool = False
        self.kinds: dict[str, None] = {}
        self.share_groups: set[str] = set()
        self.sources: dict[int, weakref.ref[Observed]] = {}
        self.resources: dict[int, Callable[[], Mapping[str, str]]] = {}
        self._listeners: dict[int, Callable[[], None]] = {}
        self._is_observed = False
        self._why_ended: Callable[[], Exception] | None = None

    # ---- who uses the client -----------------------------------------------------

    def add_user(
        self,
        kind: str,
        source: Observed,
        resource: Callable[[], Mapping[str, str]],
        on_observed: Callable[[], None] = _nothing,
    ) -> Callable[[], None]:
        """Add a producer or consumer that uses the client.

        Args:
            kind: ``producer``, ``consumer``, ``consumer.share`` or ``admin.client``.
            source: has ``statistics()``; referred to weakly.
            resource: returns the attributes of all metrics, such as the group. It must
                not refer to the public object.
            on_observed: called when the collector is attached or detached.

        Returns:
            A function that removes it. Its sums are still pushed, without its gauges.
        """
        # Weakly: a producer that the user forgot must be collected, so that it warns.
        key = id(source)
        self.kinds[kind] = None
        if kind == "consumer.share":
            self.share_groups.add(resource()["group_id"])
        self.sources[key] = weakref.ref(source)
        self.resources[key] = resource
        self._listeners[key] = on_observed
        if self._is_observed:
            on_observed()

        def remove() -> None:
            self.sources.pop(key, None)
            self.resources.pop(key, None)
            self._listeners.pop(key, None)

        return remove

    def observed(self, *, is_observed: bool) -> None:
        """Note that the collector was attached or detached, and tell the users."""
        self._is_observed = is_observed
        for notify in [*self._listeners.values()]:
            notify()

    # ---- what pushes -------------------------------------------------------------

    @cached_property
    def _pusher(self) -> TelemetryPusher:
        from kafkaio._client.telemetry.pusher import TelemetryPusher

        made = TelemetryPusher(
            self._config, self._nodes, self._observer, self._statistics, self
        )
        if self._why_ended is not None:
            made.fail(self._why_ended)
        return made

    def register(self, metric: Metric) -> None:
        """Push a metric of the application, too; see `TelemetryPusher.register`."""
        self._pusher.register(metric)

    def unregister(self, metric: Metric) -> None:
        """Push a metric no longer; see `TelemetryPusher.unregister`."""
        self._pusher.unregister(metric)

    async def instance_id(self, within: float) -> UUID:
        """Wait for the id of this client; see `TelemetryPusher.instance_id`."""
        return await self._pusher.instance_id(within)

    def may_start(self, connection: Connection) -> bool:
        """Note a new connection; return whether its broker is the first to offer it."""
        if self.is_offered or not self._config.enable_metrics_push:
            return False
        versions = connection.versions
        self.is_offered = (
            versions.max_version(apis.GET_TELEMETRY_SUBSCRIPTIONS) is not None
            and versions.max_version(apis.PUSH_TELEMETRY) is not None
        )
        return self.is_offered

    async def run(self) -> None:
        """Ask for subscriptions and push metrics until the client is closed."""
        await self._pusher.run()

    async def finish(self, deadline: float) -> None:
        """End the task, and push a last time; see `TelemetryPusher.finish`."""
        if "_pusher" in vars(self):
            await self._pusher.finish(deadline)

    def fail(self, failure: Callable[[], Exception]) -> None:
        """Fail the calls that wait for the instance id, and those to come."""
        self._why_ended = failure
        if "_pusher" in vars(self):
            self._pusher.fail(failure)
