"""Every option of the data source, declared once: `ReadOptions` and `WriteOptions`.

The names are those of Spark's own connector; letter case is ignored, as in Spark. An
unknown name is an error that suggests the nearest one. A name that only Spark's
connector has is an error that names the alternative (`kafkaio.spark._declaration`).
``kafka.*`` are the options of Kafka's Java client, which
`kafkaio.ConsumerConfig.from_properties` and `kafkaio.ProducerConfig.from_properties`
read (`kafkaio.spark._kafka_properties`).

Both classes are made in the driver, checked once, and pickled to the executors. Values
with references (``${env:NAME}``) are kept as they were given, and resolved by
`ReadOptions.client_config` and `WriteOptions.producer_config` in the process that
connects. Neither shows the values of ``kafka.*`` in its ``repr``.

State: none; everything here is immutable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Final, Literal, TypeAlias

from kafkaio._config import ClientConfig, ConsumerConfig, ProducerConfig
from kafkaio._config.declaration import documented, wrong_value
from kafkaio._dataclass import dataclass
from kafkaio.errors import ConfigurationError
from kafkaio.security._references import has_reference
from kafkaio.spark._bounds import (
    AtTime,
    AtTimes,
    Bound,
    ReadTopics,
    check_bounds,
    read_names,
    read_offsets,
    read_partitions,
    read_pattern,
    read_time,
    read_times,
)
from kafkaio.spark._declaration import (
    SparkOption,
    Use,
    declared_by,
    divided,
    spark_option,
    values_of,
)
from kafkaio.spark._kafka_properties import KafkaProperties

IsolationLevel: TypeAlias = Literal["read_uncommitted", "read_committed"]

_MAX: Final = 2**63 - 1
_MAX_INT: Final = 2**31 - 1
#: The start of a Python task costs as much as reading 40,000 to 70,000 records.
_RECORDS_PER_TASK: Final = 50_000
_FETCH_BYTES: Final = 4 * 2**20
#: Five minutes; brokers allow 15 by default. A transaction is open for the time of its
#: task, so Java's default of one minute is too short.
_TRANSACTION_TIMEOUT: Final = "300000"
_UNITS: Final[Mapping[str, float]] = {
    "us": 1e-6,
    "ms": 1e-3,
    "": 1e-3,
    "s": 1,
    "m": 60,
    "min": 60,
    "h": 3600,
    "d": 86400,
}


def _duration(name: str, text: str) -> float:
    """Read Spark's durations, such as ``15m``; a bare number is milliseconds."""
    found = re.fullmatch(r"([0-9]{1,15})(us|ms|s|m|min|h|d|)", text.lower())
    if found is None:
        raise wrong_value(name, text, "is not a duration such as 500ms, 30s, 15m or 1h")
    return float(int(found[1]) * _UNITS[found[2]])


