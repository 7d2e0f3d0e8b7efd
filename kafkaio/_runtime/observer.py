"""The events that a client, producer or consumer reports: one method for each kind.

An observer can turn them into metrics of any library. It is called synchronously on the
event loop, so it must be quick. The log of the standard library is one of the observers
(`kafkaio._runtime.log`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from typing import ParamSpec

from kafkaio.types import OffsetAndMetadata, TopicPartition

__all__ = ["Observer", "add_observer", "guarded"]

P = ParamSpec("P")


class Observer:
    """Receives events; every method does nothing unless it is overridden.

    Any object with some of these methods is an observer; it need not derive from this
    class. An observer that raises does not affect the client: the exception goes to the
    event loop's exception handler.
    """

    def started(self, kind: str, name: str) -> None:
        """A ``"client"``, ``"producer"``, ``"consumer"`` or ``"admin"`` has started.

        ``name`` is the ``group_id`` of a consumer that has one, else the ``client_id``.
        One of the others with its own client is reported after that client.
        """

    def closed(self, kind: str, name: str) -> None:
        """A client, or another of those, that started, or tried to, has closed."""

    def connection_opened(
        self, node_id: int, connection_class: str, host: str, port: int
    ) -> None:
        """A connection is ready: its API versions are negotiated."""

    def authenticated(
        self, node_id: int, connection_class: str, mechanism: str, lifetime: float
    ) -> None:
        """A broker accepted the credentials: of a new connection, or once again.

        ``lifetime`` is how many seconds that holds, 0 for no limit. A connection whose
        session is limited authenticates again before its end (KIP-368).
        """

    def credentials_exposed(self, mechanism: str, host: str) -> None:
        """A password or token is sent to another host without encryption.

        Reported once for each client, before the first time.
        """

    def connection_lost(
        self, node_id: int, connection_class: str, cause: BaseException | None
    ) -> None:
        """A ready connection ended, or one could not be made.

        ``cause`` is None if the client closed it.
        """

    def request_sent(self, api: str, version: int, node_id: int) -> None:
        """A request was handed to the transport, or queued behind a throttle."""

    def request_answered(
        self, api: str, version: int, node_id: int, seconds: float
    ) -> None:
        """The answer arrived ``seconds`` after the request was written."""

    def throttled(self, node_id: int, seconds: float) -> None:
        """The broker enforces a quota: the client sends it nothing for ``seconds``."""

    def metadata_updated(self, brokers: int, topics: int) -> None:
        """The metadata was refreshed; it has that many brokers and topics."""

    def retrying(
        self, what: str, attempt: int, delay: float, cause: BaseException
    ) -> None:
        """A request or another step failed and is repeated after ``delay`` seconds."""

    def topic_unavailable(self, topic: str, cause: BaseException) -> None:
        """A topic cannot be used: the broker returns an error for its metadata.

        ``cause`` says which: the topic does not exist, its name is illegal, or this
        client may not see it. Reported once, and again only if the topic was available
        in between, or was unused for ``metadata_max_idle_ms``. A topic that the request
        may create (``allow_auto_create_topics``) is reported if it is still missing
        half a second later.
        """

    def batch_sent(self, partition: TopicPartition, records: int, size: int) -> None:
        """A batch of ``records`` records and ``size`` bytes was sent."""

    def record_failed(
        self, partition: TopicPartition, error: BaseException, count: int
    ) -> None:
        """The delivery of ``count`` records of a partition failed."""

    def delivery_lost(
        self, partition: TopicPartition, error: BaseException, count: int
    ) -> None:
        """The delivery of ``count`` records failed, and no task awaited it."""

    def rebalance(
        self,
        state: str,
        assigned: Collection[TopicPartition],
        revoked: Collection[TopicPartition],
        lost: Collection[TopicPartition],
    ) -> None:
        """The partitions of a group member changed, or the state of the member."""

    def assignment_changed(
        self,
        assigned: Collection[TopicPartition],
        revoked: Collection[TopicPartition],
    ) -> None:
        """The partitions of a consumer changed without a rebalance.

        Those are partitions given to ``assign``, and the partitions of topics that a
        consumer without a group reads.
        """

    def group_protocol(
        self, group: str, protocol: str, cause: BaseException | None
    ) -> None:
        """A member joins by the protocol ``consumer`` (KIP-848) or ``classic``.

        ``cause`` says why KIP-848 cannot be used, if it was tried and failed.
        """

    def offsets_committed(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        """The group coordinator, or the offset store, acknowledged a commit."""

    def commit_failed(self, group: str, error: BaseException) -> None:
        """An automatic commit failed.

        If the partitions go to another member before a later commit succeeds, that
        member gets the records since the last commit again. An error of ``commit()``
        is raised by the call instead.
        """

    def query_lag(self, query: str, lag: Mapping[TopicPartition, int]) -> None:
        """A streaming query of Spark ended a micro-batch that many offsets behind.

        ``query`` is its name, or its id where it has none. Only
        ``kafkaio.spark.LagListener`` reports it, in a thread of the driver.
        """

    def loop_blocked(self, seconds: float, stack: str) -> None:
        """Code blocked the event loop for ``seconds``.

        ``stack`` shows that code as a traceback does, innermost call last. It is empty
        if it could not be taken, for example while a C function held the interpreter
        lock.
        """


def guarded(observer: object | None) -> Observer:
    """Make an observer that passes events on and never raises.

    Args:
        observer: an object with any of the methods of ``Observer``, a list or tuple of
            such objects, or None.
    """
    guard = Observer()
    for each in observer if isinstance(observer, list | tuple) else (observer,):
        add_observer(guard, each)
    return guard


def add_observer(
    guard: Observer, observer: object, leave_out: Collection[str] = ()
) -> None:
    """Pass the events of ``guard`` on to one more observer.

    Args:
        guard: what ``guarded`` made.
        observer: an object with any of the methods of ``Observer``.
        leave_out: names of methods that are not to be called.
    """
    for name, no_op in vars(Observer).items():
        method = getattr(observer, name, None)
        if name.startswith("_") or name in leave_out or not callable(method):
            continue
        # An inherited no-op need not be called at all.
        if getattr(method, "__func__", None) is not no_op:
            before = vars(guard).get(name)
            notify = _contained(method, name)
            setattr(guard, name, notify if before is None else _both(before, notify))


def _both(first: Callable[P, None], second: Callable[P, None]) -> Callable[P, None]:
    def notify(*args: P.args, **kwargs: P.kwargs) -> None:
        first(*args, **kwargs)
        second(*args, **kwargs)

    return notify


def _contained(method: Callable[P, object], name: str) -> Callable[P, None]:
    @wraps(method)
    def notify(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            method(*args, **kwargs)
        except Exception as error:  # noqa: BLE001  (see the class)
            asyncio.get_running_loop().call_exception_handler(
                {
                    "message": f"observer failed in {name}",
                    "exception": error,
                }
            )

    return notify
