"""What a client reports about its work: one method per kind of event.

No metrics library is imposed: an observer turns events into whatever it likes. It is
called on the event loop, synchronously, so it must be quick. The log of the standard
library is one of the observers (`kafkaio._runtime.log`).
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
    """Hears what happens; every method does nothing until it is overridden.

    Any object with some of these methods can observe: deriving from this class is a
    convenience. An observer that raises never harms the client: the exception goes
    to the event loop's exception handler.
    """

    def started(self, kind: str, name: str) -> None:
        """A ``"client"``, ``"producer"`` or ``"consumer"`` has started.

        ``name`` is the group's, or else the ``client_id``. What has a client of its
        own is reported after that.
        """

    def closed(self, kind: str, name: str) -> None:
        """What was reported as started, or tried to start, has closed."""

    def connection_opened(
        self, node_id: int, connection_class: str, host: str, port: int
    ) -> None:
        """A connection is ready: its versions are negotiated."""

    def connection_lost(
        self, node_id: int, connection_class: str, cause: BaseException | None
    ) -> None:
        """A ready connection ended, or one could not be made.

        ``cause`` is None where this side closed it.
        """

    def request_sent(self, api: str, version: int, node_id: int) -> None:
        """A request was handed to the transport, or queued behind a throttle."""

    def request_answered(
        self, api: str, version: int, node_id: int, seconds: float
    ) -> None:
        """The answer came ``seconds`` after the request was written."""

    def throttled(self, node_id: int, seconds: float) -> None:
        """The broker enforces a quota: nothing is sent to it for that long."""

    def metadata_updated(self, brokers: int, topics: int) -> None:
        """The view of the cluster was refreshed; its numbers of brokers and topics."""

    def retrying(
        self, what: str, attempt: int, delay: float, cause: BaseException
    ) -> None:
        """Something failed and is tried again after ``delay`` seconds."""

    def topic_unavailable(self, topic: str, cause: BaseException) -> None:
        """A topic that is wanted cannot be used: the broker refuses its description.

        It does not exist, its name is illegal, or this client may not see it, as the
        ``cause`` says. Reported once when it is first found, and again only after the
        topic was available in between, or was not wanted for ``metadata_max_idle_ms``.
        A topic that asking may create (``allow_auto_create_topics``) is reported when
        it is still missing half a second later.
        """

    def batch_sent(self, partition: TopicPartition, records: int, size: int) -> None:
        """A batch of records went out; its size is in bytes."""

    def record_failed(
        self, partition: TopicPartition, error: BaseException, count: int
    ) -> None:
        """That many records of a partition were not delivered."""

    def delivery_lost(
        self, partition: TopicPartition, error: BaseException, count: int
    ) -> None:
        """That many records failed, and nobody awaited their deliveries."""

    def rebalance(
        self,
        state: str,
        assigned: Collection[TopicPartition],
        revoked: Collection[TopicPartition],
        lost: Collection[TopicPartition],
    ) -> None:
        """The group changed what this consumer owns, or the state of its member."""

    def assignment_changed(
        self,
        assigned: Collection[TopicPartition],
        revoked: Collection[TopicPartition],
    ) -> None:
        """What a consumer reads without its group's help changed.

        Those are fixed partitions, and the partitions of topics without a group.
        """

    def group_protocol(
        self, group: str, protocol: str, cause: BaseException | None
    ) -> None:
        """A group is joined by ``consumer`` (KIP-848) or by ``classic``.

        ``cause`` tells why not by the newer one where that was tried and failed.
        """

    def offsets_committed(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        """The coordinator acknowledged a commit."""

    def commit_failed(self, group: str, error: BaseException) -> None:
        """A commit that nobody called for failed: an automatic one.

        The records since the last commit come again where the partitions go to
        another member before a later commit succeeds. An error of ``commit()`` is
        raised there instead.
        """

    def loop_blocked(self, seconds: float, stack: str) -> None:
        """The event loop did not turn for that long: some code blocked it.

        ``stack`` shows that code as a traceback does, innermost call last; it is empty
        where nobody could look, as while a C function keeps the interpreter to itself.
        """


def guarded(observer: object | None) -> Observer:
    """Make an observer that passes events on and lets nothing out.

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
    """Let one more observer hear what ``guard`` hears.

    Args:
        guard: what ``guarded`` made.
        observer: an object with any of the methods of ``Observer``.
        leave_out: names of methods that are not to be called.
    """
    for name, nothing in vars(Observer).items():
        heard = getattr(observer, name, None)
        if name.startswith("_") or name in leave_out or not callable(heard):
            continue
        # An inherited no-op need not be called at all.
        if getattr(heard, "__func__", None) is not nothing:
            before = vars(guard).get(name)
            hear = _contained(heard, name)
            setattr(guard, name, hear if before is None else _both(before, hear))


def _both(first: Callable[P, None], second: Callable[P, None]) -> Callable[P, None]:
    def hear(*args: P.args, **kwargs: P.kwargs) -> None:
        first(*args, **kwargs)
        second(*args, **kwargs)

    return hear


def _contained(heard: Callable[P, object], name: str) -> Callable[P, None]:
    @wraps(heard)
    def hear(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            heard(*args, **kwargs)
        except Exception as error:  # noqa: BLE001  (an observer never harms us)
            asyncio.get_running_loop().call_exception_handler(
                {
                    "message": f"observer failed in {name}",
                    "exception": error,
                }
            )

    return hear