_OFFSETS_ARE_SPARKS = (
    "Spark keeps the offsets in its checkpoint; to show a query's lag by a group, use "
    "commitGroupId"
)
_REFUSED_READ: Mapping[str, str] = {
    "auto.offset.reset": "use startingOffsets, and failOnDataLoss",
    "key.deserializer": (
        "keys are bytes; use .schema('key string, ...') or cast the column"
    ),
    "value.deserializer": (
        "values are bytes; use .schema('value string, ...') or cast the column"
    ),
    "enable.auto.commit": _OFFSETS_ARE_SPARKS,
    "interceptor.classes": "change records by operations on the DataFrame",
}
_REFUSED_WRITE: Mapping[str, str] = {
    "key.serializer": "cast the column key to string or binary",
    "value.serializer": "cast the column value to string or binary",
    "partitioner.class": "write a column partition",
    "transactional.id": "use exactlyOnce=true and transactionalIdPrefix",
    "interceptor.classes": "change rows by operations on the DataFrame",
}


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """The options of one read, checked. Can be pickled, and shows no secret.

    ``is_stream`` says whether they are of a stream, and ``kafka`` has the ``kafka.*``.
    """

    is_stream: bool
    kafka: KafkaProperties
    subscribe: ReadTopics | None = spark_option(
        None,
        "Topics, separated by commas. One of `subscribe`, `subscribePattern` and "
        "`assign` is needed.",
        read=read_names,
    )
    subscribe_pattern: ReadTopics | None = spark_option(
        None,
        "A regular expression (Python's) that is found in the name of a topic; "
        "`^orders$` for the whole name. Internal topics are left out.",
        read=read_pattern,
    )
    assign: ReadTopics | None = spark_option(
        None,
        'Single partitions: `{"orders":[0,1],"payments":[2]}`.',
        read=read_partitions,
    )
    starting_timestamp: AtTime | None = spark_option(
        None,
        "Start at the first record at or after this time, in milliseconds since the "
        "Unix epoch. Wins over the two options below.",
        read=read_time,
    )
    starting_offsets_by_timestamp: AtTimes | None = spark_option(
        None,
        'The same for each partition: `{"orders":{"0":1735689600000}}`. Wins over '
        "`startingOffsets`.",
        read=read_times,
    )
    starting_offsets: Bound | None = spark_option(
        None,
        "`earliest`, `latest`, or an offset for each partition: "
        '`{"orders":{"0":23,"1":-2}}`, where -2 is the earliest and -1 the latest. A '
        "batch cannot start at the latest. A stream that has a checkpoint ignores it.",
        shown="`earliest` in a batch, `latest` in a stream",
        read=read_offsets,
    )
    ending_timestamp: AtTime | None = spark_option(
        None,
        "End before the first record at or after this time. Wins over the two options "
        "below. An error in a stream, as for the two below.",
        only="batch",
        read=read_time,
    )
    ending_offsets_by_timestamp: AtTimes | None = spark_option(
        None,
        "The same for each partition. Wins over `endingOffsets`.",
        only="batch",
        read=read_times,
    )
    ending_offsets: Bound | None = spark_option(
        None,
        "`latest`, or an offset for each partition, which is not read itself; -1 is "
        "the latest. A batch cannot end at the earliest.",
        only="batch",
        shown="`latest`",
        read=read_offsets,
    )
    starting_offsets_by_timestamp_strategy: str = spark_option(
        "error",
        "What to do for a partition without a record at or after the time to start "
        "at: `error`, or start at the `latest`.",
        choices=("error", "latest"),
    )
    fail_on_data_loss: bool = spark_option(
        True,  # noqa: FBT003 - the default value
        "Fail where records were deleted before they were read, or a topic was "
        "deleted or made again. `false`: warn, and read what there is; a topic that "
        "was made again from its first offset.",
    )
    include_headers: bool = spark_option(
        False,  # noqa: FBT003
        "Add the column `headers`. Without effect when writing: a column `headers` is "
        "always written.",
    )
    min_partitions: int | None = spark_option(
        None,
        "Split partitions so that there are about this many tasks.",
        bounds=(1, _MAX_INT),
    )
    max_records_per_partition: int | None = spark_option(
        None,
        "Split partitions so that no task reads more offsets than these.",
        bounds=(1, _MAX),
    )
    max_offsets_per_trigger: int | None = spark_option(
        None,
        "Most offsets of one micro-batch, divided in proportion to what each "
        "partition has; a small partition gets at least one.",
        only="stream",
        is_ignored_else=True,
        bounds=(1, _MAX),
    )
    min_offsets_per_trigger: int | None = spark_option(
        None,
        "Wait until there are this many new offsets, but at most `maxTriggerDelay`. "
        "Without effect under `Trigger.AvailableNow`.",
        only="stream",
        is_ignored_else=True,
        bounds=(0, _MAX),
    )
    max_trigger_delay: float = spark_option(
        900.0,
        "Longest wait for `minOffsetsPerTrigger`.",
        only="stream",
        is_ignored_else=True,
        shown="`15m`",
        read=_duration,
    )
    poll_timeout_ms: int | None = spark_option(
        None,
        "Longest time that a task waits for records, unless "
        "`kafka.default.api.timeout.ms` is set.",
        name="kafkaConsumer.pollTimeoutMs",
        shown="`kafka.request.timeout.ms`",
        bounds=(1, _MAX_INT),
    )
    offset_retries: int = spark_option(
        0,
        "How often planning looks up offsets again after an attempt that failed (see "
        "[Time limits](#time-limits)), in which requests are repeated as well.",
        name="fetchOffset.numRetries",
        bounds=(0, _MAX_INT),
    )
    offset_retry_interval_ms: int = spark_option(
        1_000,
        "Pause between two such attempts.",
        name="fetchOffset.retryIntervalMs",
        bounds=(0, _MAX_INT),
    )
    group_id_prefix: str | None = spark_option(
        None,
        "Accepted; no group is joined. Named in `client.id`, unless "
        "`kafka.client.id` is set.",
    )
    min_records_per_task: int = spark_option(
        0,
        "Bundle small ranges until a task has this many offsets. 0 with "
        "`minPartitions` or `maxRecordsPerPartition`, unless set.",
        shown="50000 in a stream, else 0",
        bounds=(0, _MAX),
    )
    fetch_bytes: int = spark_option(
        _FETCH_BYTES,
        "Bytes that one request of a task fetches.",
        shown="`kafka.max.partition.fetch.bytes` if set, else 4194304",
        bounds=(1, _MAX_INT),
    )
    commit_group_id: str | None = spark_option(
        None,
        "Commit the offsets of finished micro-batches to this group, for tools that "
        "show its lag. Nothing reads them, and they are one micro-batch late.",
        only="stream",
        is_ignored_else=True,
    )

    @classmethod
    def of(cls, options: Mapping[str, str], *, is_stream: bool) -> ReadOptions:
        """Read and check the options of ``spark.read`` or ``spark.readStream``.

        Args:
            options: values by name; letter case is ignored.
            is_stream: whether they are of ``readStream``.

        Raises:
            ConfigurationError: an option is unknown, impossible, or contradicts
                another one; the message names it and the remedy.
        """
        use: Use = "stream read" if is_stream else "batch read"
        own, given = divided(options, use, every_option(), _REFUSED_READ)
        _check_one_of_topics(option.name for option in own)
        kafka = KafkaProperties(given)
        values: dict[str, object] = {
            "min_records_per_task": _RECORDS_PER_TASK if is_stream else 0,
            "fetch_bytes": _fetch_bytes(kafka),
        }
        chosen = values_of(own)
        # A user who asks for more tasks does not want small ranges bundled again.
        if chosen.keys() & {"min_partitions", "max_records_per_partition"}:
            values["min_records_per_task"] = 0
        # The mapping has been checked option by option.
        found = cls(is_stream=is_stream, kafka=kafka, **(values | chosen))  # type: ignore[arg-type]
        found._check()
        return found

    def _check(self) -> None:
        # In the driver, before Spark starts a task: there an error fails the query
        # once, and not each attempt of each task.
        self.kafka.check(ConsumerConfig, {})
        least, most = self.min_offsets_per_trigger, self.max_offsets_per_trigger
        if least is not None and most is not None and least > most:
            raise ConfigurationError(
                f"minOffsetsPerTrigger={least} is more than maxOffsetsPerTrigger={most}"
            )
        if not self.is_stream:
            check_bounds(self.starting, self.ending)

    @property
    def topics(self) -> ReadTopics:
        """The topics to read."""
        found = self.subscribe or self.subscribe_pattern or self.assign
        assert found is not None  # checked when this was made
        return found

    @property
    def starting(self) -> Bound:
        """Where the read starts."""
        return (
            self.starting_timestamp
            or self.starting_offsets_by_timestamp
            or self.starting_offsets
            or ("latest" if self.is_stream else "earliest")
        )

    @property
    def ending(self) -> Bound:
        """Where the read ends; ``"latest"`` in a stream."""
        return (
            self.ending_timestamp
            or self.ending_offsets_by_timestamp
            or self.ending_offsets
            or "latest"
        )

    @property
    def latest_if_no_timestamp(self) -> bool:
        """Where a partition starts that has no record at or after the time to start at.

        True for its latest offset, False for an error.
        """
        return self.starting_offsets_by_timestamp_strategy == "latest"

    @property
    def isolation_level(self) -> IsolationLevel:
        """``kafka.isolation.level``: ``read_uncommitted`` or ``read_committed``."""
        if self._consumer_config().isolation_level == "read_committed":
            return "read_committed"
        return "read_uncommitted"

    def client_config(self, *, in_task: bool) -> ClientConfig:
        """Return the configuration of a client, with references resolved here.

        A call of the client, or its start, ends after ``kafka.default.api.timeout.ms``
        if that is set, in a task else after ``kafkaConsumer.pollTimeoutMs`` if that is
        set, and else after ``kafka.request.timeout.ms``.

        Args:
            in_task: whether it is for a task, and not for planning.

        Raises:
            ConfigurationError: a reference cannot be resolved in this process.
        """
        config = self._consumer_config()
        limit = config.request_timeout_ms
        if self.kafka.get("default.api.timeout.ms") is not None:
            limit = config.default_api_timeout_ms
        elif in_task and self.poll_timeout_ms is not None:
            limit = self.poll_timeout_ms
        return _client_config(config, limit)

    def _consumer_config(self) -> ConsumerConfig:
        # No group is joined; its name helps operators to find the client in the logs
        # of brokers.
        name = self.kafka.get("group.id") or self.group_id_prefix or "kafkaio-spark"
        # A reference is resolved with the others where it stands.
        client_id = "kafkaio-spark" if has_reference(name) else name
        return self.kafka.resolved(ConsumerConfig, {"client.id": client_id})


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """The options of one write, checked. Can be pickled, and shows no secret.

    ``is_stream`` says whether they are of a stream, and ``kafka`` has the ``kafka.*``.
    ``groups_at`` is the topic at whose partition 0 groups keep markers, by choice or
    where the topic of markers may not be created; None if they do not.
    """

    is_stream: bool
    kafka: KafkaProperties
    groups_at: str | None = None
    topic: str | None = spark_option(
        None, "The topic to write to. Wins over the column `topic`."
    )
    exactly_once: bool = spark_option(
        False,  # noqa: FBT003
        "Write every row exactly once, for readers with "
        "`isolation.level=read_committed`.",
    )
    app: str | None = spark_option(
        None,
        "Name of the application, which stays the same over restarts. Needed in a "
        "batch with `exactlyOnce`.",
        name="txnAppId",
        shown="the query's id in a stream",
    )
    version: int | None = spark_option(
        None,
        "Number of what is written, which grows. Needed in a batch with "
        "`exactlyOnce`; an error in a stream, where it would hide every micro-batch "
        "after the first.",
        name="txnVersion",
        shown="the micro-batch's id in a stream",
        bounds=(0, _MAX - 1),
    )
    transactional_id_prefix: str = spark_option(
        "kafkaio",
        "Beginning of the transactional ids, of the topic of markers, and of the "
        "groups that hold markers.",
    )
    marker_store: str = spark_option(
        "topic",
        "What keeps the markers: a compacted `topic` of their own, or consumer "
        "`groups`, which promise less.",
        choices=("topic", "groups"),
    )
    marker_topic: str | None = spark_option(
        None,
        "The topic of the markers. It is created where it is missing, and must be "
        "compacted. With `markerStore=groups`, the topic at whose partition 0 the "
        "groups commit: `topic` by default, and needed without `topic`.",
        shown="`<transactionalIdPrefix>-markers`",
    )
    on_replay_mismatch: str = spark_option(
        "fail",
        "What to do when a repeated batch has other rows than those that are in. "
        "Neither writes rows again.",
        choices=("fail", "warn"),
    )
    checkpoint_location: str | None = spark_option(
        None, "Spark's own: where the query keeps its state.", only="stream"
    )
    query_name: str | None = spark_option(None, "Spark's own.", only="stream")

    @classmethod
    def of(cls, options: Mapping[str, str], *, is_stream: bool) -> WriteOptions:
        """Read and check the options of ``df.write`` or ``df.writeStream``.

        Args:
            options: values by name; letter case is ignored.
            is_stream: whether they are of ``writeStream``.

        Raises:
            ConfigurationError: an option is unknown, impossible, or contradicts
                another one; the message names it and the remedy.
        """
        use: Use = "stream write" if is_stream else "batch write"
        # Accepted for users of Spark's connector: a column `headers` is always written.
        given = {n: v for n, v in options.items() if n.lower() != "includeheaders"}
        own, kafka = divided(given, use, every_option(), _REFUSED_WRITE)
        values = values_of(own)
        if values.get("exactly_once"):
            values |= _marker_topics(values)
        # The mapping has been checked option by option.
        found = cls(is_stream=is_stream, kafka=KafkaProperties(kafka), **values)  # type: ignore[arg-type]
        found._check()
        return found

    @property
    def fails_on_mismatch(self) -> bool:
        """Whether a repeated task with other rows fails, in place of a warning."""
        return self.on_replay_mismatch == "fail"

    def _check(self) -> None:
        # Some options of a producer exclude transactions, such as acks=1: a stand-in
        # for the transactional id lets the check find them in the driver.
        transactional = {"transactional.id": "task"} if self.exactly_once else {}
        self.kafka.check(ProducerConfig, self._defaults() | transactional)
        if not self.exactly_once:
            if self.app is not None or self.version is not None:
                raise ConfigurationError(
                    "txnAppId and txnVersion need exactlyOnce=true: without it nothing "
                    "keeps a repeated write from writing its rows again"
                )
            return
        if self.marker_topic is None:
            raise ConfigurationError(
                "markerStore=groups needs a topic for its markers: set topic, or "
                "markerTopic where rows name their topics in a column"
            )
        if self.marker_store == "topic" and self.marker_topic == self.topic:
            raise ConfigurationError(
                f"markerTopic={self.marker_topic} is the topic that is written to, and "
                "markers are records: name another one, or use markerStore=groups"
            )
        if self.is_stream and self.version is not None:
            raise ConfigurationError(
                "txnVersion in a stream would hide every micro-batch after the first: "
                "leave it out; the micro-batch's id is used"
            )
        if not self.is_stream and (self.app is None or self.version is None):
            raise ConfigurationError(
                "exactlyOnce in a batch needs txnAppId and txnVersion: a name for the "
                "application and a number that grows, by which a repeated write is "
                "recognised"
            )

    def producer_config(self, transactional_id: str | None = None) -> ProducerConfig:
        """Return the configuration of a producer, with references resolved here.

        Its start ends after ``kafka.max.block.ms``, as the first ``send`` of Java's
        producer does; if that is not set, after ``kafka.default.api.timeout.ms``.

        Args:
            transactional_id: the transactional id of the task, None for none.

        Raises:
            ConfigurationError: a reference cannot be resolved in this process.
        """
        defaults = self._defaults()
        if transactional_id is not None:
            defaults["transactional.id"] = transactional_id
        config = self.kafka.resolved(ProducerConfig, defaults)
        return replace(config, default_api_timeout_ms=self._limit_of(config))

    def client_config(self, *, most_ms: int | None = None) -> ClientConfig:
        """Return the configuration of a client, with references resolved here.

        A call of the client, or its start, ends as the start of a producer does.

        Args:
            most_ms: the longest time of a call, if that is shorter.

        Raises:
            ConfigurationError: a reference cannot be resolved in this process.
        """
        config = self.kafka.resolved(ProducerConfig, self._defaults())
        limit = self._limit_of(config)
        return _client_config(config, limit if most_ms is None else min(limit, most_ms))

    def _limit_of(self, config: ProducerConfig) -> int:
        """Return the milliseconds that a call of a client may take."""
        if self.kafka.get("max.block.ms") is None:
            return config.default_api_timeout_ms
        return max(1, config.max_block_ms)

    def _defaults(self) -> dict[str, str]:
        found = {"client.id": "kafkaio-spark"}
        if self.exactly_once:
            found["transaction.timeout.ms"] = _TRANSACTION_TIMEOUT
        return found


