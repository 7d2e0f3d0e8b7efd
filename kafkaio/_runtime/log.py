"""What a client writes to the standard library's log, unless ``log=False``.

The log is one more observer. Warnings are what a person should act on; those of one
kind about one subject come at once, then every 30 seconds at most, with the number of
those left out.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from itertools import islice
from typing import Final

from kafkaio._runtime.observer import Observer, add_observer
from kafkaio._version import __version__
from kafkaio.errors import (
    AuthenticationError,
    BrokerNotAvailable,
    KafkaError,
    RebalanceInProgress,
)
from kafkaio.types import OffsetAndMetadata, TopicPartition

__all__ = ["Limiter", "LogObserver", "attach_log"]

CLIENT: Final = logging.getLogger("kafkaio.client")
PRODUCER: Final = logging.getLogger("kafkaio.producer")
CONSUMER: Final = logging.getLogger("kafkaio.consumer")

#: Events so frequent that even asking for the level would cost: they reach the log
#: only where its level was DEBUG when the client started.
_FREQUENT: Final[Mapping[str, logging.Logger]] = {
    "request_sent": CLIENT,
    "request_answered": CLIENT,
    "metadata_updated": CLIENT,
    "throttled": CLIENT,
    "batch_sent": PRODUCER,
    "record_failed": PRODUCER,
    "offsets_committed": CONSUMER,
}
#: Seconds between two warnings of one kind about one subject.
_INTERVAL: Final = 30.0
#: Subjects remembered; past that, those that may be logged again are forgotten.
_MANY: Final = 1000
#: Attempts after which it is worth a warning that something still fails.
_STILL_FAILING: Final = 10
#: Seconds that are worth a warning when the loop was blocked for them.
_BLOCKED: Final = 1.0
#: Partitions named in one line.
_NAMED: Final = 10


class Limiter:
    """Decides what may be logged: of each kind and subject, one in an interval.

    Args:
        interval: seconds.
    """

    def __init__(self, interval: float = _INTERVAL) -> None:
        self._interval = interval
        # When each was admitted last, and how much was left out since.
        self._last: dict[tuple[str, object], tuple[float, int]] = {}

    def admit(
        self, kind: str, subject: object, at: float, count: int = 1
    ) -> int | None:
        """Return how much was left out since the last one; None to leave this out too.

        Args:
            kind: what happened.
            subject: whom or what it happened to.
            at: seconds on any monotonic clock, the same in every call.
            count: how many it happened to, where that is what is counted.
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

    def _forget(self, at: float) -> None:
        due = at - self._interval
        self._last = {key: seen for key, seen in self._last.items() if seen[0] > due}


