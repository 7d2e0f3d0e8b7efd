"""Topic configs: names, Kafka 4.4's defaults, and the values in force for a topic.

`validate` and `mismatch` check a value against any config's type and limits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from kafkaio._public import public
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._log import LogConfig

Kind = Literal[
    "boolean", "string", "int", "short", "long", "double", "list", "class", "password"
]

_MAX_LONG: Final = str(2**63 - 1)
_BITS: Final[Mapping[str, int]] = {"short": 15, "int": 31, "long": 63}
_WHOLE: Final = re.compile(r"[+-]?[0-9]+$")
#: A choice that stands for any duration in days, hours, minutes and seconds.
_DURATION: Final = "by_duration:PnDTnHnMn.nS"
_BY_DURATION: Final = re.compile(
    r"by_duration:P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Setting:
    """One config.

    Attributes:
        kind: the type of its value.
        default: the value if none is set; None for none.
        choices: the values allowed; empty for any.
        least: the least number allowed.
        most: the greatest number allowed.
    """

    kind: Kind
    default: str | None
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None


TOPIC_DEFAULTS: Final[Mapping[str, Setting]] = {
    "cleanup.policy": Setting("list", "delete", ("delete", "compact")),
    "compression.type": Setting(
        "string",
        "producer",
        ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    ),
    "delete.retention.ms": Setting("long", "86400000"),
    "errors.deadletterqueue.group.enable": Setting(
        "boolean", "false", ("true", "false")
    ),
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


def validate(
    known: Mapping[str, Setting], name: str, value: str | None, owner: str = "topic"
) -> None:
    """Check the name and the value of one config.

    Args:
        known: the configs that exist.
        name: the config.
        value: its value.
        owner: what has the configs, for the error's message.

    Raises:
        Refusal: INVALID_CONFIG for an unknown name or a value that is not allowed.
    """
    setting = known.get(name)
    if setting is None:
        raise Refusal(ErrorCode.INVALID_CONFIG, f"Unknown {owner} config name: {name}")
    if value is None:
        raise Refusal(ErrorCode.INVALID_CONFIG, f"Null value not supported for {name}")
    reason = mismatch(setting, value)
    if reason is not None:
        raise Refusal(
            ErrorCode.INVALID_CONFIG,
            f"Invalid value {value} for configuration {name}: {reason}",
        )


def mismatch(setting: Setting, value: str) -> str | None:
    """The reason why a config cannot have a value; None if it can."""
    value = value.strip()
    if setting.kind == "boolean":
        fits = value.lower() in {"true", "false"}
        return None if fits else "must be true or false"
    # First the type, then the choices: the reason names what is wrong first.
    if setting.kind in _BITS or setting.kind == "double":
        wrong = _out_of_range(setting, value)
        if wrong is not None:
            return wrong
    parts = [value]
    if setting.kind == "list":
        parts = [part.strip() for part in value.split(",")] if value else []
    if setting.choices and not all(_is_among(setting.choices, one) for one in parts):
        return f"must be one of: {', '.join(setting.choices)}"
    return None


def _is_among(choices: tuple[str, ...], value: str) -> bool:
    if value in choices:
        return value != _DURATION
    return _DURATION in choices and _BY_DURATION.match(value) is not None


def _out_of_range(setting: Setting, value: str) -> str | None:
    number: float
    if setting.kind == "double":
        try:
            number = float(value)
        except ValueError:
            return "must be a number"
    else:
        limit = 1 << _BITS[setting.kind]
        # By the size of the type in Java, which Python does not limit.
        if not _WHOLE.match(value) or not -limit <= int(value) < limit:
            return f"must be a number of type {setting.kind}"
        number = int(value)
    if setting.least is not None and number < setting.least:
        return f"must be at least {setting.least}"
    if setting.most is not None and number > setting.most:
        return f"must be at most {setting.most}"
    return None


@public("kafkaio.testing")
class TopicSettings:
    """The configs of one topic.

    Args:
        values: the configs that are set for the topic.
        inherited: defaults from the configs of brokers, in place of Kafka's. It is
            referred to, not copied: when it changes, so do the values in force.
    """

    def __init__(
        self,
        values: Mapping[str, str] | None = None,
        inherited: Mapping[str, str] | None = None,
    ) -> None:
        self.values: dict[str, str] = dict(values or {})
        self._inherited: Mapping[str, str] = {} if inherited is None else inherited

    def get(self, name: str) -> str:
        """The value in force."""
        value = self.values.get(name)
        if value is None:
            # Looked up each time: a change of a broker's config holds at once, for
            # every topic that does not set it.
            value = self._inherited.get(name, TOPIC_DEFAULTS[name].default)
        return value or ""

    @property
    def log_config(self) -> LogConfig:
        """The configs that concern the log."""
        return LogConfig.from_topic({**self._inherited, **self.values})

    @property
    def max_message_bytes(self) -> int:
        """Size in bytes of the largest batch that may be produced."""
        return int(self.get("max.message.bytes"))

    @property
    def min_insync_replicas(self) -> int:
        """Number of in-sync replicas that a write with acks=all needs."""
        return int(self.get("min.insync.replicas"))

    @property
    def elects_unclean(self) -> bool:
        """Whether a replica that is out of sync may become the leader."""
        return self.get("unclean.leader.election.enable") == "true"

    @property
    def is_deleting(self) -> bool:
        """Whether the cleanup policy includes deletion."""
        return "delete" in self.get("cleanup.policy")

    @property
    def is_compacted(self) -> bool:
        """Whether the cleanup policy includes compaction, so that records need keys."""
        return "compact" in self.get("cleanup.policy")
