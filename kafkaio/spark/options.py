"""Every option of the data source, declared once in `OPTIONS`.

The names are those of Spark's own connector; letter case is ignored, as in Spark. An
unknown name is an error that suggests the nearest one, and a name that only Spark's
connector has is an error that says what to do instead. ``kafka.*`` are the options of
Kafka's Java client, which `kafkaio.ConsumerConfig.from_properties` and
`kafkaio.ProducerConfig.from_properties` read.

`ReadOptions` and `WriteOptions` are what is made of them. They are made in the driver,
checked once, and pickled to the executors. Values with references (``${env:NAME}``) are
kept as they were given, and resolved by `ReadOptions.client_config` and
`WriteOptions.producer_config` in the process that connects. Neither shows the values of
``kafka.*`` in its ``repr``.

State: none; everything here is immutable.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

from kafkaio._dataclass import dataclass
from kafkaio.config import ClientConfig, ConsumerConfig, ProducerConfig
from kafkaio.config.declaration import option_of, wrong_value
from kafkaio.config.jaas import LoginModule, parse_jaas
from kafkaio.config.shown import shown_name
from kafkaio.errors import ConfigurationError
from kafkaio.security.references import has_reference, is_reference, resolve
from kafkaio.types import TopicPartition

__all__ = [
    "EARLIEST",
    "LATEST",
    "OPTIONS",
    "AtOffsets",
    "AtTime",
    "AtTimes",
    "Bound",
    "IsolationLevel",
    "KafkaProperties",
    "Option",
    "ReadOptions",
    "Topics",
    "WriteOptions",
    "includes_headers",
]

T = TypeVar("T")
Use: TypeAlias = Literal["batch read", "stream read", "batch write", "stream write"]
IsolationLevel: TypeAlias = Literal["read_uncommitted", "read_committed"]
_Reader: TypeAlias = Callable[[str, str], object]

_log = logging.getLogger("kafkaio.spark")

#: In the JSON of offsets: the first offset of the partition.
EARLIEST: Final = -2
#: In the JSON of offsets: the offset after the last record of the partition.
LATEST: Final = -1

_MAX = 2**63 - 1
_MAX_INT = 2**31 - 1
#: A Python task costs what reading 40,000 to 70,000 records does.
_RECORDS_PER_TASK = 50_000
_FETCH_BYTES = 4 * 2**20
#: Five minutes; brokers allow 15 by default.
_TRANSACTION_TIMEOUT = "300000"


@dataclass(frozen=True, slots=True)
class AtOffsets:
    """A bound by offset for each partition.

    Attributes:
        offsets: an offset, `EARLIEST` or `LATEST` for each partition.
    """

    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class AtTime:
    """A bound by one time for all partitions.

    Attributes:
        timestamp: milliseconds since the Unix epoch.
    """

    timestamp: int


@dataclass(frozen=True, slots=True)
class AtTimes:
    """A bound by a time for each partition.

    Attributes:
        timestamps: milliseconds since the Unix epoch for each partition.
    """

    timestamps: Mapping[TopicPartition, int]


#: Where a read starts or ends.
Bound: TypeAlias = Literal["earliest", "latest"] | AtOffsets | AtTime | AtTimes


@dataclass(frozen=True, slots=True)
class Topics:
    """What is read: one of the three is set.

    Attributes:
        names: topics by name (``subscribe``).
        pattern: a regular expression that is found in a topic's name
            (``subscribePattern``).
        partitions: single partitions (``assign``).
    """

    names: tuple[str, ...] = ()
    pattern: str = ""
    partitions: tuple[TopicPartition, ...] = ()


class KafkaProperties:
    """The ``kafka.*`` options as given, without the prefix; values are never shown.

    Equal and hashable by names and values. Can be pickled: references in the values
    travel as references.
    """

    __slots__ = ("_given",)

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = tuple(sorted(given.items()))

    def __repr__(self) -> str:
        return f"<kafka.*: {', '.join(name for name, _ in self._given)}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KafkaProperties) and self._given == other._given

    def __hash__(self) -> int:
        return hash(self._given)

    def __reduce__(self) -> tuple[object, ...]:
        return KafkaProperties, (dict(self._given),)

    def get(self, name: str) -> str | None:
        """Return the value of an option as it was given, references unresolved."""
        return dict(self._given).get(name)

    def check(self, config: type[ClientConfig], defaults: Mapping[str, str]) -> None:
        """Check names and values; values with references are not looked at.

        Raises:
            ConfigurationError: a name is unknown or a value is impossible.
        """
        values: dict[str, object] = {**defaults}
        mechanism = self.get("sasl.mechanism") or self.get("sasl.mechanisms")
        for name, value in self._given:
            if name != _JAAS:
                has = has_reference(value)
                values[name] = _stand_in(config, name) if has else value
            elif not is_reference(value):
                values[name] = _module(value, lambda text: text)
            elif mechanism in _STAND_INS:
                values[name] = _STAND_INS[mechanism]
        if "bootstrap.servers" not in values:
            raise ConfigurationError(
                "kafka.bootstrap.servers is missing: give the addresses of brokers, "
                "such as .option('kafka.bootstrap.servers', 'host:9092')"
            )
        _configured(config, values)

    def resolved(self, config: type[C], defaults: Mapping[str, str]) -> C:
        """Make a configuration, with references resolved in this process.

        Args:
            config: the class of the configuration.
            defaults: values by Kafka's names, for those that were not given.

        Raises:
            ConfigurationError: a reference cannot be resolved, or what it stands for
                is impossible; the message does not have the value.
        """
        values: dict[str, object] = {
            n: _resolved(f"kafka.{n}", v) for n, v in self._given if n != _JAAS
        }
        jaas = self.get(_JAAS)
        if jaas is not None:
            values[_JAAS] = _module(
                jaas, lambda text: _resolved(f"kafka.{_JAAS}", text)
            )
        by_reference = [n for n, v in self._given if has_reference(v)]
        try:
            return _configured(config, {**defaults, **values})
        except ConfigurationError:
            if not by_reference:
                raise
        names = ", ".join(f"kafka.{name}" for name in by_reference)
        raise ConfigurationError(
            f"a value that a reference stands for is impossible: one of {names}"
        ) from None


def _resolved(name: str, value: str) -> str:
    """Return a value with its references resolved; an error says in which process."""
    try:
        return resolve(name, value)
    except ConfigurationError as error:
        host, process = os.uname().nodename, os.getpid()
        raise ConfigurationError(
            f"{error} (in process {process} on host {host}); it must exist on the "
            "driver and on every executor"
        ) from None


C = TypeVar("C", bound=ClientConfig)

_JAAS: Final = "sasl.jaas.config"
_PASSWORD: Final = {"username": "x", "password": "x"}
#: By mechanism, what stands for a login module that a reference names.
_STAND_INS: Final = {
    "PLAIN": LoginModule("PlainLoginModule", _PASSWORD),
    "SCRAM-SHA-256": LoginModule("ScramLoginModule", _PASSWORD),
    "SCRAM-SHA-512": LoginModule("ScramLoginModule", _PASSWORD),
    "OAUTHBEARER": LoginModule(
        "OAuthBearerLoginModule", {"unsecuredLoginStringClaim_sub": "x"}
    ),
    "GSSAPI": LoginModule("Krb5LoginModule", {"useTicketCache": "true"}),
}


def _module(text: str, resolved: Callable[[str], str]) -> LoginModule | str:
    """Read ``sasl.jaas.config``, and resolve the references in its values.

    It is read first, so that a password may have a quote or a semicolon. A text that is
    one reference is resolved first.

    Args:
        text: the text.
        resolved: resolves the references of a value.
    """
    if is_reference(text):
        return resolved(text)
    try:
        module = parse_jaas(text)
    except ConfigurationError as error:
        raise ConfigurationError(f"option kafka.*: {error}") from None
    values = {name: resolved(value) for name, value in module.options.items()}
    return LoginModule(module.name, values)


def _stand_in(config: type[ClientConfig], name: str) -> object:
    """Return a value that passes the checks of an option; its name if there is none."""
    if name == "bootstrap.servers":
        return "localhost"
    for declared in fields(config):
        dotted = declared.name.replace("_", ".")
        if name == dotted or name in option_of(declared).aliases:
            is_text = declared.default is None and not option_of(declared).choices
            return name if is_text else declared.default
    return name


def _configured(config: type[C], values: Mapping[str, object]) -> C:
    try:
        return config.from_properties(values)
    except ConfigurationError as error:
        raise ConfigurationError(f"option kafka.*: {error}") from None


class Option(NamedTuple):
    """The declaration of one option.

    Attributes:
        name: the name in Spark's spelling.
        uses: where it has an effect, or is accepted.
        ignored: where it is accepted without effect, with a warning.
        default: the default, as text for the documentation.
        read: turns (name, text) into the value.
        doc: what it means.
    """

    name: str
    uses: tuple[Use, ...]
    default: str
    read: _Reader
    doc: str
    ignored: tuple[Use, ...] = ()


# Readers of values. Each takes the name, for messages, and the text.


def _text(name: str, text: str) -> str:
    if not text.strip():
        raise ConfigurationError(f"{name} is empty")
    return text.strip()


def _flag(name: str, text: str) -> bool:
    flags = {"true": True, "false": False}
    if (found := flags.get(text.strip().lower())) is None:
        raise wrong_value(name, text, "is neither true nor false")
    return found


def _whole(low: int, high: int = _MAX) -> Callable[[str, str], int]:
    def read(name: str, text: str) -> int:
        if not re.fullmatch(r"[+-]?[0-9]{1,19}", text.strip()):
            raise wrong_value(name, text, "is no whole number")
        if not low <= int(text) <= high:
            what = f"less than {low}" if int(text) < low else f"more than {high}"
            raise ConfigurationError(f"{name}={text} is {what}")
        return int(text)

    return read


def _choice(*choices: str) -> Callable[[str, str], str]:
    def read(name: str, text: str) -> str:
        if (found := text.strip().lower()) not in choices:
            raise wrong_value(name, text, f"is neither {' nor '.join(choices)}")
        return found

    return read


_UNITS = {
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
    found = re.fullmatch(r"([0-9]{1,15})(us|ms|s|m|min|h|d|)", text.strip().lower())
    if found is None:
        raise wrong_value(name, text, "is no duration such as 500ms, 30s, 15m or 1h")
    return float(int(found[1]) * _UNITS[found[2]])


def _json(name: str, text: str, example: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not found:
        raise ConfigurationError(f"{name}: JSON such as {example} is needed")
    return found


def _names(name: str, text: str) -> Topics:
    topics = tuple(dict.fromkeys(t.strip() for t in text.split(",") if t.strip()))
    if not topics:
        raise ConfigurationError(f"{name} names no topic")
    return Topics(names=topics)


def _pattern(name: str, text: str) -> Topics:
    pattern = _text(name, text)
    try:
        re.compile(pattern)
    except re.error as error:
        what = f"is not a valid regular expression of Python: {error}"
        raise wrong_value(name, text, what) from None
    return Topics(pattern=pattern)


def _partitions(name: str, text: str) -> Topics:
    example = '{"orders":[0,1],"payments":[0]}'
    found = []
    for topic, numbers in _json(name, text, example).items():
        if not isinstance(numbers, list) or not all(
            type(n) is int and n >= 0 for n in numbers
        ):
            raise ConfigurationError(f"{name}: JSON such as {example} is needed")
        found += [TopicPartition(topic, n) for n in numbers]
    if not found:
        raise ConfigurationError(f"{name} names no partition")
    return Topics(partitions=tuple(sorted(set(found))))


def _by_partition(
    name: str, text: str, example: str, least: int
) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for topic, numbers in _json(name, text, example).items():
        for number, value in (
            numbers.items() if isinstance(numbers, dict) else [("", None)]
        ):
            if not re.fullmatch("[0-9]{1,10}", number) or type(value) is not int:
                raise ConfigurationError(f"{name}: JSON such as {example} is needed")
            if not least <= value <= _MAX:
                raise ConfigurationError(
                    f"{name}: {value} for {topic}-{number} is less than {least}"
                )
            found[TopicPartition(topic, int(number))] = value
    return found


def _offsets(name: str, text: str) -> Bound:
    word = text.strip().lower()
    if word == "earliest":
        return "earliest"
    if word == "latest":
        return "latest"
    example = 'earliest, latest or {"orders":{"0":23,"1":-1,"2":-2}}'
    return AtOffsets(_by_partition(name, text, example, EARLIEST))


def _times(name: str, text: str) -> Bound:
    example = '{"orders":{"0":1735689600000,"1":1735689600000}}'
    return AtTimes(_by_partition(name, text, example, 0))


def _time(name: str, text: str) -> Bound:
    return AtTime(_whole(0)(name, text))


_READ: tuple[Use, ...] = ("batch read", "stream read")
_WRITE: tuple[Use, ...] = ("batch write", "stream write")
_BATCH: tuple[Use, ...] = ("batch read",)
_STREAM: tuple[Use, ...] = ("stream read",)

#: Every option, apart from ``kafka.*``.
OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "subscribe",
        _READ,
        "-",
        _names,
        "Topics, separated by commas. One of `subscribe`, `subscribePattern` and "
        "`assign` is needed.",
    ),
    Option(
        "subscribePattern",
        _READ,
        "-",
        _pattern,
        "A regular expression (Python's) that is found in the name of a topic; "
        "`^orders$` for the whole name. Internal topics are left out.",
    ),
    Option(
        "assign",
        _READ,
        "-",
        _partitions,
        'Single partitions: `{"orders":[0,1],"payments":[2]}`.',
    ),
    Option(
        "startingTimestamp",
        _READ,
        "-",
        _time,
        "Start at the first record at or after this time, in milliseconds since the "
        "Unix epoch. Wins over the two options below.",
    ),
    Option(
        "startingOffsetsByTimestamp",
        _READ,
        "-",
        _times,
        'The same for each partition: `{"orders":{"0":1735689600000}}`. Wins over '
        "`startingOffsets`.",
    ),
    Option(
        "startingOffsets",
        _READ,
        "`earliest` in a batch, `latest` in a stream",
        _offsets,
        "`earliest`, `latest`, or an offset for each partition: "
        '`{"orders":{"0":23,"1":-2}}`, where -2 is the earliest and -1 the latest. A '
        "batch cannot start at the latest. A stream that has a checkpoint ignores it.",
    ),
    Option(
        "endingTimestamp",
        _BATCH,
        "-",
        _time,
        "End before the first record at or after this time. Wins over the two options "
        "below. An error in a stream, as for the two below.",
    ),
    Option(
        "endingOffsetsByTimestamp",
        _BATCH,
        "-",
        _times,
        "The same for each partition. Wins over `endingOffsets`.",
    ),
    Option(
        "endingOffsets",
        _BATCH,
        "`latest`",
        _offsets,
        "`latest`, or an offset for each partition, which is not read itself; -1 is "
        "the latest. A batch cannot end at the earliest.",
    ),
    Option(
        "startingOffsetsByTimestampStrategy",
        _READ,
        "`error`",
        _choice("error", "latest"),
        "What to do for a partition without a record at or after the time to start "
        "at: `error`, or start at the `latest`.",
    ),
    Option(
        "failOnDataLoss",
        _READ,
        "`true`",
        _flag,
        "Fail where records were deleted before they were read, or a topic was "
        "deleted or made again. `false`: warn, and read what there is.",
    ),
    Option(
        "includeHeaders",
        _READ,
        "`false`",
        _flag,
        "Add the column `headers`. Without effect when writing: a column `headers` is "
        "always written.",
        _WRITE,
    ),
    Option(
        "minPartitions",
        _READ,
        "-",
        _whole(1, _MAX_INT),
        "Split partitions so that there are about this many tasks.",
    ),
    Option(
        "maxRecordsPerPartition",
        _READ,
        "-",
        _whole(1),
        "Split partitions so that no task reads more offsets than these.",
    ),
    Option(
        "maxOffsetsPerTrigger",
        _STREAM,
        "-",
        _whole(1),
        "Most offsets of one micro-batch, divided in proportion to what each "
        "partition has; a small partition gets at least one.",
        _BATCH,
    ),
    Option(
        "minOffsetsPerTrigger",
        _STREAM,
        "-",
        _whole(0),
        "Wait until there are this many new offsets, but at most `maxTriggerDelay`. "
        "Without effect under `Trigger.AvailableNow`.",
        _BATCH,
    ),
    Option(
        "maxTriggerDelay",
        _STREAM,
        "`15m`",
        _duration,
        "Longest wait for `minOffsetsPerTrigger`.",
        _BATCH,
    ),
    Option(
        "kafkaConsumer.pollTimeoutMs",
        _READ,
        "`kafka.request.timeout.ms`",
        _whole(1, _MAX_INT),
        "Longest time that a task waits for records.",
    ),
    Option(
        "fetchOffset.numRetries",
        _READ,
        "`0`",
        _whole(0, _MAX_INT),
        "How often planning looks up offsets again after an attempt that took up to "
        "`kafka.request.timeout.ms`, in which requests are repeated as well.",
    ),
    Option(
        "fetchOffset.retryIntervalMs",
        _READ,
        "`1000`",
        _whole(0, _MAX_INT),
        "Pause between two such attempts.",
    ),
    Option(
        "groupIdPrefix",
        _READ,
        "-",
        _text,
        "Accepted; no group is joined. Named in `client.id`, unless "
        "`kafka.client.id` is set.",
    ),
    Option(
        "minRecordsPerTask",
        _READ,
        "50000 in a stream, else 0",
        _whole(0),
        "Bundle small ranges until a task has this many offsets. 0 with "
        "`minPartitions` or `maxRecordsPerPartition`, unless set.",
    ),
    Option(
        "fetchBytes",
        _READ,
        "`kafka.max.partition.fetch.bytes` if set, else 4194304",
        _whole(1, _MAX_INT),
        "Bytes that one request of a task fetches.",
    ),
    Option(
        "commitGroupId",
        _STREAM,
        "-",
        _text,
        "Commit the offsets of finished micro-batches to this group, for tools that "
        "show its lag. Nothing reads them, and they are one micro-batch late.",
        _BATCH,
    ),
    Option(
        "topic",
        _WRITE,
        "-",
        _text,
        "The topic to write to. Wins over the column `topic`.",
    ),
    Option(
        "exactlyOnce",
        _WRITE,
        "`false`",
        _flag,
        "Write every row exactly once, for readers with "
        "`isolation.level=read_committed`.",
    ),
    Option(
        "txnAppId",
        _WRITE,
        "the query's id in a stream",
        _text,
        "Name of the application, which stays the same over restarts. Needed in a "
        "batch with `exactlyOnce`.",
    ),
    Option(
        "txnVersion",
        _WRITE,
        "the micro-batch's id in a stream",
        _whole(0, _MAX - 1),
        "Number of what is written, which grows. Needed in a batch with "
        "`exactlyOnce`; an error in a stream, where it would hide every micro-batch "
        "after the first.",
    ),
    Option(
        "transactionalIdPrefix",
        _WRITE,
        "`kafkaio`",
        _text,
        "Beginning of the transactional ids and of the groups that hold markers.",
    ),
    Option(
        "markerTopic",
        _WRITE,
        "`topic`",
        _text,
        "Topic under which markers are kept. Needed with `exactlyOnce` without "
        "`topic`.",
    ),
    Option(
        "onReplayMismatch",
        _WRITE,
        "`fail`",
        _choice("fail", "warn"),
        "What to do when a repeated task has other rows than those that it wrote the "
        "first time.",
    ),
    Option(
        "checkpointLocation",
        ("stream write",),
        "-",
        _text,
        "Spark's own: where the query keeps its state.",
    ),
    Option("queryName", ("stream write",), "-", _text, "Spark's own."),
)

_BY_NAME: Mapping[str, Option] = {o.name.lower(): o for o in OPTIONS}

#: Options of Spark's own connector, or of Spark, that Python cannot have.
_ELSEWHERE: Mapping[str, str] = {
    "partitionlocationassigner": (
        "Spark lets no Python data source prefer an executor; leave it out"
    ),
    "path": "Kafka has topics and no paths; use subscribe to read and topic to write",
    "endingoffsetsbytimestampstrategy": (
        "there is none: a partition without a record at or after the time is read to "
        "its end"
    ),
    "maxbytespertrigger": "use maxOffsetsPerTrigger",
    "maxfilespertrigger": "use maxOffsetsPerTrigger",
    "numpartitions": "use minPartitions",
    "checkpointlocation": "it is an option of writeStream, not of reading",
    "bootstrap.servers": "use kafka.bootstrap.servers",
    "topics": "use subscribe to read and topic to write",
    "deliveryguarantee": "use exactlyOnce=true",
}
_ELSEWHERE_PREFIXES: Mapping[str, str] = {
    "spark.kafka.clusters.": (
        "delegation tokens are not possible from Python; use kafka.* options"
    ),
    "spark.kafka.consumer.": (
        "there is no pool of consumers: each worker keeps its connections"
    ),
    "spark.kafka.producer.": (
        "there is no pool of producers: each worker keeps its connections"
    ),
    "spark.": "set it in the configuration of the Spark session",
}

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


def _given(
    options: Mapping[str, str], use: Use
) -> tuple[dict[str, str], dict[str, str]]:
    """Divide options into those of `OPTIONS`, by lower-case name, and ``kafka.*``.

    Raises:
        ConfigurationError: one is unknown, refused, or has no place in this use.
    """
    own: dict[str, str] = {}
    kafka: dict[str, str] = {}
    refused = _REFUSED_READ if use.endswith("read") else _REFUSED_WRITE
    for given, value in options.items():
        name = given.lower()
        if name.startswith("kafka."):
            if (instead := refused.get(name[6:])) is not None:
                raise ConfigurationError(f"{given} is not supported: {instead}")
            kafka[name[6:]] = value
        elif _is_of(name, given, use):
            own[name] = value
    return own, kafka


def _is_of(name: str, given: str, use: Use) -> bool:
    """Return whether an option has an effect in this use."""
    option = _BY_NAME.get(name)
    if option is not None and use in option.uses:
        return True
    if option is not None and use in option.ignored:
        if option.name != "includeHeaders":
            _log.warning("option %s has no effect in a %s", option.name, use)
        return False
    raise _unknown(name, given, use)


def _unknown(name: str, given: str, use: Use) -> ConfigurationError:
    option, hint = _BY_NAME.get(name), _ELSEWHERE.get(name)
    if option is not None and name.startswith("ending"):
        return ConfigurationError(
            f"{option.name}: a stream has no end; use a batch read, or "
            "maxOffsetsPerTrigger with Trigger.AvailableNow"
        )
    if hint is None:
        starts = _ELSEWHERE_PREFIXES.items()
        hint = next((h for p, h in starts if name.startswith(p)), None)
    if hint is not None:
        return ConfigurationError(
            f"option {shown_name(given)} is not possible here: {hint}"
        )
    if option is not None:
        where = " or ".join(option.uses)
        return ConfigurationError(
            f"{option.name} is an option of a {where}, not of a {use}"
        )
    # Loaded for mistakes alone.
    import difflib

    known = {o.name.lower(): o.name for o in OPTIONS if use in o.uses}
    known |= {"kafka.bootstrap.servers": "kafka.bootstrap.servers"}
    near = difflib.get_close_matches(name, known, 1, 0.6)
    did = f"; did you mean {known[near[0]]!r}?" if near else ""
    return ConfigurationError(
        f"unknown option {shown_name(given)} of a {use}{did} "
        "(options of Kafka's own client begin with 'kafka.')"
    )


def _value(own: Mapping[str, str], name: str) -> object | None:
    """Read one option; None where it was not given."""
    text = own.get(name.lower())
    if text is None:
        return None
    option = _BY_NAME[name.lower()]
    return option.read(option.name, text)


class _Values:
    """The values of the options given, by name, with the types that callers say."""

    __slots__ = ("_own",)

    def __init__(self, own: Mapping[str, str]) -> None:
        self._own = own

    def of(self, name: str, kind: type[T]) -> T | None:
        """Return an option's value, None where it was not given."""
        found = _value(self._own, name)
        assert found is None or isinstance(found, kind)
        return found

    def flag(self, name: str, *, default: bool) -> bool:
        found = self.of(name, bool)
        return default if found is None else found

    def first(self, *names: str) -> Bound | None:
        """Return the value of the first option that was given: a bound."""
        for name in names:
            found = _value(self._own, name)
            if found == "earliest":
                return "earliest"
            if found == "latest":
                return "latest"
            if isinstance(found, AtOffsets | AtTime | AtTimes):
                return found
        return None