class LogObserver(Observer):
    """Writes what happens to a client, and to all that use it, to the log.

    Args:
        client_id: the client's name, at the head of each line.
        servers: its bootstrap servers, in words.
        clock: tells the seconds by which warnings are rationed.
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
        # Brokers that were told to be out of reach, and have not been reached since.
        self._unreachable: set[int] = set()

    def _ration(
        self,
        logger: logging.Logger,
        level: int,
        subject: tuple[str, object],
        text: str,
        *arguments: object,
        count: int = 1,
    ) -> None:
        left_out = self._limiter.admit(*subject, self._clock(), count)
        if left_out is not None:
            more = f" ({left_out} more since this was last logged)" if left_out else ""
            line = f"[%s] {text}%s"
            logger.log(level, line, self._client_id, *arguments, more)

    # ---- life ----------------------------------------------------------------------

    def started(self, kind: str, name: str) -> None:
        """Log it as INFO."""
        more = ""
        if kind == "client":
            more = f"; bootstrap servers {self._servers}; kafkaio {__version__}"
        _LOGGERS[kind].info("[%s] %s %r started%s", self._client_id, kind, name, more)

    def closed(self, kind: str, name: str) -> None:
        """Log it as INFO."""
        _LOGGERS[kind].info("[%s] %s %r closed", self._client_id, kind, name)

    def loop_blocked(self, seconds: float, stack: str) -> None:
        """Log a long time as a warning."""
        if seconds < _BLOCKED:
            CLIENT.debug("[%s] event loop blocked: %.3f s", self._client_id, seconds)
            return
        self._ration(
            *(CLIENT, logging.WARNING, ("loop blocked", None)),
            "the event loop was blocked for %.1f s: no heartbeat and no request goes "
            "out meanwhile%s",
            *(seconds, f"\n{stack.rstrip()}\n" if stack else ""),
        )

    # ---- the cluster ---------------------------------------------------------------

    def connection_opened(
        self, node_id: int, connection_class: str, host: str, port: int
    ) -> None:
        """Log it as DEBUG, and as INFO where it could not be made before."""
        level = logging.INFO if node_id in self._unreachable else logging.DEBUG
        self._unreachable.discard(node_id)
        CLIENT.log(
            level,
            "[%s] connected to %s at %s:%d (%s)",
            *(self._client_id, _server(node_id), host, port, connection_class),
        )

    def connection_lost(
        self, node_id: int, connection_class: str, cause: BaseException | None
    ) -> None:
        """Log as a warning that none can be made, as INFO that one was lost."""
        if cause is None:
            CLIENT.debug(
                "[%s] closed the connection to %s (%s)",
                *(self._client_id, _server(node_id), connection_class),
            )
            return
        level, what = logging.INFO, "lost the connection to"
        if isinstance(cause, AuthenticationError):
            level, what = logging.WARNING, "authentication refused by"
        elif isinstance(cause, BrokerNotAvailable):
            level, what = logging.WARNING, "cannot connect to"
            self._unreachable.add(node_id)
        self._ration(
            *(CLIENT, level, (what, node_id)),
            f"{what} %s: %s",
            *(_server(node_id), _told(cause)),
        )

    def request_sent(self, api: str, version: int, node_id: int) -> None:
        """Log it as DEBUG."""
        CLIENT.debug(
            "[%s] %s v%d to %s", self._client_id, api, version, _server(node_id)
        )

    def request_answered(
        self, api: str, version: int, node_id: int, seconds: float
    ) -> None:
        """Log it as DEBUG."""
        CLIENT.debug(
            "[%s] %s v%d answered by %s after %.1f ms",
            *(self._client_id, api, version, _server(node_id), seconds * 1000),
        )

    def throttled(self, node_id: int, seconds: float) -> None:
        """Log it as DEBUG."""
        CLIENT.debug(
            "[%s] throttled by %s: %.3f s", self._client_id, _server(node_id), seconds
        )

    def metadata_updated(self, brokers: int, topics: int) -> None:
        """Log it as DEBUG."""
        CLIENT.debug(
            "[%s] metadata: %d brokers, %d topics", self._client_id, brokers, topics
        )

    def retrying(
        self, what: str, attempt: int, delay: float, cause: BaseException
    ) -> None:
        """Log it as DEBUG, and as a warning where it does not end."""
        # That no broker can be reached is a warning of its own.
        if attempt >= _STILL_FAILING and not isinstance(cause, BrokerNotAvailable):
            self._ration(
                *(CLIENT, logging.WARNING, ("retrying", what)),
                "%s: still failing after %d attempts: %s",
                *(what, attempt, _told(cause)),
            )
            return
        CLIENT.debug(
            "[%s] %s: attempt %d failed, next in %.3f s: %s",
            *(self._client_id, what, attempt, delay, _told(cause)),
        )

    def topic_unavailable(self, topic: str, cause: BaseException) -> None:
        """Log it as a warning."""
        self._ration(
            *(CLIENT, logging.WARNING, ("topic", topic)),
            "topic %r is not available: %s",
            *(topic, _told(cause)),
        )

    # ---- producers -----------------------------------------------------------------

    def batch_sent(self, partition: TopicPartition, records: int, size: int) -> None:
        """Log it as DEBUG."""
        PRODUCER.debug(
            "[%s] %s-%d: a batch of %d records, %d bytes",
            *(self._client_id, *partition, records, size),
        )

    def record_failed(
        self, partition: TopicPartition, error: BaseException, count: int
    ) -> None:
        """Log it as DEBUG: whoever awaits the delivery gets the error."""
        PRODUCER.debug(
            "[%s] %s-%d: %d records failed: %s",
            *(self._client_id, *partition, count, _told(error)),
        )

    def delivery_lost(
        self, partition: TopicPartition, error: BaseException, count: int
    ) -> None:
        """Log it as a warning."""
        records = "record was" if count == 1 else "records were"
        self._ration(
            *(PRODUCER, logging.WARNING, ("delivery lost", partition)),
            "%s-%d: %d %s not delivered, and nobody awaited the delivery: %s",
            *(*partition, count, records, _told(error)),
            count=count,
        )

    # ---- consumers -----------------------------------------------------------------

    def rebalance(
        self,
        state: str,
        assigned: Collection[TopicPartition],
        revoked: Collection[TopicPartition],
        lost: Collection[TopicPartition],
    ) -> None:
        """Log what is lost as a warning, and what else changes hands as INFO."""
        if lost:
            self._ration(
                *(CONSUMER, logging.WARNING, ("lost", None)),
                "partitions lost, others may own them already: %s",
                _names(lost),
                count=len(lost),
            )
        self.assignment_changed(assigned, revoked)
        if not (assigned or revoked or lost):
            CONSUMER.debug("[%s] member of the group: %s", self._client_id, state)

    def assignment_changed(
        self,
        assigned: Collection[TopicPartition],
        revoked: Collection[TopicPartition],
    ) -> None:
        """Log it as INFO."""
        for what, partitions in (("revoked", revoked), ("assigned", assigned)):
            if partitions and CONSUMER.isEnabledFor(logging.INFO):
                CONSUMER.info(
                    "[%s] partitions %s: %s",
                    *(self._client_id, what, _names(partitions)),
                )

    def group_protocol(
        self, group: str, protocol: str, cause: BaseException | None
    ) -> None:
        """Log it as INFO."""
        why = "" if cause is None else f", because {_told(cause)}"
        CONSUMER.info(
            "[%s] group %r is joined by the protocol %r%s",
            *(self._client_id, group, protocol, why),
        )

    def offsets_committed(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        """Log it as DEBUG."""
        at = ", ".join(f"{t}-{p}: {o.offset}" for (t, p), o in sorted(offsets.items()))
        CONSUMER.debug("[%s] committed %s", self._client_id, at)

    def commit_failed(self, group: str, error: BaseException) -> None:
        """Log it as a warning, unless a rebalance is all that is in its way."""
        passes = isinstance(error, RebalanceInProgress)
        self._ration(
            *(CONSUMER, logging.INFO if passes else logging.WARNING),
            ("commit", (group, passes)),
            "a commit of group %r failed: %s",
            *(group, _told(error)),
        )


_LOGGERS: Final[Mapping[str, logging.Logger]] = {
    "client": CLIENT,
    "producer": PRODUCER,
    "consumer": CONSUMER,
}


def attach_log(observer: Observer, client_id: str, servers: str) -> bool:
    """Let the log hear what an observer hears.

    Args:
        observer: what ``guarded`` made.
        client_id: the client's name.
        servers: its bootstrap servers, in words.

    Returns:
        Whether the log takes what the client does as DEBUG.
    """
    unheard = {
        name
        for name, logger in _FREQUENT.items()
        if not logger.isEnabledFor(logging.DEBUG)
    }
    add_observer(observer, LogObserver(client_id, servers), unheard)
    return CLIENT.isEnabledFor(logging.DEBUG)


def _server(node_id: int) -> str:
    return f"bootstrap server {-node_id}" if node_id < 0 else f"broker {node_id}"


def _told(cause: BaseException) -> str:
    # What other code raised may quote a record, which is nothing for a log.
    if isinstance(cause, KafkaError | OSError):
        return str(cause) or type(cause).__name__
    return type(cause).__name__


def _names(partitions: Collection[TopicPartition]) -> str:
    named = [f"{tp.topic}-{tp.partition}" for tp in islice(sorted(partitions), _NAMED)]
    rest = len(partitions) - len(named)
    return ", ".join(named) + (f" and {rest} more" if rest else "")
