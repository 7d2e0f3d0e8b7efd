"""Pushes metrics of this client to the brokers, in a task of its own.

The task starts with the first connection to a broker that offers telemetry. The client
is observed only while a broker asks for metrics. A failure here must not affect the
client: it ends the task and is reported once, and does not count as a crash.
"""

from __future__ import annotations

import asyncio
import itertools
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Protocol
from uuid import UUID

from kafkaio._client.nodes import Nodes
from kafkaio._config import ClientConfig
from kafkaio._machines.bounds import seconds
from kafkaio._machines.telemetry import (
    PushedSums,
    TelemetryMachine,
    TelemetryStep,
    TelemetrySubscription,
)
from kafkaio._runtime.broadcast import Broadcast
from kafkaio._runtime.clock import now, roll, wall_clock
from kafkaio._runtime.observer import Observed, Observer, add_observer
from kafkaio._runtime.scopes import Cancelled, CancelScope, move_on_after
from kafkaio.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ClosedError,
    KafkaError,
    RequestTimeout,
    UnsupportedVersion,
    UsageError,
)
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.types import Metric

if TYPE_CHECKING:
    from kafkaio._client.telemetry.collector import Collector
    from kafkaio._client.telemetry.otlp import Attributes, Point
    from kafkaio.protocol.messages.push_telemetry import PushTelemetryRequest

#: Kafka's own names, which no metric of an application may have.
_RESERVED: Final = "org.apache.kafka."
#: Most seconds that the last push may delay closing.
LAST_PUSH: Final = 1.0
#: Which part of the time to close the last push may take.
_PART_OF_CLOSING: Final = 0.5
#: The library that each compression codec needs, by the codec's number; "" for none.
_CODECS: Final[Mapping[int, str]] = {1: "", 2: "cramjam", 3: "lz4", 4: "zstandard"}


def _nothing() -> None:
    pass


class TelemetryUsersPort(Protocol):
    """The users of the client; see `Telemetry`."""

    @property
    def is_offered(self) -> bool: ...

    @property
    def kinds(self) -> Mapping[str, None]: ...

    @property
    def share_groups(self) -> set[str]: ...

    @property
    def sources(self) -> Mapping[int, weakref.ref[Observed]]: ...

    @property
    def resources(self) -> Mapping[int, Callable[[], Mapping[str, str]]]: ...

    def observed(self, *, is_observed: bool) -> None: ...


