"""Logs the events of a client by the standard library, unless ``log=False``.

The log is one more observer. A warning is an event that a person should act on. The
first warning of a kind about a subject is logged at once, later ones every 30 seconds
at most, with the number of those that were left out.

Each record has fields (``extra=``), all with the prefix ``kafka_``: the event by its
method of an observer, the client id, and what the event is about.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from itertools import islice
from typing import Any, Final

from kafkaio._runtime.observer import (
    AcknowledgedPart,
    AcquiredPart,
    Observed,
    Observer,
    add_observer,
)
from kafkaio._version import __version__
from kafkaio.errors import (
    AcknowledgeFailed,
    AuthenticationError,
    BrokerNotAvailable,
    KafkaError,
    LockLost,
    RebalanceInProgress,
)
from kafkaio.types import OffsetAndMetadata, TopicPartition

CLIENT: Final = logging.getLogger("kafkaio.client")
PRODUCER: Final = logging.getLogger("kafkaio.producer")
CONSUMER: Final = logging.getLogger("kafkaio.consumer")

#: Events so frequent that checking the level each time would cost. They are logged only
#: if the level was DEBUG when the client started.
_FREQUENT: Final[Mapping[str, logging.Logger]] = {
    "request_sent": CLIENT,
    "request_answered": CLIENT,
    "metadata_updated": CLIENT,
    "batch_sent": PRODUCER,
    "record_failed": PRODUCER,
    "offsets_committed": CONSUMER,
    "records_acquired": CONSUMER,
    "records_acknowledged": CONSUMER,
    "locks_renewed": CONSUMER,
}
#: Seconds between two warnings of one kind about one subject.
_INTERVAL: Final = 30.0
#: Subjects that are kept; beyond that number, those that may be logged again go.
_MANY: Final = 1000
#: Seconds after which a step that still fails is a warning.
_STILL_FAILING: Final = 10.0
#: Seconds without a failure after which the next one counts as the first: longer than
#: any attempt takes.
_OVER: Final = 90.0
#: Seconds for which a blocked loop is a warning.
_BLOCKED: Final = 1.0
#: Seconds for which a broker's throttle is a warning.
_THROTTLED: Final = 5.0
#: Partitions named in one line.
_NAMED: Final = 10


class Limiter:
    """Decides what is logged: one message for each kind and subject in an interval.

    Args:
        interval: seconds.
    """

    def __init__(self, interval: float = _INTERVAL) -> None:
        self._interval = interval
        # When each was logged last, and how many messages were left out since then.
        self._last: dict[tuple[str, object], tuple[float, int]] = {}

    def admit(
        self, kind: str, subject: object, at: float, count: int = 1
    ) -> int | None:
        """Return how many messages were left out; None to leave this one out, too.

        Args:
            kind: the kind of event.
            subject: the object of the event.
            at: seconds on a monotonic clock, the same clock in every call.
            count: how many messages this one counts for, such as one for each record.
        """
        key = kind, subject
        before, left_out = self._last.get(key, (None, 0))
        if before is not None and at < before + self._interval:
            self._last[key] = before, left_out + count
            return None
        if len(self._last) >= _MANY:
            self._forget(at)
        self._last[key] = at, 0
        return left_out

    def take_left_out(self, kind: str) -> list[tuple[object, int]]:
        """Return how many messages of a kind were left out, by subject, and forget it.

        Subjects without any are not in it.
        """
        found = []
        for (each, subject), (at, count) in self._last.items():
            if each == kind and count:
                self._last[each, subject] = at, 0
                found.append((subject, count))
        return found

    def _forget(self, at: float) -> None:
        due = at - self._interval
        self._last = {key: seen for key, seen in self._last.items() if seen[0] > due}


class Failing:
    """Measures for how long steps have failed, since their first failed attempt.

    The text that names a step identifies it. A step for many partitions is named by
    those that are left: while some succeed, it is a new step that has not failed long.
    """

    def __init__(self) -> None:
        # When each began to fail, and when it failed last.
        self._times: dict[str, tuple[float, float]] = {}

    def seconds(self, step: str, attempt: int, at: float) -> float:
        """Note a failure; return the seconds since the first one.

        Args:
            step: the step that has failed.
            attempt: which attempt it was, counted from 1.
            at: seconds on a monotonic clock, the same clock in every call.
        """
        first, last = self._times.get(step, (at, at))
        if attempt == 1 or at > last + _OVER:
            first = at
        if len(self._times) >= _MANY and step not in self._times:
            times = self._times.items()
            self._times = {each: seen for each, seen in times if seen[1] + _OVER >= at}
            if len(self._times) >= _MANY:
                self._times.clear()
        self._times[step] = first, at
        return at - first


class LogObserver:
    """Writes the events of a client, and of its producers and consumers, to the log.

    Args:
        client_id: the client's name, at the head of each line.
        servers: its bootstrap servers, as text.
        clock: returns the seconds by which warnings are limited.
    """

    def __init__(
        self,
        client_id: str,
        servers: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client_id = client_id
        self._servers = servers
        self._clock = clock
        self._limiter = Limiter()
        self._failing = Failing()
        # Brokers that were logged as unreachable, and not reached since then.
        self._unreachable: set[int] = set()

    def _log(
        self,
        logger: logging.Logger,
        level: int,
        event: str,
        text: str,
        /,
        *arguments: object,
        **about: object,
    ) -> None:
        """Write a line with its fields.

        Args:
            logger: the logger.
            level: the level.
            event: the event, by its method of an observer.
            text: what happened.
            arguments: for the text.
            about: what it is about, by the names of fields without their prefix.
        """
        if logger.isEnabledFor(level):
            fields = self._fields(event, about)
            line = f"[%s] {text}"
            words = (self._client_id, *arguments)
            logger.log(level, line, *words, extra=fields, stacklevel=2)

    def _log_limited(
        self,
        logger: logging.Logger,
        level: int,
        subject: tuple[str, object],
        event: str,
        text: str,
        /,
        *arguments: object,
        count: int = 1,
        **about: object,
    ) -> None:
        left_out = self._limiter.admit(*subject, self._clock(), count)
        if left_out is not None:
            more = f" ({left_out} more since this was last logged)" if left_out else ""
            fields = self._fields(event, about)
            if left_out:
                fields["kafka_left_out"] = left_out
            line = f"[%s] {text}%s"
            words = (self._client_id, *arguments, more)
            logger.log(level, line, *words, extra=fields, stacklevel=2)

    def _fields(self, event: str, about: Mapping[str, object]) -> dict[str, object]:
        # The prefix keeps them apart from the attributes of a LogRecord, from the
        # fields of the application, and from structlog's own `event`.
        fields: dict[str, object] = {
            "kafka_event": event,
            "kafka_client_id": self._client_id,
        }
        for name, value in about.items():
            fields.update(_field(name, value))
        return fields

    # ---- lifecycle -----------------------------------------------------------------

    def started(self, kind: str, name: str, source: Observed) -> None:
        """Log it as INFO."""
        more = ""
        if kind == "client":
            more = f"; bootstrap servers {self._servers}; kafkaio {__version__}"
        self._log(
            *(_LOGGERS[kind], logging.INFO, "started", "%s %r started%s"),
            *(kind.replace("_", " "), name, more),
            kind=kind,
            name=name,
        )

    def closed(self, kind: str, name: str, source: Observed) -> None:
        """Log it as INFO, after the messages about lost records that were left out."""
        if kind == "producer":
            for partition, count in self._limiter.take_left_out("delivery lost"):
                self._log(
                    *(PRODUCER, logging.WARNING, "delivery_lost"),
                    "%s: %d more were not delivered since this was last logged",
                    *(_name(partition), count),
                    partition=partition,
                    records=count,
                )
        self._log(
            *(_LOGGERS[kind], logging.INFO, "closed", "%s %r closed"),
            *(kind.replace("_", " "), name),
            kind=kind,
            name=name,
        )

    def loop_blocked(self, seconds: float, stack: str) -> None:
        """Log a long time as a warning."""
        if seconds < _BLOCKED:
            text = "event loop blocked: %.3f s"
            level = logging.DEBUG
            self._log(CLIENT, level, "loop_blocked", text, seconds, seconds=seconds)
            return
        self._log_limited(
            *(CLIENT, logging.WARNING, ("loop blocked", None), "loop_blocked"),
            "the event loop was blocked for %.1f s: no heartbeat and no request goes "
            "out meanwhile%s",
            *(seconds, f"\n{stack.rstrip()}\n" if stack else ""),
            seconds=seconds,
        )

    # ---- the cluster ---------------------------------------------------------------

    def connection_opened(
        self, node_id: int, connection_class: str, host: str, port: int
    ) -> None:
        """Log it as DEBUG, or as INFO if it could not be made before."""
        level = logging.INFO if node_id in self._unreachable else logging.DEBUG
        self._unreachable.discard(node_id)
        self._log(
            *(CLIENT, level, "connection_opened", "connected to %s at %s:%d (%s)"),
            *(_server(node_id), host, port, connection_class),
            node=node_id,
            host=host,
            port=port,
            connection_class=connection_class,
        )

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
        """Log it as DEBUG."""
        limit = f" for {lifetime:.1f} s" if lifetime else ""
        self._log(
            *(CLIENT, logging.DEBUG, "authenticated"),
            "authenticated by %s at %s (%s)%s",
            *(mechanism, _server(node_id), connection_class, limit),
            node=node_id,
            connection_class=connection_class,
            mechanism=mechanism,
        )

    def credentials_exposed(self, mechanism: str, host: str) -> None:
        """Log it as a warning."""
        self._log(
            *(CLIENT, logging.WARNING, "credentials_exposed"),
            "%s sends its secret to %s without encryption, so that everybody on "
            "the way can read it: set security_protocol to SASL_SSL",
            *(mechanism, host),
            mechanism=mechanism,
            host=host,
        )

    def connection_lost(
        self, node_id: int, connection_class: str, cause: BaseException | None
    ) -> None:
        """Log a connection that cannot be made as a warning, a lost one as INFO."""
        about: dict[str, Any] = {"node": node_id, "connection_class": connection_class}
        if cause is None:
            self._log(
                *(CLIENT, logging.DEBUG, "connection_lost"),
                "closed the connection to %s (%s)",
                *(_server(node_id), connection_class),
                **about,
            )
            return
        level, what = logging.INFO, "lost the connection to"
        if isinstance(cause, AuthenticationError):
            level, what = logging.WARNING, "authentication refused by"
        elif isinstance(cause, BrokerNotAvailable):
            level, what = logging.WARNING, "cannot connect to"
            self._unreachable.add(node_id)
        self._log_limited(
            *(CLIENT, level, (what, node_id), "connection_lost"),
            f"{what} %s: %s",
            *(_server(node_id), _cause_text(cause)),
            error=cause,
            **about,
        )

    def request_sent(self, api: str, version: int, node_id: int, size: int) -> None:
        """Log it as DEBUG."""
        self._log(
            *(CLIENT, logging.DEBUG, "request_sent", "%s v%d to %s"),
            *(api, version, _server(node_id)),
            api=api,
            api_version=version,
            node=node_id,
            size=size,
        )

    def request_answered(
        self, api: str, version: int, node_id: int, seconds: float, size: int
    ) -> None:
        """Log it as DEBUG."""
        self._log(
            *(CLIENT, logging.DEBUG, "request_answered"),
            "%s v%d answered by %s after %.1f ms",
            *(api, version, _server(node_id), seconds * 1000),
            api=api,
            api_version=version,
            node=node_id,
            seconds=seconds,
            size=size,
        )

    def throttled(self, node_id: int, seconds: float, api: str) -> None:
        """Log a long pause as a warning."""
        about: dict[str, Any] = {"node": node_id, "seconds": seconds, "api": api}
        if seconds < _THROTTLED:
            self._log(
                *(CLIENT, logging.DEBUG, "throttled", "throttled by %s: %.3f s"),
                *(_server(node_id), seconds),
                **about,
            )
            return
        self._log_limited(
            *(CLIENT, logging.WARNING, ("throttled", node_id), "throttled"),
            "%s throttles this client: nothing is sent to it for %.1f s, because of a "
            "quota (the answer to %s says so)",
            *(_server(node_id), seconds, api),
            **about,
        )

    def metadata_updated(self, brokers: int, topics: int) -> None:
        """Log it as DEBUG."""
        text = "metadata: %d brokers, %d topics"
        self._log(
            *(CLIENT, logging.DEBUG, "metadata_updated", text, brokers, topics),
            brokers=brokers,
            topics=topics,
        )

    def retrying(
        self, what: str, attempt: int, delay: float, cause: BaseException
    ) -> None:
        """Log it as DEBUG, or as a warning once it has failed for long."""
        seconds = self._failing.seconds(what, attempt, self._clock())
        about: dict[str, Any] = {"step": what, "attempt": attempt, "error": cause}
        # For a broker that cannot be reached, `connection_lost` logs the warning.
        if seconds >= _STILL_FAILING and not isinstance(cause, BrokerNotAvailable):
            self._log_limited(
                *(CLIENT, logging.WARNING, ("retrying", what), "retrying"),
                "%s: still failing after %.0f s and %d attempts: %s",
                *(what, seconds, attempt, _cause_text(cause)),
                seconds=seconds,
                **about,
            )
            return
        self._log(
            *(CLIENT, logging.DEBUG, "retrying"),
            "%s: attempt %d failed, next in %.3f s: %s",
            *(what, attempt, delay, _cause_text(cause)),
            **about,
        )

    def topic_unavailable(self, topic: str, cause: BaseException) -> None:
        """Log it as a warning."""
        self._log_limited(
            *(CLIENT, logging.WARNING, ("topic", topic), "topic_unavailable"),
            "topic %r is not available: %s",
            *(topic, _cause_text(cause)),
            topic=topic,
            error=cause,
        )

    # ---- producers -----------------------------------------------------------------

    def partition_unavailable(
        self, partition: TopicPartition, cause: BaseException
    ) -> None:
        """Log it as a warning."""
        subject = "partition", partition
        self._log_limited(
            *(PRODUCER, logging.WARNING, subject, "partition_unavailable"),
            "records wait for %s: %s",
            *(_name(partition), _cause_text(cause)),
            partition=partition,
            error=cause,
        )

    def batch_sent(self, partition: TopicPartition, records: int, size: int) -> None:
        """Log it as DEBUG."""
        self._log(
            *(PRODUCER, logging.DEBUG, "batch_sent"),
            "%s-%d: a batch of %d records, %d bytes",
            *(*partition, records, size),
            partition=partition,
            records=records,
            size=size,
        )

    def record_failed(
        self, partition: TopicPartition, error: BaseException, count: int
    ) -> None:
        """Log it as DEBUG: the code that awaits the delivery gets the error."""
        self._log(
            *(PRODUCER, logging.DEBUG, "record_failed", "%s: %d records failed: %s"),
            *(_name(partition), count, _cause_text(error)),
            partition=partition,
            records=count,
            error=error,
        )

    def delivery_lost(
        self, partition: TopicPartition, error: BaseException, count: int
    ) -> None:
        """Log it as a warning."""
        were = "record was" if count == 1 else "records were"
        subject = "delivery lost", partition
        self._log_limited(
            *(PRODUCER, logging.WARNING, subject, "delivery_lost"),
            "%s: %d %s not delivered, and nobody awaited the delivery: %s",
            *(_name(partition), count, were, _cause_text(error)),
            count=count,
            partition=partition,
            records=count,
            error=error,
        )

    # ---- consumers -----------------------------------------------------------------

    def rebalance(
        self,
        state: str,
        assigned: Collection[TopicPartition],
        revoked: Collection[TopicPartition],
        lost: Collection[TopicPartition],
    ) -> None:
        """Log lost partitions as a warning, other changes as INFO."""
        if lost:
            self._log_limited(
                *(CONSUMER, logging.WARNING, ("lost", None), "rebalance"),
                "partitions lost, others may own them already: %s",
                _names(lost),
                count=len(lost),
                change="lost",
                partitions=lost,
            )
        self.assignment_changed(assigned, revoked)
        if not (assigned or revoked or lost):
            self._log(
                *(CONSUMER, logging.DEBUG, "rebalance"),
                *("member of the group: %s", state),
                state=state,
            )

    def assignment_changed(
        self,
        assigned: Collection[TopicPartition],
        revoked: Collection[TopicPartition],
    ) -> None:
        """Log it as INFO."""
        for what, partitions in (("revoked", revoked), ("assigned", assigned)):
            if partitions and CONSUMER.isEnabledFor(logging.INFO):
                self._log(
                    *(CONSUMER, logging.INFO, "assignment_changed"),
                    *("partitions %s: %s", what, _names(partitions)),
                    change=what,
                    partitions=partitions,
                )

    def group_protocol(
        self, group: str, protocol: str, cause: BaseException | None
    ) -> None:
        """Log it as INFO."""
        why = "" if cause is None else f", because {_cause_text(cause)}"
        self._log(
            *(CONSUMER, logging.INFO, "group_protocol"),
            "group %r is joined by the protocol %r%s",
            *(group, protocol, why),
            group=group,
            protocol=protocol,
        )

    def offsets_committed(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], seconds: float
    ) -> None:
        """Log it as DEBUG."""
        at = ", ".join(f"{t}-{p}: {o.offset}" for (t, p), o in sorted(offsets.items()))
        self._log(
            *(CONSUMER, logging.DEBUG, "offsets_committed", "committed %s", at),
            partitions=offsets,
            seconds=seconds,
        )

    def new_partitions(self, partitions: Collection[TopicPartition]) -> None:
        """Log it as INFO."""
        self._log(
            *(CONSUMER, logging.INFO, "new_partitions"),
            "new to this group, so that auto_offset_reset_new_partitions says "
            "where they begin: %s",
            _names(partitions),
            partitions=partitions,
        )

    def positions_missing(self, reasons: Mapping[TopicPartition, str]) -> None:
        """Log it as a warning."""
        self._log(
            *(CONSUMER, logging.WARNING, "positions_missing"),
            "not read yet, because their positions are not found: %s",
            listed_by_reason(reasons),
            partitions=reasons,
        )

    def commit_failed(self, group: str, error: BaseException) -> None:
        """Log it as a warning, or as INFO if a rebalance is the only reason."""
        is_passing = isinstance(error, RebalanceInProgress)
        # By kind of error: a deleted topic must not hide another one that is refused.
        self._log_limited(
            *(CONSUMER, logging.INFO if is_passing else logging.WARNING),
            *(("commit", (group, type(error))), "commit_failed"),
            "a commit of group %r failed: %s",
            *(group, _cause_text(error)),
            group=group,
            error=error,
        )

    # ---- share consumers -----------------------------------------------------------

    def records_acquired(
        self,
        group: str,
        node_id: int,
        seconds: float,
        parts: Mapping[TopicPartition, AcquiredPart],
    ) -> None:
        """Log what came as DEBUG."""
        for tp, part in parts.items():
            self._log(
                *(CONSUMER, logging.DEBUG, "records_acquired"),
                "%s: %d records acquired for group %r, %d of them delivered "
                "before; %d bytes",
                *(_name(tp), part.records, group, part.redelivered, part.size),
                group=group,
                node=node_id,
                partition=tp,
                records=part.records,
                size=part.size,
            )

    def records_acknowledged(
        self,
        group: str,
        node_id: int,
        seconds: float,
        parts: Mapping[TopicPartition, AcknowledgedPart],
    ) -> None:
        """Log it as DEBUG."""
        for tp, part in parts.items():
            self._log(
                *(CONSUMER, logging.DEBUG, "records_acknowledged"),
                "%s: group %r has accepted %d records, released %d, rejected %d; "
                "%d offsets without a record",
                *(_name(tp), group, *part),
                group=group,
                node=node_id,
                partition=tp,
            )

    def acknowledgement_failed(
        self,
        group: str,
        partition: TopicPartition,
        first_offset: int,
        last_offset: int,
        error: AcknowledgeFailed,
    ) -> None:
        """Log it as a warning."""
        self._log_limited(
            *(CONSUMER, logging.WARNING, ("acknowledge", (group, partition))),
            "acknowledgement_failed",
            "group %r: an acknowledgement did not count, or that is unknown, so that "
            "the records may be delivered again: %s",
            *(group, _cause_text(error)),
            group=group,
            partition=partition,
            offset=first_offset,
            error=error,
        )

    def lock_lost(
        self,
        group: str,
        partition: TopicPartition,
        first_offset: int,
        last_offset: int,
        error: LockLost,
    ) -> None:
        """Log it as a warning."""
        self._log_limited(
            *(CONSUMER, logging.WARNING, ("lock", (group, partition)), "lock_lost"),
            "group %r: locks of records without a decision were lost, so that they are "
            "delivered again: %s",
            *(group, _cause_text(error)),
            group=group,
            partition=partition,
            offset=first_offset,
            error=error,
        )

    def locks_renewed(
        self, group: str, node_id: int, partition: TopicPartition, records: int
    ) -> None:
        """Log it as DEBUG."""
        self._log(
            *(CONSUMER, logging.DEBUG, "locks_renewed"),
            "%s: the locks of %d records of group %r renewed",
            *(_name(partition), records, group),
            group=group,
            node=node_id,
            partition=partition,
            records=records,
        )

    def acknowledgements_missing(
        self, group: str, records: int, seconds: float
    ) -> None:
        """Log it as a warning."""
        self._log_limited(
            *(CONSUMER, logging.WARNING, ("held", group), "acknowledgements_missing"),
            "group %r: nothing is fetched: %d records, as many as max_in_flight "
            "allows, were handed out without a decision, and none was acknowledged for "
            "%.0f s; call ack(), release() or reject() for each record",
            *(group, records, seconds),
            group=group,
            records=records,
            seconds=seconds,
        )

    def handler_failed(
        self,
        group: str,
        partition: TopicPartition,
        offset: int,
        delivery_count: int,
        outcome: str,
        error: BaseException,
    ) -> None:
        """Log it as a warning."""
        subject = "handler", (group, partition, outcome)
        self._log_limited(
            *(CONSUMER, logging.WARNING, subject, "handler_failed"),
            "group %r: the handler of %s-%d at offset %d failed in delivery %d; the "
            "record is %s: %s",
            *(group, *partition, offset, delivery_count, outcome, _cause_text(error)),
            group=group,
            partition=partition,
            offset=offset,
            delivery_count=delivery_count,
            outcome=outcome,
            error=error,
        )

    def group_configs_unknown(self, group: str, error: BaseException) -> None:
        """Log it as a warning."""
        subject = "group configs", group
        self._log_limited(
            *(CONSUMER, logging.WARNING, subject, "group_configs_unknown"),
            "the configs of group %r cannot be read, so that DeadLetter writes dead "
            "letters even if the brokers do: %s",
            *(group, _cause_text(error)),
            group=group,
            error=error,
        )

    def dead_letters_at_broker(self, group: str, topic: str) -> None:
        """Log it as INFO."""
        self._log(
            *(CONSUMER, logging.INFO, "dead_letters_at_broker"),
            "the brokers write the dead letters of group %r to topic %r, so that "
            "DeadLetter rejects the record instead of writing it",
            *(group, topic),
            group=group,
            topic=topic,
        )

    # ---- telemetry -----------------------------------------------------------------

    def telemetry_ended(self, cause: BaseException) -> None:
        """Log it as a warning."""
        subject = "telemetry", str(cause)
        self._log_limited(
            *(CLIENT, logging.WARNING, subject, "telemetry_ended"),
            "pushing metrics to the brokers has ended (enable_metrics_push): %s",
            _cause_text(cause),
            error=cause,
        )

    # ---- Spark ---------------------------------------------------------------------

    def query_lag(self, query: str, lag: Mapping[TopicPartition, int]) -> None:
        """Log the sum as DEBUG."""
        behind = sum(lag.values())
        self._log(
            *(CLIENT, logging.DEBUG, "query_lag"),
            *("query %s is %d behind", query, behind),
            query=query,
            lag=behind,
        )


_LOGGERS: Final[Mapping[str, logging.Logger]] = {
    "client": CLIENT,
    "producer": PRODUCER,
    "consumer": CONSUMER,
    "share_consumer": CONSUMER,
    "admin": CLIENT,
    "query": CLIENT,
}


def attach_log(observer: Observer, client_id: str, servers: str) -> bool:
    """Write the events that an observer receives to the log, too.

    Args:
        observer: made by ``guarded``.
        client_id: the client's name.
        servers: its bootstrap servers, as text.

    Returns:
        Whether the level of the client's log is DEBUG.
    """
    left_out = {
        name
        for name, logger in _FREQUENT.items()
        if not logger.isEnabledFor(logging.DEBUG)
    }
    add_observer(observer, LogObserver(client_id, servers), left_out)
    return CLIENT.isEnabledFor(logging.DEBUG)


def _field(name: str, value: object) -> dict[str, object]:
    # Text and numbers alone, so that any formatter can write them.
    if isinstance(value, TopicPartition):
        place: dict[str, object] = {"kafka_topic": value.topic}
        # -1 until the partition of a record is chosen.
        return place | {"kafka_partition": value.partition}
    if isinstance(value, BaseException):
        return {"kafka_error": type(value).__name__}
    if name == "partitions":
        assert isinstance(value, Collection)
        return {
            "kafka_partitions": _listed(value),
            "kafka_partition_count": len(value),
        }
    return {f"kafka_{name}": value}


def _server(node_id: int) -> str:
    return f"bootstrap server {-node_id}" if node_id < 0 else f"broker {node_id}"


def _cause_text(cause: BaseException) -> str:
    # An error of other code may quote a record, which must not be logged.
    if isinstance(cause, KafkaError | OSError):
        return str(cause) or type(cause).__name__
    return type(cause).__name__


def listed_by_reason(reasons: Mapping[TopicPartition, str]) -> str:
    """Return one text for all partitions: those with the same reason together."""
    by_reason: dict[str, list[TopicPartition]] = {}
    for tp, reason in reasons.items():
        by_reason.setdefault(reason, []).append(tp)
    listed = [f"{_names(tps)} ({why})" for why, tps in by_reason.items()]
    left = len(listed) - _NAMED
    more = f"; and {left} more reasons" if left > 0 else ""
    return "; ".join(listed[:_NAMED]) + more


def _name(partition: object) -> str:
    """Return the text for a partition; its topic alone if it is not chosen yet."""
    assert isinstance(partition, TopicPartition)
    topic, number = partition
    return f"{topic}-{number}" if number >= 0 else topic


def _listed(partitions: Collection[TopicPartition]) -> list[str]:
    return [f"{tp.topic}-{tp.partition}" for tp in islice(sorted(partitions), _NAMED)]


def _names(partitions: Collection[TopicPartition]) -> str:
    named = _listed(partitions)
    rest = len(partitions) - len(named)
    return ", ".join(named) + (f" and {rest} more" if rest else "")
