"""The options of aiokafka's consumer, as options of kafkaio's."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import kafkaio
from kafkaio.aiokafka.coordinator.assignors._adapted import adapted
from kafkaio.aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor

#: Most records of one ``getmany`` without ``max_records`` and ``max_poll_records``:
#: making them takes some milliseconds, for which nothing else runs.
NO_LIMIT = 10_000

_ONE_ARGUMENT = inspect.Signature(
    [inspect.Parameter("data", inspect.Parameter.POSITIONAL_ONLY)]
)


def consumer_options(  # noqa: PLR0913 - by name, from one place
    *,
    group_id: str | None,
    group_instance_id: str | None,
    key_deserializer: Callable[..., object] | None,
    value_deserializer: Callable[..., object] | None,
    auto_offset_reset: str,
    isolation_level: str,
    max_poll_records: int | None,
    partition_assignment_strategy: Sequence[type[AbstractPartitionAssignor]],
    session_timeout_ms: int,
    heartbeat_interval_ms: int,
    **same: Any,
) -> dict[str, Any]:
    """Return the options of kafkaio that those of aiokafka stand for.

    Args:
        group_id: see `AIOKafkaConsumer`, as for the others.
        group_instance_id: without a group it has no effect.
        key_deserializer: called for None, too, as aiokafka does.
        value_deserializer: likewise.
        auto_offset_reset: also where partitions begin that are added later.
        isolation_level: ``read_uncommitted`` or ``read_committed``.
        max_poll_records: None for no limit.
        partition_assignment_strategy: classes of assignors.
        session_timeout_ms: of a group.
        heartbeat_interval_ms: of a group.
        same: options of the same name and meaning.

    Raises:
        ValueError: an option is impossible.
    """
    check_count("`max_poll_records` should be positive Integer", max_poll_records)
    reset = _reset(auto_offset_reset)
    options: dict[str, Any] = {
        **same,
        "group_id": group_id,
        "auto_offset_reset": reset,
        "auto_offset_reset_new_partitions": reset,
        "isolation_level": _isolation(isolation_level),
        "max_poll_records": max_poll_records or NO_LIMIT,
    }
    if group_id is not None:
        # The group has the protocol of aiokafka, so that members of both can be in it.
        options["group_protocol"] = "classic"
        options["group_instance_id"] = group_instance_id
        options["partition_assignment_strategy"] = adapted(
            partition_assignment_strategy
        )
        options["session_timeout_ms"] = session_timeout_ms
        options["heartbeat_interval_ms"] = heartbeat_interval_ms
    # Checked here, because `start` is late for a wrong option.
    kafkaio.ConsumerConfig.of("localhost:9092", options)
    if key_deserializer is not None:
        options["key_deserializer"] = _taking_none(key_deserializer)
    if value_deserializer is not None:
        options["value_deserializer"] = _taking_none(value_deserializer)
    return options


def check_count(refusal: str, count: object) -> None:
    """Check a number of records; None is one.

    Raises:
        ValueError: it is not positive, or not an integer.
    """
    if count is not None and (not isinstance(count, int) or count < 1):
        raise kafkaio.ConfigurationError(refusal)


def _reset(policy: str) -> Literal["earliest", "latest", "none"]:
    # aiokafka takes any other text for ``none``.
    match policy:
        case "earliest" | "latest" | "none":
            return policy
        case _:
            raise kafkaio.ConfigurationError(
                f"auto_offset_reset is {policy!r}: use earliest, latest or none"
            )


def _isolation(level: str) -> Literal["read_uncommitted", "read_committed"]:
    match level:
        case "read_uncommitted" | "read_committed":
            return level
        case _:
            raise kafkaio.ConfigurationError(f"Incorrect isolation level {level}")


def _taking_none(function: Callable[..., object]) -> Callable[[bytes | None], object]:
    """Return the same function, marked for kafkaio to be called with None, too."""
    if not callable(function):
        raise kafkaio.ConfigurationError(f"{function!r} is not callable")
    marked: Any = partial(function)
    marked.takes_none = True
    # Whatever its parameters are, aiokafka calls it with the bytes alone.
    marked.__signature__ = _ONE_ARGUMENT
    return marked  # type: ignore[no-any-return]