def _client_config(config: ClientConfig, limit_ms: int) -> ClientConfig:
    """Return the options of a client, with a time limit for its calls."""
    values = {f.name: getattr(config, f.name) for f in fields(ClientConfig)}
    return ClientConfig(**{**values, "default_api_timeout_ms": limit_ms})


def _marker_topics(values: Mapping[str, object]) -> dict[str, object]:
    """Return where markers are kept: the topic of them, and that of groups."""
    given, topic = values.get("marker_topic"), values.get("topic")
    if values.get("marker_store") == "groups":
        return {"marker_topic": given or topic, "groups_at": given or topic}
    if given is not None:
        # A topic that the user has named is not replaced by groups: if it cannot be
        # made, the write fails.
        return {"marker_topic": given, "groups_at": None}
    prefix = values.get("transactional_id_prefix", "kafkaio")
    return {"marker_topic": f"{prefix}-markers", "groups_at": topic}


@cache
def every_option() -> tuple[SparkOption, ...]:
    """Return every option of the data source, apart from ``kafka.*``."""
    return (*declared_by(ReadOptions, "read"), *declared_by(WriteOptions, "write"))


def check_read(options: Mapping[str, str]) -> None:
    """Check the options of a read of which it is not known whether it is a stream.

    Args:
        options: values by name; letter case is ignored.

    Raises:
        ConfigurationError: they are possible neither in a stream nor in a batch.
    """
    try:
        # As a stream first: a batch would warn of options that only streams have.
        ReadOptions.of(options, is_stream=True)
    except ConfigurationError:
        # Of the two errors, the one that fits the user's intention.
        has_end = any(name.lower().startswith("ending") for name in options)
        ReadOptions.of(options, is_stream=not has_end)


def includes_headers(options: Mapping[str, str]) -> bool:
    """Return whether ``includeHeaders`` is true: decides the schema of a read."""
    name = "includeHeaders"
    texts = [text for given, text in options.items() if given.lower() == name.lower()]
    if not texts:
        return False
    declared = next(each for each in every_option() if each.name == name)
    return declared.read(texts[0]) is True


def _check_one_of_topics(names: Iterable[str]) -> None:
    """Check that exactly one of the given options names topics.

    Raises:
        ConfigurationError: none does, or several do.
    """
    given = [n for n in names if n in {"subscribe", "subscribePattern", "assign"}]
    if len(given) != 1:
        what = f"{' and '.join(given)} were given" if given else "none was given"
        raise ConfigurationError(
            f"exactly one of subscribe, subscribePattern and assign is needed: {what}"
        )


def _fetch_bytes(kafka: KafkaProperties) -> int:
    """Return the value for the connector's option, or the default."""
    tuned = (kafka.get("max.partition.fetch.bytes") or "").strip()
    # A text that is not a number is refused with the other options of Kafka.
    return int(tuned) if re.fullmatch("[0-9]{1,10}", tuned) else _FETCH_BYTES
