"""The names of OpenTelemetry's messaging conventions, in this module only.

The conventions are in development, and 1.45 renamed some attributes. As in other
libraries, the old names stay in force unless ``OTEL_SEMCONV_STABILITY_OPT_IN`` has
``messaging`` (the new names) or ``messaging/dup`` (both).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from kafkaio._dataclass import dataclass

#: What attributes may be.
Attributes: TypeAlias = Mapping[str, str | int | bool]

#: The environment variable, which has words with commas between them.
OPT_IN: Final = "OTEL_SEMCONV_STABILITY_OPT_IN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The names of attributes in one version of the conventions.

    Attributes:
        version: the version.
        system: always ``kafka``.
        destination: the topic.
        partition: the partition, as text.
        group: the consumer group or share group.
        client: the client id.
        operation: ``send``, ``create``, ``poll``, ``process``, ``commit`` or ``ack``.
        operation_type: what kind of operation that is.
        count: number of records of a batch.
        offset: offset of a record.
        key: key of a record, if it is text.
        tombstone: whether the record has no value.
        error: the class of an error.
        query: a streaming query of Spark; not of the conventions.
    """

    version: str
    system: str = "messaging.system"
    destination: str = "messaging.destination.name"
    partition: str = "messaging.destination.partition.id"
    group: str = "messaging.consumer.group.name"
    client: str = "messaging.client.id"
    operation: str = "messaging.operation.name"
    operation_type: str = "messaging.operation.type"
    count: str = "messaging.batch.message_count"
    offset: str = "messaging.kafka.offset"
    key: str = "messaging.kafka.message.key"
    tombstone: str = "messaging.kafka.message.tombstone"
    error: str = "error.type"
    query: str = "kafkaio.query"

    @property
    def schema_url(self) -> str:
        """The address of the schema."""
        return f"https://opentelemetry.io/schemas/{self.version}"


#: In force by default.
PUBLISHED: Final = Names(version="1.44.0")
#: In force if it is asked for.
LATEST: Final = Names(
    version="1.45.0",
    system="messaging.system.name",
    offset="kafka.offset",
    key="kafka.message.key",
    tombstone="kafka.message.tombstone",
)


@dataclass(frozen=True, slots=True)
class Instrument:
    """A metric.

    Attributes:
        name: its name.
        unit: its unit.
        help: its description.
    """

    name: str
    unit: str
    help: str


#: Where a bucket of seconds ends, as the conventions want for their metrics.
SECONDS: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.075),
    *(0.1, 0.25, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0),
)

#: The metrics of the conventions, and those of kafkaio that they have nothing for.
METRICS: Final[Mapping[str, Instrument]] = {
    "operation": Instrument(
        "messaging.client.operation.duration",
        "s",
        "Duration of messaging operation initiated by a producer or consumer client.",
    ),
    "sent": Instrument(
        "messaging.client.sent.messages",
        "{message}",
        "Number of messages producer attempted to send to the broker.",
    ),
    "consumed": Instrument(
        "messaging.client.consumed.messages",
        "{message}",
        "Number of messages that were delivered to the application.",
    ),
    "process": Instrument(
        "messaging.process.duration", "s", "Duration of processing operation."
    ),
    "request": Instrument(
        "kafkaio.request.duration", "s", "Requests other than Produce and Fetch."
    ),
    "queue": Instrument(
        "kafkaio.producer.queue.time", "s", "Time of batches in the buffer, in sum."
    ),
    "batches": Instrument(
        "kafkaio.producer.batches", "{batch}", "Batches that were acknowledged."
    ),
    "rebalance": Instrument(
        "kafkaio.consumer.rebalance.duration", "s", "Rebalances of a member."
    ),
    "failed_rebalances": Instrument(
        "kafkaio.consumer.rebalance.failures", "{rebalance}", "Rebalances that failed."
    ),
    "transaction": Instrument(
        "kafkaio.transaction.duration", "s", "Steps of transactions."
    ),
    "retries": Instrument(
        "kafkaio.retries", "{attempt}", "Requests and other steps that were repeated."
    ),
    "redelivered": Instrument(
        "kafkaio.share.redelivered",
        "{message}",
        "Messages of share groups that were delivered before.",
    ),
    "acknowledged": Instrument(
        "kafkaio.share.acknowledged",
        "{message}",
        "Messages of share groups that were acknowledged, by outcome.",
    ),
    "failed_acknowledgements": Instrument(
        "kafkaio.share.acknowledgement.failures",
        "{message}",
        "Messages whose acknowledgement did not count, or whose result is unknown.",
    ),
    "lost_locks": Instrument(
        "kafkaio.share.locks.lost",
        "{message}",
        "Messages whose lock was lost before a decision.",
    ),
    "renewed_locks": Instrument(
        "kafkaio.share.locks.renewed", "{message}", "Messages whose lock was renewed."
    ),
    "handler_failures": Instrument(
        "kafkaio.share.handler.failures",
        "{message}",
        "Messages whose handler of run() failed, by what became of them.",
    ),
    "failed_authentications": Instrument(
        "kafkaio.authentication.failures", "{attempt}", "Credentials that were refused."
    ),
}