class TelemetryPusher:
    """The metrics of one client, and the task that pushes them.

    Args:
        config: the client's options.
        nodes: connects to a broker.
        observer: is extended by the collector, and is notified of a failure here.
        statistics: returns the statistics of the client.
        users: the users of the client.
    """

    def __init__(
        self,
        config: ClientConfig,
        nodes: Nodes,
        observer: Observer,
        statistics: Callable[[], object],
        users: TelemetryUsersPort,
    ) -> None:
        self._config = config
        self._nodes = nodes
        self._observer = observer
        self._statistics = statistics
        self._users = users
        self._timeout = config.request_timeout_ms / 1000
        # Returns what the request for a subscription waits for.
        self._late: Callable[[], str] = nodes.why_late
        self._machine = TelemetryMachine()
        self._ledger = PushedSums()
        self._collector: Collector | None = None
        self._stop_observing: Callable[[], None] = _nothing
        self._registered: dict[tuple[str, Attributes], Metric] = {}
        self._scope = CancelScope()
        self._is_running = False
        self._failure: KafkaError | None = None
        # In nanoseconds since the Unix epoch: when counting began, when the last push
        # was sent that a broker took or may have taken, and when the last one was sent.
        self._started_ns = self._pushed_ns = self._sent_ns = 0
        self._known = Broadcast()

    # ---- metrics of the application -----------------------------------------------

    def register(self, metric: Metric) -> None:
        """Push a metric of the application, too (KIP-1076).

        Raises:
            ArgumentTypeError: it is not a `kafkaio.Metric`, or its name or attributes
                are not str.
            ArgumentValueError: its name is empty or reserved for Kafka, its ``kind`` is
                unknown, or a str cannot be encoded in UTF-8.
        """
        key = _key_of(metric)
        if metric.kind not in {"gauge", "sum"}:
            raise ArgumentValueError(f"kind={metric.kind!r}: must be 'gauge' or 'sum'")
        if not metric.name or metric.name.startswith(_RESERVED):
            raise ArgumentValueError(
                f"name={metric.name!r}: must be set, and not begin with {_RESERVED}"
            )
        self._registered[key] = metric

    def unregister(self, metric: Metric) -> None:
        """Push a metric no longer; nothing happens if it was not registered.

        Raises:
            ArgumentTypeError: it is not a `kafkaio.Metric`, or its name or attributes
                are not str.
        """
        self._registered.pop(_key_of(metric), None)

    async def instance_id(self, within: float) -> UUID:
        """Return the id by which brokers know this client; wait until one assigns it.

        Raises:
            UsageError: ``enable_metrics_push`` is off.
            UnsupportedVersion: no broker connected to so far offers telemetry.
            RequestTimeout: no broker gave an id in time.
            KafkaError: telemetry has failed; says why.
            ClosedError: the client was closed.
        """
        if not self._config.enable_metrics_push:
            raise UsageError(
                "a client without telemetry has no instance id: enable_metrics_push "
                "is False"
            )
        with move_on_after(within):
            while self._machine.instance_id is None:
                if self._failure is not None:
                    raise self._failure
                if not self._users.is_offered:
                    raise UnsupportedVersion(
                        "the brokers offer no telemetry (KIP-714): it needs Kafka 3.7 "
                        "with a metrics reporter that takes it"
                    )
                await self._known.wait()
            return self._machine.instance_id
        why = self._late()
        tail = f": {why}" if why else ""
        raise RequestTimeout(f"no broker gave the client an instance id in time{tail}")

    # ---- the task ----------------------------------------------------------------

    def fail(self, failure: Callable[[], Exception]) -> None:
        """Fail the calls that wait for the instance id."""
        self._known.fail(failure)

    async def run(self) -> None:
        """Ask for subscriptions and push metrics until the client is closed."""
        self._is_running = True
        self._machine = TelemetryMachine(_installed())
        try:
            with self._scope:
                while not self._machine.has_ended:
                    await asyncio.sleep(max(0.0, self._machine.due - now()))
                    await self._step()
        except Exception as error:  # noqa: BLE001 - it must not crash the client
            self._end(error)
        finally:
            self._is_running = False

    async def finish(self, deadline: float) -> None:
        """End the task, and push a last time if metrics were being pushed.

        Args:
            deadline: when closing has to be done. The last push takes at most half of
                the time until then, and at most `LAST_PUSH` seconds.
        """
        if not self._is_running:
            return
        self._scope.cancel()
        if not self._machine.terminate():
            return
        within = min(LAST_PUSH, (deadline - now()) * _PART_OF_CLOSING)
        if within <= 0:
            return
        # The task of a push under way is cancelled, but does not run before this one
        # awaits. Its push may have arrived, so its sums count as pushed.
        self._settle(is_refused=False)
        try:
            with move_on_after(within):
                await self._push(is_last=True)
        except Exception as error:  # noqa: BLE001 - it must not keep from closing
            self._end(error)

    def _end(self, error: Exception) -> None:
        self._machine.terminate()
        self._detach()
        if isinstance(error, ClosedError):  # the client was closed meanwhile
            return
        failure = error
        if not isinstance(failure, KafkaError):
            failure = KafkaError(f"pushing metrics has failed: {error!r}")
        self._failure = failure
        self._observer.telemetry_ended(error)
        self._known.notify_all()

    async def _step(self) -> None:
        try:
            if self._machine.step is TelemetryStep.PUSH:
                await self._push(is_last=False)
            else:
                await self._subscribe()
        except (KafkaError, OSError) as error:
            if isinstance(error, ClosedError):
                raise
            if isinstance(error, UnsupportedVersion):
                # The chosen broker does not offer telemetry, or no longer does. Another
                # may: the cluster is perhaps being upgraded.
                self._detach()
            self._machine.unanswered(now())

    async def _subscribe(self) -> None:
        from kafkaio.protocol.messages.get_telemetry_subscriptions import (
            GetTelemetrySubscriptionsRequest,
        )

        request = GetTelemetrySubscriptionsRequest()
        if self._machine.instance_id is not None:
            request.client_instance_id = self._machine.instance_id
        connection = await self._nodes.any_connection()
        self._late = partial(connection.why_late, "GetTelemetrySubscriptions")
        try:
            answer = await connection.call(request, timeout=self._timeout)
        finally:
            self._late = self._nodes.why_late
        if answer.error_code:
            self._refused(answer.error_code, request.API_KEY)
            return
        self._machine.subscribed(
            now(),
            roll(),
            instance_id=answer.client_instance_id,
            subscription_id=answer.subscription_id,
            accepted=answer.accepted_compression_types,
            interval=_interval(answer.push_interval_ms),
            max_bytes=answer.telemetry_max_bytes,
            is_delta=answer.delta_temporality,
            prefixes=answer.requested_metrics,
        )
        self._known.notify_all()
        if self._machine.step is not TelemetryStep.PUSH:
            self._detach()
        elif self._collector is None:
            self._attach()

    def _attach(self) -> None:
        from kafkaio._client.telemetry.collector import Collector

        self._collector = Collector(self._statistics)  # type: ignore[arg-type]
        self._started_ns = self._pushed_ns = wall_clock()()
        # The sums of a new collector begin at 0, so the increases do, too.
        self._ledger = PushedSums()
        self._stop_observing = add_observer(self._observer, self._collector)
        self._users.observed(is_observed=True)

    def _detach(self) -> None:
        """Stop observing: no broker asks for metrics."""
        if self._collector is not None:
            self._collector = None
            self._stop_observing()
            self._users.observed(is_observed=False)

    def _refused(self, code: int, api: int) -> None:
        self._machine.refused(code, now())
        if self._machine.has_ended:
            self._end(broker_error(code, "pushing metrics", api=api))

    async def _push(self, *, is_last: bool) -> None:
        connection = await self._nodes.any_connection()
        request = self._request(is_last=is_last)
        is_refused = False
        try:
            answer = await connection.call(request, timeout=self._timeout)
            is_refused = bool(answer.error_code)
        finally:
            # Without an answer the push may have arrived: its sums count as pushed, for
            # an increase that is lost is better than one that is counted twice.
            self._settle(is_refused=is_refused)
        if is_last:
            return  # nothing follows, whatever the answer
        if is_refused:
            self._refused(answer.error_code, request.API_KEY)
        else:
            self._machine.pushed(now())

    def _settle(self, *, is_refused: bool) -> None:
        if self._ledger.is_pending and not is_refused:
            self._pushed_ns = self._sent_ns
        self._ledger.settle(is_refused=is_refused)

    def _request(self, *, is_last: bool) -> PushTelemetryRequest:
        from kafkaio._records.compression import Compression, Compressor
        from kafkaio.protocol.messages.push_telemetry import PushTelemetryRequest

        wanted = self._machine.subscription
        assert wanted is not None  # the machine pushes only with a subscription
        compressor = Compressor(Compression(wanted.compression))
        points = self._points(wanted)
        while True:
            data = compressor.compress(self._encode(wanted, points))
            if not wanted.max_bytes or len(data) <= wanted.max_bytes:
                break
            if not points:
                data = b""
                break
            # The least important metrics are at the end. A tenth less than fits by
            # proportion, since fewer points compress less well.
            fitting = len(points) * wanted.max_bytes * 9 // (len(data) * 10)
            points = points[: min(fitting, len(points) - 1)]
        self._ledger.sending({_place(one): one.value for one in points if one.is_sum})
        return PushTelemetryRequest(
            client_instance_id=wanted.instance_id,
            subscription_id=wanted.subscription_id,
            terminating=is_last,
            compression_type=wanted.compression,
            metrics=data,
        )

    def _points(self, wanted: TelemetrySubscription) -> list[Point]:
        collector = self._collector
        assert collector is not None  # attached with the first subscription
        collector.turn()
        numbers = [
            source.statistics()
            for refer in [*self._users.sources.values()]
            if (source := refer()) is not None
        ]
        users = self._users
        points = collector.points([*users.kinds], numbers, users.share_groups)
        found = [one for one in points if wanted.wants(one.name)]
        # Behind the first of the client's own, so that a limit of size drops them last.
        found[1:1] = self._own_points(wanted)
        return found

    def _own_points(self, wanted: TelemetrySubscription) -> list[Point]:
        from kafkaio._client.telemetry.otlp import Point

        found = []
        for (name, about), metric in [*self._registered.items()]:
            if not wanted.wants(name):
                continue
            try:
                value = float(metric.read())
            except (Exception, Cancelled) as error:  # noqa: BLE001 - the application's
                self._observer.telemetry_ended(error)
                self._registered.pop((name, about), None)
                continue
            found.append(Point(name, value, about, is_sum=metric.kind == "sum"))
        return found

    def _encode(self, wanted: TelemetrySubscription, points: list[Point]) -> bytes:
        from kafkaio._client.telemetry.otlp import Times, encode

        start = self._pushed_ns if wanted.is_delta else self._started_ns
        if wanted.is_delta:
            points = [
                one._replace(value=self._ledger.increase(_place(one), one.value))
                if one.is_sum
                else one
                for one in points
            ]
        resource: dict[str, str] = {}
        if self._config.client_rack:
            resource["client_rack"] = self._config.client_rack
        for describe in [*self._users.resources.values()]:
            resource |= describe()
        self._sent_ns = wall_clock()()
        return encode(points, Times(start, self._sent_ns, wanted.is_delta), resource)


def _installed() -> list[int]:
    return [code for code, name in _CODECS.items() if not name or find_spec(name)]


def _place(point: Point) -> tuple[str, Attributes]:
    return point.name, point.attributes


def _check_text(text: object) -> None:
    if not isinstance(text, str):
        raise ArgumentTypeError(
            f"name and attributes of a metric must be str, not {type(text).__name__}"
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ArgumentValueError(
            f"{text!r} of a metric is not valid text: {error}"
        ) from None


def _key_of(metric: object) -> tuple[str, Attributes]:
    if not isinstance(metric, Metric):
        raise ArgumentTypeError(
            f"metric must be a kafkaio.Metric, not {type(metric).__name__}"
        )
    for text in (metric.name, *itertools.chain(*metric.attributes.items())):
        _check_text(text)
    return metric.name, tuple(sorted(metric.attributes.items()))


def _interval(milliseconds: int) -> float:
    """Seconds between two pushes; 0 if the broker names no interval."""
    return seconds("push_interval_ms", milliseconds) if milliseconds > 0 else 0.0
