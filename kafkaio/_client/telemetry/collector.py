"""Java's metrics of a client, computed from the calls of `kafkaio.Observer`.

The names, types and attributes are those of Java's producer, consumer and admin client
(KIP-714 demands some of them). A client may be shared by producers and consumers: the
metrics of its connections then stand once under each of their prefixes.

Counting begins when the collector is attached, with the first subscription. Connections
that are open by then count as new. Requests of the handshake are not part of the sizes.
Java's metrics without a counterpart here (its selector, its threads) are left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol, runtime_checkable

from kafkaio._client.telemetry.otlp import Point
from kafkaio._client.telemetry.samples import WINDOW, Naming, Samples, merged
from kafkaio._net.connection import ConnectionStatistics
from kafkaio._runtime.clock import now, wall_ms
from kafkaio._runtime.observer import (
    AcknowledgedBatch,
    AcknowledgedPart,
    AcquiredPart,
    FetchedPart,
    Observer,
)
from kafkaio.errors import AcknowledgeFailed
from kafkaio.types import OffsetAndMetadata, TopicPartition

#: How the names of a kind of client begin, after `_COMMON`.
PRODUCER: Final = "producer"
CONSUMER: Final = "consumer"
SHARE_CONSUMER: Final = "consumer.share"
ADMIN: Final = "admin.client"

_COMMON: Final = "org.apache.kafka"
_MS: Final = 1000.0
_NS: Final = 1e9
#: Java's names of the steps of a transaction.
_STEPS: Final[Mapping[str, str]] = {
    "init": "txn.init",
    "begin": "txn.begin",
    "send_offsets": "txn.send.offsets",
    "commit": "txn.commit",
    "abort": "txn.abort",
}


class _ClientNumbersPort(Protocol):
    @property
    def metadata_age(self) -> float: ...
    @property
    def connections(self) -> tuple[ConnectionStatistics, ...]: ...


class _BufferPort(Protocol):
    @property
    def used_bytes(self) -> int: ...


@runtime_checkable
class _ProducerNumbersPort(Protocol):
    @property
    def buffer_memory(self) -> int: ...
    @property
    def waited_for_room(self) -> float: ...
    @property
    def room_timeouts(self) -> int: ...
    @property
    def waiting_for_room(self) -> int: ...
    @property
    def buffer(self) -> _BufferPort: ...


class _LagPort(Protocol):
    @property
    def lag(self) -> int | None: ...
    @property
    def lead(self) -> int | None: ...


class _IdleNumbersPort(Protocol):
    @property
    def idle_seconds(self) -> float: ...


@runtime_checkable
class _ConsumerNumbersPort(Protocol):
    @property
    def assigned(self) -> int: ...
    @property
    def idle_seconds(self) -> float: ...
    @property
    def partitions(self) -> Mapping[TopicPartition, _LagPort]: ...


@runtime_checkable
class _ShareConsumerNumbersPort(Protocol):
    @property
    def in_flight(self) -> int: ...
    @property
    def idle_seconds(self) -> float: ...


class _NodeSamples:
    """Requests and answers of one broker."""

    __slots__ = ("latency", "received", "sent")

    def __init__(self) -> None:
        self.sent = Samples()
        self.received = Samples()
        self.latency = Samples()

    def all(self) -> tuple[Samples, ...]:
        return self.sent, self.received, self.latency


class _WrittenSamples:
    """Records written to one topic."""

    __slots__ = ("errors", "raw", "records", "retries", "wire")

    def __init__(self) -> None:
        self.records = Samples()
        self.wire = Samples()
        self.raw = Samples()
        self.errors = Samples()
        self.retries = Samples()

    def all(self) -> tuple[Samples, ...]:
        return self.records, self.wire, self.raw, self.errors, self.retries


class _ReadSamples:
    """Records read from one topic."""

    __slots__ = ("fetched", "records")

    def __init__(self) -> None:
        self.fetched = Samples()
        self.records = Samples()

    def all(self) -> tuple[Samples, ...]:
        return self.fetched, self.records


class _SamplesByName(defaultdict[str, Samples]):
    """Samples by name, created on first use."""

    def __init__(self) -> None:
        super().__init__(Samples)


class Collector(Observer):
    """Counts what a client does, and returns it as Java's metrics.

    Args:
        client: returns the statistics of the client.
    """

    def __init__(self, client: Callable[[], _ClientNumbersPort]) -> None:
        self._client = client
        self._began = self._window_began = self._before_began = now()
        self._started_ms = wall_ms()
        self._nodes: defaultdict[int, _NodeSamples] = defaultdict(_NodeSamples)
        self._written: defaultdict[str, _WrittenSamples] = defaultdict(_WrittenSamples)
        self._read: defaultdict[str, _ReadSamples] = defaultdict(_ReadSamples)
        # Answers and throttles by API; `_other` has all metrics of neither a broker nor
        # a topic.
        self._answers = _SamplesByName()
        self._throttles = _SamplesByName()
        self._other = _SamplesByName()
        # By group: consumers and share consumers have metrics of their own.
        self._heartbeats = _SamplesByName()
        self._heartbeat_at: dict[str, float] = {}
        # The total idle time of reads at the last push, and the time of that push, by
        # kind of consumer.
        self._idle: dict[str, tuple[float, float]] = {}
        for _ in client().connections:
            self._other["connection.creation"].add(1)
        # Looked up once: these count every batch or fetch.
        self._queue, self._batch = self._other["queue"], self._other["batch"]
        self._fetch, self._fetched = self._other["fetch"], self._other["fetched"]
        self._per_fetch = self._other["per fetch"]

    # ---- connections -------------------------------------------------------------

    def connection_opened(
        self, node_id: int, connection_class: str, host: str, port: int
    ) -> None:
        """Count it."""
        del node_id, connection_class, host, port
        self._other["connection.creation"].add(1)

    def connection_lost(
        self, node_id: int, connection_class: str, cause: BaseException | None
    ) -> None:
        """Count it."""
        del node_id, connection_class, cause
        self._other["connection.close"].add(1)

    def authenticated(
        self,
        node_id: int,
        connection_class: str,
        mechanism: str,
        lifetime: float,
        seconds: float,
        *,
        is_renewal: bool,
    ) -> None:
        """Count it, with its time."""
        del node_id, connection_class, mechanism, lifetime
        what = "reauthentication" if is_renewal else "authentication"
        self._other[f"successful.{what}"].add(seconds)

    def authentication_failed(
        self,
        node_id: int,
        connection_class: str,
        mechanism: str,
        error: BaseException,
        *,
        is_renewal: bool,
    ) -> None:
        """Count it."""
        del node_id, connection_class, mechanism, error
        what = "reauthentication" if is_renewal else "authentication"
        self._other[f"failed.{what}"].add(1)

    def request_sent(self, api: str, version: int, node_id: int, size: int) -> None:
        """Count its bytes."""
        del api, version
        self._nodes[node_id].sent.add(size)

    def request_answered(
        self, api: str, version: int, node_id: int, seconds: float, size: int
    ) -> None:
        """Count its bytes and its time."""
        del version
        node = self._nodes[node_id]
        node.latency.add(seconds)
        node.received.add(size)
        self._answers[api].add(seconds)

    def throttled(self, node_id: int, seconds: float, api: str) -> None:
        """Count its time."""
        del node_id
        self._throttles[api].add(seconds)

    # ---- producing ---------------------------------------------------------------

    def batch_acknowledged(self, batch: AcknowledgedBatch) -> None:
        """Count its records, bytes and times."""
        topic = self._written[batch.partition.topic]
        topic.records.add(batch.records)
        topic.wire.add(batch.wire_size)
        topic.raw.add(batch.size)
        self._queue.add(batch.queue_seconds)
        self._batch.add(batch.wire_size)

    def batch_retried(
        self,
        partition: TopicPartition,
        records: int,
        attempts: int,
        error: BaseException,
    ) -> None:
        """Count its records."""
        del attempts, error
        self._written[partition.topic].retries.add(records)

    def batch_split(self, partition: TopicPartition, records: int) -> None:
        """Count it."""
        del partition, records
        self._other["batch.split"].add(1)

    def record_failed(
        self, partition: TopicPartition, error: BaseException, count: int
    ) -> None:
        """Count the records."""
        del error
        self._written[partition.topic].errors.add(count)

    def transaction_step(
        self, transactional_id: str, step: str, seconds: float
    ) -> None:
        """Count its time."""
        del transactional_id
        self._other[step].add(seconds)

    # ---- consuming ---------------------------------------------------------------

    def fetch_answered(
        self,
        node_id: int,
        seconds: float,
        parts: Mapping[TopicPartition, FetchedPart],
    ) -> None:
        """Count its records, bytes and time."""
        del node_id
        self._fetch.add(seconds)
        size = records = 0
        for tp, part in parts.items():
            self._read[tp.topic].fetched.add(part.size)
            size += part.size
            records += part.records
        if parts:
            self._fetched.add(size)
            self._per_fetch.add(records)

    def records_handed_out(self, partition: TopicPartition, records: int) -> None:
        """Count the records."""
        self._read[partition.topic].records.add(records)

    def heartbeat_answered(self, group: str, seconds: float) -> None:
        """Count its time."""
        self._heartbeat_at[group] = now()
        self._heartbeats[group].add(seconds)

    def rebalance_completed(self, group: str, seconds: float) -> None:
        """Count its time."""
        del group
        self._other["rebalance"].add(seconds)

    def rebalance_failed(self, group: str, error: BaseException | None) -> None:
        """Count it."""
        del group, error
        self._other["failed.rebalance"].add(1)

    def offsets_committed(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], seconds: float
    ) -> None:
        """Count its time."""
        del offsets
        self._other["commit"].add(seconds)

    # ---- share consumers ---------------------------------------------------------

    def records_acquired(
        self,
        group: str,
        node_id: int,
        seconds: float,
        parts: Mapping[TopicPartition, AcquiredPart],
    ) -> None:
        """Count its records, bytes and time."""
        del group, node_id
        other = self._other
        other["share fetch"].add(seconds)
        if parts:
            other["share fetched"].add(sum(part.size for part in parts.values()))
            records = sum(part.records for part in parts.values())
            other["share per fetch"].add(records)

    def records_acknowledged(
        self,
        group: str,
        node_id: int,
        seconds: float,
        parts: Mapping[TopicPartition, AcknowledgedPart],
    ) -> None:
        """Count the records."""
        del group, node_id, seconds
        records = sum(sum(part) for part in parts.values())
        self._other["acknowledged"].add(records)

    def acknowledgement_failed(
        self,
        group: str,
        partition: TopicPartition,
        first_offset: int,
        last_offset: int,
        error: AcknowledgeFailed,
    ) -> None:
        """Count the records."""
        del group, partition, error
        # Java counts what it has sent, and the errors among it.
        records = last_offset - first_offset + 1
        self._other["acknowledged"].add(records)
        self._other["not acknowledged"].add(records)

    # ---- the metrics -------------------------------------------------------------

    def turn(self) -> None:
        """End the current window if it has lasted long enough."""
        # Both windows of all samples turn together, so one span holds for all rates.
        at = now()
        if at - self._window_began < WINDOW:
            return
        self._before_began, self._window_began = self._window_began, at
        for samples in self._all():
            samples.turn()

    def _all(self) -> Iterator[Samples]:
        by_name = self._answers, self._throttles, self._other
        for part in (*by_name, self._heartbeats):
            yield from part.values()
        for node in self._nodes.values():
            yield from node.all()
        for written in self._written.values():
            yield from written.all()
        for read in self._read.values():
            yield from read.all()

    def points(
        self,
        kinds: Collection[str],
        sources: Iterable[object],
        share_groups: Collection[str] = (),
    ) -> Sequence[Point]:
        """Return the values of all metrics, the most important ones first.

        Args:
            kinds: the uses of the client: `PRODUCER`, `CONSUMER`, `SHARE_CONSUMER` or
                `ADMIN`.
            sources: the statistics of its producers and consumers.
            share_groups: the groups of its share consumers; others are consumer groups.
        """
        at = now()
        span = max(at - self._before_began, WINDOW)
        numbers = list(sources)
        found = [
            Point(f"{_COMMON}.app.info.start.time.ms", self._started_ms),
        ]
        consumer_groups = {*self._heartbeats} - {*share_groups}
        # The connections of a share consumer are under the prefix of consumers.
        shown = dict.fromkeys(
            CONSUMER if kind == SHARE_CONSUMER else kind for kind in kinds
        )
        for kind in shown or (ADMIN,):
            name = Naming(f"{_COMMON}.{kind}", span)
            found += self._of_client(name)
            if kind == PRODUCER:
                found += self._of_producer(name)
                found += _room(name, numbers, at - self._began)
            elif kind == CONSUMER:
                if CONSUMER in kinds:
                    found += self._of_consumer(span, numbers, at, consumer_groups)
                if SHARE_CONSUMER in kinds:
                    found += self._of_share_consumer(span, numbers, at, share_groups)
            found += self._of_nodes(f"{_COMMON}.{kind}.node", span)
            if kind == PRODUCER:
                found += self._of_written(f"{_COMMON}.{kind}.topic", span)
            elif kind == CONSUMER:
                found += self._of_read(f"{_COMMON}.{kind}.fetch.manager", span)
                found += _of_partitions(f"{_COMMON}.{kind}.fetch.manager", numbers)
        return found

    def _of_client(self, name: Naming) -> Iterator[Point]:
        other, client = self._other, self._client()
        nodes = self._nodes.values()
        sent = merged(node.sent for node in nodes)
        received = merged(node.received for node in nodes)
        for what in ("connection.creation", "connection.close"):
            yield from name.counted(what, other[what])
        yield name.gauge("connection.count", len(client.connections))
        yield from name.counted("request", sent)
        yield from name.counted("response", received)
        yield from name.spread("request.size", sent)
        yield from name.summed("outgoing.byte", sent)
        yield from name.summed("incoming.byte", received)
        yield from name.counted("network.io", merged([sent, received]))
        for what in ("authentication", "reauthentication"):
            yield from name.counted(f"successful.{what}", other[f"successful.{what}"])
            yield from name.counted(f"failed.{what}", other[f"failed.{what}"])
        renewals = other["successful.reauthentication"]
        yield from name.spread("reauthentication.latency", renewals, _MS)

    def _throttle(self, name: Naming, what: str, api: str) -> Iterator[Point]:
        # As in Java, an answer without a throttle counts as 0: the average is over all
        # answers, the maximum over those with a throttle.
        answers, throttles = self._answers[api], self._throttles[api]
        count = answers.recent_count
        average = throttles.recent_total / count if count else answers.average
        greatest = throttles.greatest if throttles.recent_count else average
        yield name.gauge(f"{what}.throttle.time.avg", average * _MS)
        yield name.gauge(f"{what}.throttle.time.max", greatest * _MS)

    def _of_producer(self, name: Naming) -> Iterator[Point]:
        topics = self._written.values()
        records = merged(topic.records for topic in topics)
        raw = merged(topic.raw for topic in topics)
        client = self._client()
        latency = merged(node.latency for node in self._nodes.values())
        yield from name.spread("request.latency", latency, _MS)
        flying = sum(one.in_flight for one in client.connections)
        yield name.gauge("requests.in.flight", flying)
        yield name.gauge("metadata.age", client.metadata_age)
        yield from self._throttle(name, "produce", "Produce")
        yield from name.spread("record.queue.time", self._queue, _MS)
        yield from name.spread("batch.size", self._batch)
        yield from name.summed("record.send", records)
        yield from name.summed("record.error", merged(one.errors for one in topics))
        yield from name.summed("record.retry", merged(one.retries for one in topics))
        yield from name.counted("batch.split", self._other["batch.split"])
        yield name.gauge("compression.rate.avg", _ratio(self._batch, raw))
        requests = self._answers["Produce"].recent_count
        if requests:
            per_request = records.recent_total / requests
            yield name.gauge("records.per.request.avg", per_request)
        for step, called in _STEPS.items():
            yield name.sum(f"{called}.time.ns.total", self._other[step].all_total * _NS)

    def _of_consumer(
        self,
        span: float,
        sources: Sequence[object],
        at: float,
        groups: Collection[str],
    ) -> Iterator[Point]:
        prefix = f"{_COMMON}.{CONSUMER}"
        numbers = [one for one in sources if isinstance(one, _ConsumerNumbersPort)]
        idle = self._idle_ratio(CONSUMER, numbers, at)
        yield Point(f"{prefix}.poll.idle.ratio.avg", idle)
        yield from self._of_group(
            Naming(f"{prefix}.coordinator", span), numbers, at, groups
        )
        name = Naming(f"{prefix}.fetch.manager", span)
        yield from name.spread("fetch.latency", self._fetch, _MS)
        yield from name.counted("fetch", self._fetch)
        yield from name.spread("fetch.size", self._fetched)
        yield from name.summed("bytes.consumed", self._fetched)
        records = merged(one.records for one in self._read.values())
        yield from name.summed("records.consumed", records)
        yield name.gauge("records.per.request.avg", self._per_fetch.average)
        yield from self._throttle(name, "fetch", "Fetch")
        places = [place for one in numbers for place in one.partitions.values()]
        lags = [place.lag for place in places if place.lag is not None]
        leads = [place.lead for place in places if place.lead is not None]
        if lags:
            yield name.gauge("records.lag.max", max(lags))
        if leads:
            yield name.gauge("records.lead.min", min(leads))

    def _of_share_consumer(
        self,
        span: float,
        sources: Sequence[object],
        at: float,
        groups: Collection[str],
    ) -> Iterator[Point]:
        prefix = f"{_COMMON}.{SHARE_CONSUMER}"
        numbers = [one for one in sources if isinstance(one, _ShareConsumerNumbersPort)]
        idle = self._idle_ratio(SHARE_CONSUMER, numbers, at)
        yield Point(f"{prefix}.poll.idle.ratio.avg", idle)
        name = Naming(f"{prefix}.coordinator", span)
        yield from self._of_heartbeats(name, at, groups)
        other, name = self._other, Naming(f"{prefix}.fetch.manager", span)
        yield from name.spread("fetch.latency", other["share fetch"], _MS)
        yield from name.counted("fetch", other["share fetch"])
        yield from name.spread("fetch.size", other["share fetched"])
        yield from name.summed("bytes.consumed", other["share fetched"])
        yield from name.summed("records.consumed", other["share per fetch"])
        yield from name.spread("records.per.request", other["share per fetch"])
        yield from self._throttle(name, "fetch", "ShareFetch")
        yield from name.summed("acknowledgements.send", other["acknowledged"])
        yield from name.summed("acknowledgements.error", other["not acknowledged"])

    def _of_group(
        self,
        name: Naming,
        numbers: Sequence[_ConsumerNumbersPort],
        at: float,
        groups: Collection[str],
    ) -> Iterator[Point]:
        other = self._other
        rebalances = other["rebalance"]
        assigned = sum(one.assigned for one in numbers)
        yield name.gauge("assigned.partitions", assigned)
        yield from name.spread("commit.latency", other["commit"], _MS)
        yield from name.counted("commit", other["commit"])
        yield from name.spread("rebalance.latency", rebalances, _MS)
        took = rebalances.all_total * _MS
        yield name.sum("rebalance.latency.total", took)
        yield from name.hourly("rebalance", rebalances)
        yield from name.hourly("failed.rebalance", other["failed.rebalance"])
        yield from self._of_heartbeats(name, at, groups)

    def _of_heartbeats(
        self, name: Naming, at: float, groups: Collection[str]
    ) -> Iterator[Point]:
        beats = merged(self._heartbeats[group] for group in groups)
        yield from name.counted("heartbeat", beats)
        yield name.gauge("heartbeat.response.time.max", beats.greatest * _MS)
        times = [at for group, at in self._heartbeat_at.items() if group in groups]
        ago = at - max(times) if times else -1.0
        yield name.gauge("last.heartbeat.seconds.ago", ago)

    def _idle_ratio(
        self, kind: str, numbers: Sequence[_IdleNumbersPort], at: float
    ) -> float:
        # Consumers come and go between two pushes, and their sums with them. The ratio
        # is limited to 0 and 1, because their difference may be out of these bounds.
        idle = sum(one.idle_seconds for one in numbers)
        before, since = self._idle.get(kind, (0.0, self._began))
        self._idle[kind] = idle, at
        elapsed = (at - since) * len(numbers)
        return min(1.0, max(0.0, idle - before) / elapsed) if elapsed > 0 else 0.0

    def _of_nodes(self, prefix: str, span: float) -> Iterator[Point]:
        for node_id, node in self._nodes.items():
            name = Naming(prefix, span, (("node_id", f"node-{node_id}"),))
            yield from name.spread("request.latency", node.latency, _MS)
            yield from name.counted("request", node.sent)
            yield from name.counted("response", node.received)
            yield from name.spread("request.size", node.sent)
            yield from name.summed("outgoing.byte", node.sent)
            yield from name.summed("incoming.byte", node.received)

    def _of_written(self, prefix: str, span: float) -> Iterator[Point]:
        for topic, written in self._written.items():
            name = Naming(prefix, span, (("topic", topic),))
            yield from name.summed("record.send", written.records)
            yield from name.summed("record.error", written.errors)
            yield from name.summed("record.retry", written.retries)
            yield from name.summed("byte", written.wire)
            yield name.gauge("compression.rate", _ratio(written.wire, written.raw))

    def _of_read(self, prefix: str, span: float) -> Iterator[Point]:
        for topic, read in self._read.items():
            name = Naming(prefix, span, (("topic", topic),))
            yield from name.summed("records.consumed", read.records)
            yield from name.summed("bytes.consumed", read.fetched)
            yield from name.spread("fetch.size", read.fetched)


def _ratio(wire: Samples, raw: Samples) -> float:
    return wire.recent_total / raw.recent_total if raw.recent_total else wire.average


def _room(name: Naming, sources: Sequence[object], seconds: float) -> Iterator[Point]:
    numbers = [one for one in sources if isinstance(one, _ProducerNumbersPort)]
    memory = sum(one.buffer_memory for one in numbers)
    used = sum(one.buffer.used_bytes for one in numbers)
    waited = sum(one.waited_for_room for one in numbers)
    yield name.gauge("buffer.total.bytes", memory)
    yield name.gauge("buffer.available.bytes", memory - used)
    yield name.gauge("waiting.threads", sum(one.waiting_for_room for one in numbers))
    exhausted = sum(one.room_timeouts for one in numbers)
    yield name.sum("buffer.exhausted.total", exhausted)
    yield name.sum("bufferpool.wait.time.ns.total", waited * _NS)
    if seconds > 0:
        yield name.gauge("buffer.exhausted.rate", exhausted / max(seconds, WINDOW))


def _of_partitions(prefix: str, sources: Sequence[object]) -> Iterator[Point]:
    for one in sources:
        if not isinstance(one, _ConsumerNumbersPort):
            continue
        for tp, place in one.partitions.items():
            about = ("partition", str(tp.partition)), ("topic", tp.topic)
            if place.lag is not None:
                yield Point(f"{prefix}.records.lag", place.lag, about)
            if place.lead is not None:
                yield Point(f"{prefix}.records.lead", place.lead, about)
