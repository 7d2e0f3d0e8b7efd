"""The numbers in answers, and the bounds of each.

A broker can be broken, misconfigured or hostile, and so can a proxy before it. So no
number of an answer is used or obeyed without a bound. There are four kinds, and every
number of every answer belongs to one of them (a test holds that):

* `REFUSED`: with another value the answer is impossible. It counts as one that cannot
  be decoded: the connection is closed, and the request fails with a ProtocolError.
* `OBEYED`: times that the client keeps to. They are cut to the bounds where they are
  used (`seconds`), and the answer stays as it is.
* `ADDRESSES`: a broker with an impossible address cannot be reached, and the other
  brokers of the answer can (`why_unreachable`).
* `SHOWN`: every value is harmless. It is shown, compared or echoed, and an unexpected
  one means unknown, as a negative leader means none.

Numbers that only grow, such as leader epochs, have no bound that would help: where one
is too high, the right ones look old. See `kafkaio._machines.metadata.Epochs`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from kafkaio._named_tuple import NamedTuple
from kafkaio.errors import ProtocolError
from kafkaio.protocol._message import Field, Message, Struct

_INT32: Final = 2**31 - 1
#: No log gets there: a million records a second take 146,000 years. Sums with
#: an offset stay within 64 bits.
_OFFSET: Final = 2**62
_DAY: Final = 86_400_000


class Bound(NamedTuple):
    """The bounds of a number.

    Attributes:
        least: the least value.
        most: the greatest value.
        without_error: whether it counts only beside error code 0. An answer with an
            error has placeholders for everything else.
    """

    least: int
    most: int
    without_error: bool = False


#: By the name of the field, or of answer and field where one answer differs.
REFUSED: Final[Mapping[str, Bound]] = MappingProxyType(
    {
        # Negative numbers of partitions and brokers have a meaning of their own here:
        # bootstrap servers are brokers below 0.
        "index": Bound(0, _INT32),
        "partition": Bound(0, _INT32),
        "partition_id": Bound(0, _INT32),
        "partition_index": Bound(0, _INT32),
        "partitions": Bound(0, _INT32),
        "node_id": Bound(0, _INT32, without_error=True),
        "broker_id": Bound(0, _INT32),
        # -1 where there is none yet; its readers expect that.
        "FindCoordinatorResponse.node_id": Bound(-1, _INT32),
        # The client writes them into batches, where -1 would switch idempotence off.
        "InitProducerIdResponse.producer_id": Bound(0, 2**63 - 1, without_error=True),
        "InitProducerIdResponse.producer_epoch": Bound(
            0, 2**15 - 1, without_error=True
        ),
        "JoinGroupResponse.generation_id": Bound(0, _INT32, without_error=True),
        # A member that leaves gets -1 or -2 back.
        "member_epoch": Bound(-2, _INT32, without_error=True),
        # Records are counted from here on; -1 is unknown.
        "base_offset": Bound(-1, _OFFSET),
        "ListOffsetsResponse.offset": Bound(-1, _OFFSET, without_error=True),
        # -1 for an API that the broker does not have.
        "ApiVersionsResponse.min_version": Bound(-1, 2**15 - 1),
        "ApiVersionsResponse.max_version": Bound(-1, 2**15 - 1),
        # An offset in the log of metadata. It only grows, so that too high a one would
        # hold for as long as the client lives.
        "ApiVersionsResponse.finalized_features_epoch": Bound(-1, _OFFSET),
    }
)

#: In milliseconds.
OBEYED: Final[Mapping[str, Bound]] = MappingProxyType(
    {
        # More often is a flood, more seldom loses the membership: the default session
        # is 45 s. Kafka's default is 5 s, and the longest that brokers allow by default
        # 15 s. Where they allow more, heartbeats that come sooner harm nobody.
        "heartbeat_interval_ms": Bound(10, 15_000),
        # The lock of an acquired record. Kafka allows a second to an hour; where a
        # broker allows more, a lock that is renewed sooner harms nobody.
        "acquisition_lock_timeout_ms": Bound(100, 3_600_000),
        # Kafka allows 100 ms to an hour.
        "push_interval_ms": Bound(100, _DAY),
        # 0 for no limit. To log in again once in a day harms nobody.
        "session_lifetime_ms": Bound(0, _DAY),
        # At most `max_throttle_ms`, see `kafkaio._machines.connection.throttle`.
        "throttle_time_ms": Bound(0, _INT32),
    }
)

ADDRESSES: Final[Mapping[str, Bound]] = MappingProxyType({"port": Bound(1, 65_535)})
#: The longest name of a host (RFC 1035), with a dot at its end.
_LONGEST_HOST: Final = 254

#: Why each does no harm stands in ADR 38.
SHOWN: Final[frozenset[str]] = frozenset(
    {
        *("acceptable_recovery_lag", "acceptable_recovery_lag_legacy"),
        *("accepted_compression_types", "node_type", "topology_description_status"),
        *("acknowledge_error_code", "adding_replicas"),
        *("api_key", "assignment_epoch", "authorized_operations", "batch_index"),
        *("broker_epoch", "cluster_authorized_operations", "committed_leader_epoch"),
        *("committed_offset", "config_source", "config_type", "controller_id"),
        *("coordinator_epoch", "current_txn_start_offset", "delivery_complete_count"),
        *("delivery_count", "delivery_state", "eligible_leader_replicas"),
        *("end_offset", "endpoint_information_epoch", "endpoint_type", "epoch"),
        *("error_code", "expiry_timestamp", "expiry_timestamp_ms"),
        *("first_offset", "generation_id", "group_epoch"),
        *("high_watermark", "isr", "isr_nodes", "issue_timestamp"),
        *("issue_timestamp_ms", "iterations", "lag", "last_caught_up_timestamp"),
        *("last_fetch_timestamp", "last_known_elr", "last_offset", "last_sequence"),
        *("last_stable_offset", "last_timestamp", "leader_epoch", "leader_id"),
        *("leader_recovery_state", "log_append_time_ms", "log_end_offset"),
        *("log_start_offset", "low_watermark", "max_timestamp", "max_timestamp_ms"),
        *("max_version", "max_version_level", "mechanism", "member_type"),
        *("min_version", "min_version_level", "num_partitions", "offline_replicas"),
        *("offset", "offset_lag", "ongoing_txn_producer_epoch"),
        *("ongoing_txn_producer_id", "operation", "partition_epoch"),
        *("partition_error_code", "partition_size", "pattern_type"),
        *("permission_type", "position", "preferred_read_replica", "producer_epoch"),
        *("producer_id", "producer_id_len", "producer_id_start"),
        *("removing_replicas", "replica_id", "replica_nodes", "replicas"),
        *("replication_factor", "resource_type", "session_id", "size", "source"),
        *("start_offset", "state_epoch", "status_code", "subscription_id"),
        *("task_offset_interval_ms", "telemetry_max_bytes", "timestamp"),
        *("topic_authorized_operations", "topic_config_error_code", "topology_epoch"),
        *("total_bytes", "transaction_start_time_ms", "transaction_timeout_ms"),
        *("usable_bytes", "value"),
    }
)

#: Structs that are checked before a caller gets a turn; they take half a millisecond.
_SLICE: Final = 1_000
#: More than an answer has.
_ALL: Final = 2**31


#: A field to check: its name, whether its value is a list, the bounds of its numbers,
#: None if it holds structs to check, and both limits. A tuple: it is unpacked for each
#: struct of each answer, which takes longer with a named one.
_Step: TypeAlias = tuple[str, bool, Bound | None, int, int]

#: Made once for each class of message, and for each struct in it.
_PLANS: dict[type[Message], Mapping[type[Struct], tuple[_Step, ...]]] = {}


def check(message: Message) -> None:
    """Check the numbers of a message that are `REFUSED` outside their bounds.

    Raises:
        ProtocolError: names the first that is out of bounds.
    """
    # A loop of its own, because it runs for each answer of each request.
    plans = _PLANS.get(type(message))
    if plans is None:
        plans = _plans_for(type(message))
    if not plans:
        return
    _check_structs([message], plans, _ALL)


def check_in_slices(message: Message) -> Iterator[None]:
    """Check as `check` does, and yield after each half of a millisecond."""
    plans = _plans_for(type(message))
    if not plans:
        return
    waiting: list[Struct] = [message]
    while True:
        _check_structs(waiting, plans, _SLICE)
        if not waiting:
            return
        yield


def _check_structs(
    waiting: list[Struct], plans: Mapping[type[Struct], tuple[_Step, ...]], count: int
) -> None:
    """Check so many of the structs that wait, and add those in them to the list."""
    while waiting and count:
        count -= 1
        struct = waiting.pop()
        for name, is_array, bound, least, most in plans[type(struct)]:
            value = getattr(struct, name)
            if bound is None:
                if is_array:
                    waiting += value or ()
                elif value is not None:
                    waiting.append(value)
            elif not is_array:
                if not least <= value <= most:
                    _refuse(struct, name, bound, value)
            else:
                for number in value or ():
                    if not least <= number <= most:
                        _refuse(struct, name, bound, number)


def _refuse(struct: Struct, name: str, bound: Bound, value: int) -> None:
    if bound.without_error and getattr(struct, "error_code", None):
        return
    raise ProtocolError(
        f"{name} {value} is not within {bound.least} to {bound.most}: no broker says so"
    )


def _plans_for(message: type[Message]) -> Mapping[type[Struct], tuple[_Step, ...]]:
    """The steps for a message, made once; empty if there is nothing to check."""
    plans = _PLANS.get(message)
    if plans is None:
        plans = _plans_of(message)
        if message not in plans:
            plans = {}
        _PLANS[message] = plans
    return plans


def _plans_of(message: type[Message]) -> Mapping[type[Struct], tuple[_Step, ...]]:
    """The steps of a message and of its structs; of those with something to check."""
    plans: dict[type[Struct], tuple[_Step, ...]] = {}

    def plan(cls: type[Struct]) -> bool:
        steps: list[_Step] = []
        for field in cls.SCHEMA:
            if isinstance(field.type, type):
                if plan(field.type):
                    steps.append((field.name, field.array, None, 0, 0))
            elif (bound := _bound_of(message, field)) is not None:
                limits = bound.least, bound.most
                steps.append((field.name, field.array, bound, *limits))
        if steps:
            plans[cls] = tuple(steps)
        return cls in plans

    plan(message)
    return plans


def _bound_of(message: type[Message], field: Field) -> Bound | None:
    if field.type in {"string", "bytes", "records", "bool", "uuid"}:
        return None
    return REFUSED.get(f"{message.NAME}.{field.name}", REFUSED.get(field.name))


def seconds(name: str, milliseconds: int) -> float:
    """Return a time of `OBEYED` in seconds, cut to its bounds."""
    bound = OBEYED[name]
    return min(max(milliseconds, bound.least), bound.most) / 1000


def why_unreachable(host: str, port: int) -> str | None:
    """Return why an address cannot be reached; None if it may be possible."""
    bound = ADDRESSES["port"]
    if not bound.least <= port <= bound.most:
        return f"port {port} is not within {bound.least} to {bound.most}"
    if not 0 < len(host) <= _LONGEST_HOST:
        return f"a host of {len(host)} characters"
    if not host.isprintable() or " " in host:  # it would also damage a log
        return "no host has such a name"
    return None