def includes_headers(options: Mapping[str, str]) -> bool:
    """Return whether ``includeHeaders`` is true: decides the schema of a read."""
    own = {name.lower(): value for name, value in options.items()}
    return _Values(own).flag("includeHeaders", default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """The options of one read, checked. Can be pickled, and shows no secret.

    Attributes:
        is_stream: whether they are of a stream.
        kafka: the ``kafka.*`` options.
        topics: what is read.
        starting: where it starts.
        ending: where it ends; ``"latest"`` in a stream.
        latest_if_no_timestamp: whether a partition without a record at or after the
            time to start at starts at its latest offset, in place of an error.
        fail_on_data_loss: whether lost records are an error.
        include_headers: whether the column ``headers`` is in the default schema.
        min_partitions: least number of tasks, about; None for no split.
        max_records_per_partition: most offsets of a task; None for no split.
        max_offsets_per_trigger: most offsets of a micro-batch; None for no limit.
        min_offsets_per_trigger: least offsets of a micro-batch; None for no limit.
        max_trigger_delay: seconds after which that does not count.
        poll_timeout_ms: ``kafkaConsumer.pollTimeoutMs``.
        offset_retries: ``fetchOffset.numRetries``.
        offset_retry_interval_ms: ``fetchOffset.retryIntervalMs``.
        group_id_prefix: ``groupIdPrefix``.
        min_records_per_task: offsets up to which small ranges are bundled.
        fetch_bytes: bytes that one request of a task fetches.
        commit_group_id: the group to commit finished micro-batches to.
    """

    is_stream: bool
    kafka: KafkaProperties
    topics: Topics
    starting: Bound
    ending: Bound = "latest"
    latest_if_no_timestamp: bool = False
    fail_on_data_loss: bool = True
    include_headers: bool = False
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay: float = 900.0
    poll_timeout_ms: int | None = None
    offset_retries: int | None = None
    offset_retry_interval_ms: int | None = None
    group_id_prefix: str | None = None
    min_records_per_task: int = 0
    fetch_bytes: int = _FETCH_BYTES
    commit_group_id: str | None = None

    @classmethod
    def of(cls, options: Mapping[str, str], *, is_stream: bool) -> ReadOptions:
        """Read and check the options of ``spark.read`` or ``spark.readStream``.

        Args:
            options: values by name; letter case is ignored.
            is_stream: whether they are of ``readStream``.

        Raises:
            ConfigurationError: an option is unknown, impossible, or contradicts
                another one; the message names it and says what is needed.
        """
        own, kafka = _given(options, "stream read" if is_stream else "batch read")
        values, properties = _Values(own), KafkaProperties(kafka)
        found = cls(
            is_stream=is_stream,
            kafka=properties,
            topics=_topics(own),
            starting=values.first(
                "startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets"
            )
            or ("latest" if is_stream else "earliest"),
            ending=values.first(
                "endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets"
            )
            or "latest",
            latest_if_no_timestamp=values.of("startingOffsetsByTimestampStrategy", str)
            == "latest",
            fail_on_data_loss=values.flag("failOnDataLoss", default=True),
            include_headers=values.flag("includeHeaders", default=False),
            min_partitions=values.of("minPartitions", int),
            max_records_per_partition=values.of("maxRecordsPerPartition", int),
            max_offsets_per_trigger=values.of("maxOffsetsPerTrigger", int),
            min_offsets_per_trigger=values.of("minOffsetsPerTrigger", int),
            max_trigger_delay=_or(values.of("maxTriggerDelay", float), 900.0),
            poll_timeout_ms=values.of("kafkaConsumer.pollTimeoutMs", int),
            offset_retries=values.of("fetchOffset.numRetries", int),
            offset_retry_interval_ms=values.of("fetchOffset.retryIntervalMs", int),
            group_id_prefix=values.of("groupIdPrefix", str),
            min_records_per_task=_records_per_task(values, is_stream=is_stream),
            fetch_bytes=_fetch_bytes(values, properties),
            commit_group_id=values.of("commitGroupId", str),
        )
        found._check()
        return found

    def _check(self) -> None:
        self.kafka.check(ConsumerConfig, {})
        least, most = self.min_offsets_per_trigger, self.max_offsets_per_trigger
        if least is not None and most is not None and least > most:
            raise ConfigurationError(
                f"minOffsetsPerTrigger={least} is more than maxOffsetsPerTrigger={most}"
            )
        if not self.is_stream:
            _check_batch(self.starting, self.ending)

    @property
    def isolation_level(self) -> IsolationLevel:
        """``kafka.isolation.level``: ``read_uncommitted`` or ``read_committed``."""
        if self._consumer_config().isolation_level == "read_committed":
            return "read_committed"
        return "read_uncommitted"

    def client_config(self, *, in_task: bool) -> ClientConfig:
        """Return the configuration of a client, with references resolved here.

        A call of the client ends after ``request_timeout_ms``, or in a task after
        ``kafkaConsumer.pollTimeoutMs`` or ``kafka.default.api.timeout.ms``, if set.

        Args:
            in_task: whether it is for a task, and not for planning.

        Raises:
            ConfigurationError: a reference cannot be resolved in this process.
        """
        config = self._consumer_config()
        values = {f.name: getattr(config, f.name) for f in fields(ClientConfig)}
        limit = config.request_timeout_ms
        if in_task and self.kafka.get("default.api.timeout.ms") is not None:
            limit = config.default_api_timeout_ms
        elif in_task and self.poll_timeout_ms is not None:
            limit = self.poll_timeout_ms
        return ClientConfig(**{**values, "default_api_timeout_ms": limit})

    def _consumer_config(self) -> ConsumerConfig:
        name = self.kafka.get("group.id") or self.group_id_prefix or "kafkaio-spark"
        # A reference is resolved with the others where it stands.
        client_id = "kafkaio-spark" if has_reference(name) else name
        return self.kafka.resolved(ConsumerConfig, {"client.id": client_id})


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """The options of one write, checked. Can be pickled, and shows no secret.

    Attributes:
        is_stream: whether they are of a stream.
        kafka: the ``kafka.*`` options.
        topic: the topic to write to; None for the column ``topic``.
        exactly_once: whether each task writes a transaction with a marker.
        app: ``txnAppId``; None for the query's id.
        version: ``txnVersion``; None for the micro-batch's id.
        transactional_id_prefix: beginning of transactional ids and marker groups.
        marker_topic: the topic under which markers are kept: ``topic``, else
            ``markerTopic``; None without either.
        fails_on_mismatch: whether a repeated task with other rows fails, in place of
            a warning.
    """

    is_stream: bool
    kafka: KafkaProperties
    topic: str | None = None
    exactly_once: bool = False
    app: str | None = None
    version: int | None = None
    transactional_id_prefix: str = "kafkaio"
    marker_topic: str | None = None
    fails_on_mismatch: bool = True

    @classmethod
    def of(cls, options: Mapping[str, str], *, is_stream: bool) -> WriteOptions:
        """Read and check the options of ``df.write`` or ``df.writeStream``.

        Args:
            options: values by name; letter case is ignored.
            is_stream: whether they are of ``writeStream``.

        Raises:
            ConfigurationError: an option is unknown, impossible, or contradicts
                another one; the message names it and says what is needed.
        """
        own, kafka = _given(options, "stream write" if is_stream else "batch write")
        values = _Values(own)
        topic = values.of("topic", str)
        found = cls(
            is_stream=is_stream,
            kafka=KafkaProperties(kafka),
            topic=topic,
            exactly_once=values.flag("exactlyOnce", default=False),
            app=values.of("txnAppId", str),
            version=values.of("txnVersion", int),
            transactional_id_prefix=_or(
                values.of("transactionalIdPrefix", str), "kafkaio"
            ),
            marker_topic=topic or values.of("markerTopic", str),
            fails_on_mismatch=values.of("onReplayMismatch", str) != "warn",
        )
        found._check()
        return found

    def _check(self) -> None:
        # Transactions do not go with all options of a producer.
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
                "exactlyOnce needs a topic for its markers: set topic, or markerTopic "
                "where rows name their topics in a column"
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

        Args:
            transactional_id: the transactional id of the task, None for none.

        Raises:
            ConfigurationError: a reference cannot be resolved in this process.
        """
        defaults = self._defaults()
        if transactional_id is not None:
            defaults["transactional.id"] = transactional_id
        return self.kafka.resolved(ProducerConfig, defaults)

    def client_config(self) -> ClientConfig:
        """Return the configuration of a client, with references resolved here.

        Raises:
            ConfigurationError: a reference cannot be resolved in this process.
        """
        config = self.kafka.resolved(ProducerConfig, self._defaults())
        names = [f.name for f in fields(ClientConfig)]
        return ClientConfig(**{name: getattr(config, name) for name in names})

    def _defaults(self) -> dict[str, str]:
        found = {"client.id": "kafkaio-spark"}
        if self.exactly_once:
            found["transaction.timeout.ms"] = _TRANSACTION_TIMEOUT
        return found


def _or(value: T | None, default: T) -> T:
    return default if value is None else value


def _topics(own: Mapping[str, str]) -> Topics:
    names = ("subscribe", "subscribePattern", "assign")
    given = [name for name in names if name.lower() in own]
    if len(given) != 1:
        what = f"{' and '.join(given)} were given" if given else "none was given"
        raise ConfigurationError(
            f"exactly one of subscribe, subscribePattern and assign is needed: {what}"
        )
    found = _value(own, given[0])
    assert isinstance(found, Topics)
    return found


def _records_per_task(values: _Values, *, is_stream: bool) -> int:
    given = values.of("minRecordsPerTask", int)
    if given is not None:
        return given
    splits = ("minPartitions", "maxRecordsPerPartition")
    is_split = any(values.of(name, int) is not None for name in splits)
    return _RECORDS_PER_TASK if is_stream and not is_split else 0


def _fetch_bytes(values: _Values, kafka: KafkaProperties) -> int:
    given = values.of("fetchBytes", int)
    if given is not None:
        return given
    tuned = kafka.get("max.partition.fetch.bytes")
    if tuned is None or has_reference(tuned):
        return _FETCH_BYTES
    return _whole(1, _MAX_INT)("kafka.max.partition.fetch.bytes", tuned)


def _check_batch(starting: Bound, ending: Bound) -> None:
    """Check the bounds of a batch.

    Raises:
        ConfigurationError: it starts at the latest, ends at the earliest, or starts
            after its end.
    """
    _check_bound("start", "startingOffsets", starting, "latest", LATEST)
    _check_bound("end", "endingOffsets", ending, "earliest", EARLIEST)
    for first, last, what in (
        (_pairs(starting, AtOffsets), _pairs(ending, AtOffsets), "offset"),
        (_pairs(starting, AtTimes), _pairs(ending, AtTimes), "timestamp"),
    ):
        if first is not None and last is not None:
            _check_pairs(first, last, what)


def _check_bound(
    side: str, name: str, bound: Bound, wrong: str, wrong_offset: int
) -> None:
    if bound == wrong:
        raise ConfigurationError(
            f"{name}={wrong}: a batch cannot {side} at the {wrong}"
        )
    if isinstance(bound, AtOffsets):
        for tp, offset in bound.offsets.items():
            if offset == wrong_offset:
                raise ConfigurationError(
                    f"{name}: {offset} for {tp.topic}-{tp.partition} is the {wrong}: "
                    f"a batch cannot {side} there"
                )


def _pairs(
    bound: Bound, kind: type[AtOffsets | AtTimes]
) -> Mapping[TopicPartition, int] | None:
    if not isinstance(bound, kind):
        return None
    return bound.offsets if isinstance(bound, AtOffsets) else bound.timestamps


def _check_pairs(
    first: Mapping[TopicPartition, int], last: Mapping[TopicPartition, int], what: str
) -> None:
    odd = sorted(first.keys() ^ last.keys())
    if odd:
        names = ", ".join(f"{t}-{p}" for t, p in odd)
        raise ConfigurationError(
            f"starting and ending {what}s name different partitions: only one of them "
            f"has {names}"
        )
    for tp, start in first.items():
        if 0 <= last[tp] < start:
            raise ConfigurationError(
                f"{tp.topic}-{tp.partition}: the starting {what} {start} is after the "
                f"ending {what} {last[tp]}"
            )