#: The names and units of `kafkaio.metrics._gauges.GAUGES`.
OWN_GAUGES: Final[Mapping[str, tuple[str, str]]] = {
    "connections": ("kafkaio.connections", "{connection}"),
    "requests_in_flight": ("kafkaio.requests.in_flight", "{request}"),
    "metadata_age_seconds": ("kafkaio.metadata.age", "s"),
    "buffer_bytes": ("kafkaio.producer.buffer.usage", "By"),
    "buffer_limit_bytes": ("kafkaio.producer.buffer.limit", "By"),
    "buffer_waiting_calls": ("kafkaio.producer.buffer.waiting", "{call}"),
    "buffer_wait_seconds_total": ("kafkaio.producer.buffer.wait", "s"),
    "buffer_timeouts_total": ("kafkaio.producer.buffer.timeouts", "{call}"),
    "consumer_assigned_partitions": ("kafkaio.consumer.partitions", "{partition}"),
    "consumer_buffer_bytes": ("kafkaio.consumer.buffer.usage", "By"),
    "consumer_idle_seconds_total": ("kafkaio.consumer.idle", "s"),
    "consumer_lag": ("kafkaio.consumer.lag", "{message}"),
    "consumer_lag_max": ("kafkaio.consumer.lag.max", "{message}"),
    "consumer_lead_min": ("kafkaio.consumer.lead.min", "{message}"),
    "share_assigned_partitions": ("kafkaio.share.partitions", "{partition}"),
    "share_records_in_flight": ("kafkaio.share.in_flight", "{message}"),
    "share_buffered_records": ("kafkaio.share.buffered", "{message}"),
    "share_buffer_bytes": ("kafkaio.share.buffer.usage", "By"),
    "share_idle_seconds_total": ("kafkaio.share.idle", "s"),
    "query_lag": ("kafkaio.query.lag", "{message}"),
    "query_offsets_behind_min": ("kafkaio.query.behind.min", "{message}"),
    "query_offsets_behind_max": ("kafkaio.query.behind.max", "{message}"),
    "query_offsets_behind_avg": ("kafkaio.query.behind.avg", "{message}"),
}


def names_in_force(environ: Mapping[str, str]) -> tuple[Names, ...]:
    """Return the names to use: one version of the conventions, or two.

    Args:
        environ: the environment variables.
    """
    words = {word.strip() for word in environ.get(OPT_IN, "").split(",")}
    if "messaging/dup" in words:
        return PUBLISHED, LATEST
    return (LATEST,) if "messaging" in words else (PUBLISHED,)


def attributes(
    names: tuple[Names, ...], facts: Mapping[str, str | int | bool | None]
) -> dict[str, str | int | bool]:
    """Return attributes by their names in all versions in force.

    Args:
        names: the versions.
        facts: values by the attributes of `Names`; None leaves one out.
    """
    return {
        getattr(version, fact): value
        for version in names
        for fact, value in facts.items()
        if value is not None
    }
