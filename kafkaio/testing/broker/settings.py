"""Topic configs: their names, Kafka 4.3's defaults, and what a broker makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.testing.broker.refusal import Refusal
from kafkaio.testing.log import LogConfig

__all__ = ["BROKER_DEFAULTS", "TOPIC_DEFAULTS", "Setting", "TopicSettings", "validate"]

Kind = Literal["boolean", "string", "int", "long", "double", "list"]

_MAX_LONG: Final = str(2**63 - 1)


@dataclass(frozen=True, slots=True)
class Setting:
    """One config: what kind of value it has, and its default."""

    kind: Kind
    default: str
    choices: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None


TOPIC_DEFAULTS: Final[Mapping[str, Setting]] = {
    "cleanup.policy": Setting("list", "delete", ("delete", "compact")),
    "compression.type": Setting(
        "string",
        "producer",
        ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    ),
    "delete.retention.ms": Setting("long", "86400000"),
    "file.delete.delay.ms": Setting("long", "60000"),
    "flush.messages": Setting("long", _MAX_LONG),
    "flush.ms": Setting("long", _MAX_LONG),
    "index.interval.bytes": Setting("int", "4096"),
    "max.compaction.lag.ms": Setting("long", _MAX_LONG),
    "max.message.bytes": Setting("int", "1048588", least=0),
    "message.timestamp.after.max.ms": Setting("long", "3600000"),
    "message.timestamp.before.max.ms": Setting("long", _MAX_LONG),
    "message.timestamp.type": Setting(
        "string", "CreateTime", ("CreateTime", "LogAppendTime")
    ),
    "min.cleanable.dirty.ratio": Setting("double", "0.5"),
    "min.compaction.lag.ms": Setting("long", "0"),
    "min.insync.replicas": Setting("int", "1", least=1),
    "preallocate": Setting("boolean", "false", ("true", "false")),
    "retention.bytes": Setting("long", "-1"),
    "retention.ms": Setting("long", "604800000", least=-1),
    "segment.bytes": Setting("int", "1073741824"),
    "segment.index.bytes": Setting("int", "10485760"),
    "segment.jitter.ms": Setting("long", "0"),
    "segment.ms": Setting("long", "604800000"),
    "unclean.leader.election.enable": Setting("boolean", "false", ("true", "false")),
}

#: What DescribeConfigs tells of a node, besides its id.
BROKER_DEFAULTS: Final[Mapping[str, Setting]] = {
    "auto.create.topics.enable": Setting("boolean", "true", ("true", "false")),
    "default.replication.factor": Setting("int", "1"),
    "group.initial.rebalance.delay.ms": Setting("int", "0"),
    "message.max.bytes": Setting("int", "1048588"),
    "num.partitions": Setting("int", "1"),
    "offsets.topic.num.partitions": Setting("int", "50"),
}


def validate(known: Mapping[str, Setting], name: str, value: str | None) -> None:
    """Hold one config against what is known of it.

    Raises:
        Refusal: INVALID_CONFIG for an unknown name or a value that does not fit.
    """
    setting = known.get(name)
    if setting is None:
        raise Refusal(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
    if value is None:
        raise Refusal(ErrorCode.INVALID_CONFIG, f"Null value not supported for {name}")
    if not _fits(setting, value):
        raise Refusal(
            ErrorCode.INVALID_CONFIG,
            f"Invalid value {value} for configuration {name}",
        )


def _fits(setting: Setting, value: str) -> bool:
    parts = [value]
    if setting.kind == "list":
        parts = [part for part in value.split(",") if part]
    if setting.choices:
        return all(part.strip() in setting.choices for part in parts)
    try:
        if setting.kind == "double":
            float(value)
        elif setting.kind in {"int", "long"}:
            limit = 1 << (31 if setting.kind == "int" else 63)
            least = -limit if setting.least is None else setting.least
            most = limit - 1 if setting.most is None else setting.most
            return least <= int(value) <= most
    except ValueError:
        return False
    return True


class TopicSettings:
    """The configs of one topic: what was set, over the defaults."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self.values: dict[str, str] = dict(values or {})

    def get(self, name: str) -> str:
        """The value in force."""
        return self.values.get(name, TOPIC_DEFAULTS[name].default)

    @property
    def log_config(self) -> LogConfig:
        """The part that a log obeys."""
        return LogConfig.from_topic(self.values)

    @property
    def max_message_bytes(self) -> int:
        """The largest batch that may be produced."""
        return int(self.get("max.message.bytes"))

    @property
    def min_insync_replicas(self) -> int:
        """In-sync replicas that a write with acks=all needs."""
        return int(self.get("min.insync.replicas"))

    @property
    def elects_unclean(self) -> bool:
        """Whether a replica may lead that has not got all."""
        return self.get("unclean.leader.election.enable") == "true"

    @property
    def is_deleting(self) -> bool:
        """Whether records may go before their time."""
        return "delete" in self.get("cleanup.policy")

    @property
    def is_compacted(self) -> bool:
        """Whether every record needs a key."""
        return "compact" in self.get("cleanup.policy")
