"""The events that a client, producer or consumer reports: one method for each kind.

An observer can turn them into metrics of any library (``kafkaio.metrics``). It is
called synchronously on the event loop, so it must be quick. There is at most one call
for each request, answer or batch, never one for each record. The log of the standard
library is one of the observers (`kafkaio._runtime.log`).

Figures that an observer reads at a time of its own choice (gauges, such as a lag) are
not events: `Observer.started` gets the object that has them in ``statistics()``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import (
    AbstractContextManager,
    ExitStack,
    contextmanager,
    nullcontext,
)
from functools import partial, reduce, wraps
from typing import TYPE_CHECKING, Final, ParamSpec, Protocol, TypeAlias

from kafkaio._dataclass import dataclass
from kafkaio._named_tuple import NamedTuple
from kafkaio._public import public
from kafkaio._runtime.scopes import Cancelled
from kafkaio.types import Headers, OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kafkaio.errors import AcknowledgeFailed, LockLost

P = ParamSpec("P")
#: Seconds that the event loop may be late without a report that it was blocked.
BLOCKED_FROM: Final = 0.1
#: Makes the context manager within which a handler works on a record, or on records;
#: the second argument is the consumer group.
Handling: TypeAlias = Callable[[object, str | None], AbstractContextManager[object]]


@public("kafkaio")
class Observed(Protocol):
    """A client, producer, consumer or admin, as an observer sees it."""

    def statistics(self) -> object:
        """Return a snapshot of it, as its public method of this name does.

        A consumer with ``io_thread=True``, and everything that is read in a thread
        other than its event loop's, may change meanwhile: RuntimeError says so, and
        the next call may succeed.
        """


@public("kafkaio")
@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgedBatch:
    """A batch that a broker has acknowledged.

    Attributes:
        partition: where it was written.
        node_id: the broker that acknowledged it; with ``acks=0``, to which it was sent.
        records: number of its records.
        size: its bytes before compression, as ``batch_sent`` has them.
        wire_size: its bytes as they were sent. ``wire_size / size`` is Java's
            compression rate.
        queue_seconds: from its first record until it was first sent.
        seconds: from when it was last sent until the answer; 0 with ``acks=0``, which
            has no answer.
        attempts: how often it was sent; 1 without retries.
    """

    partition: TopicPartition
    node_id: int
    records: int
    size: int
    wire_size: int
    queue_seconds: float
    seconds: float
    attempts: int


@public("kafkaio")
class FetchedPart(NamedTuple):
    """The part of one partition in the answer to a fetch.

    Attributes:
        records: number of records, by the headers of the batches; those of aborted
            transactions and those before the position count, too. 0 for data that is
            dropped because the position was left meanwhile.
        size: bytes as they came, compressed or not.
    """

    records: int
    size: int


@public("kafkaio")
class AcquiredPart(NamedTuple):
    """What a share consumer acquired of one partition by one answer (KIP-932).

    Attributes:
        records: number of offsets that are locked for it now. Those at which there is
            no record, such as markers of transactions, count, too.
        size: bytes of the record batches that came, compressed or not. Records of a
            batch that were not acquired are part of it.
        redelivered: how many of the offsets were delivered before.
    """

    records: int
    size: int
    redelivered: int


@public("kafkaio")
class AcknowledgedPart(NamedTuple):
    """What became of records of one partition, as their leader confirmed it (KIP-932).

    Attributes:
        accepted: number of records that were processed.
        released: number of records that will be delivered again.
        rejected: number of records that will never be delivered again.
        gaps: number of offsets without a record, which the client acknowledges itself.
    """

    accepted: int
    released: int
    rejected: int
    gaps: int


@public("kafkaio")
class Observer:
    """Receives events; every method does nothing unless it is overridden.

    Times are in seconds, sizes in bytes.

    Any object with some of these methods is an observer; it need not derive from this
    class. An observer that raises does not affect the client: the exception goes to the
    event loop's exception handler.
    """

    #: Called by a producer with the topic and the headers of each record that is sent,
    #: by an observer that has this method: it returns the headers to write, which
    #: tracing extends by its context. This is the only call for each record. Records of
    #: such a producer take the way of those that are serialized. Rows of tables are
    #: left out. A method that raises changes no headers.
    inject: Callable[[str, Headers], Headers]

    #: Called by ``run`` and `kafkaio.exactly_once` for each call of the handler, by an
    #: observer that has this method: with the record, or the list of records, and the
    #: consumer group. It returns a context manager within which the handler works, in
    #: the task of the handler. Its ``__exit__`` cannot suppress what the handler
    #: raises. It is looked up when ``run`` is called.
    handling: Callable[[object, str | None], AbstractContextManager[object]]

    def started(self, kind: str, name: str, source: Observed) -> None:
        """A client, or an object that uses one, has started.

        ``kind`` is ``"client"``, ``"producer"``, ``"consumer"``, ``"share_consumer"``
        or ``"admin"``.
        ``name`` is the ``group_id`` of a consumer that has one, else the ``client_id``.
        One of the others with its own client is reported after that client. A
        ``"query"`` of Spark is reported by ``kafkaio.spark.LagListener`` alone, in a
        thread of the driver, with its name, or its id where it has none.

        ``source`` has ``statistics()``, with what an observer may read at any time:
        buffers, lags, connections. Keep a weak reference to it: an object that was
        forgotten, and not closed, is collected then, and not reported by ``closed``.
        """

    def closed(self, kind: str, name: str, source: Observed) -> None:
        """A client, or another of those, that started, or tried to, has closed."""

    def connection_opened(
        self, node_id: int, connection_class: str, host: str, port: int
    ) -> None:
        """A connection is ready: its API versions are negotiated.

        ``node_id`` is negative for a bootstrap server. If the metadata then shows that
        a broker has the address, the connection is used for that broker, and later
        events of it have the broker's id.
        """

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
        """A broker accepted the credentials: of a new connection, or once again.

        ``lifetime`` is how many seconds that holds, 0 for no limit. A connection whose
        session is limited authenticates again before its end (KIP-368): ``is_renewal``.
        ``seconds`` is how long the exchange with the broker took, without the time to
        get the credentials.
        """

    def authentication_failed(
        self,
        node_id: int,
        connection_class: str,
        mechanism: str,
        error: BaseException,
        *,
        is_renewal: bool,
    ) -> None:
        """A broker refused the credentials, or there were none to send.

        The connection ends: ``connection_lost`` follows.
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

    def request_sent(self, api: str, version: int, node_id: int, size: int) -> None:
        """A request was handed to the transport, or queued behind a throttle.

        ``api`` is its name, such as ``"Produce"``; ``size`` is all of its bytes, the
        length field included. Requests of the handshake and of an authentication are
        not reported; the bytes of the connection's statistics have them, too.
        """

    def request_answered(
        self, api: str, version: int, node_id: int, seconds: float, size: int
    ) -> None:
        """The answer of ``size`` bytes came ``seconds`` after the request was written.

        For an answer that is decoded in slices, that is when it was decoded.
        """

    def throttled(self, node_id: int, seconds: float, api: str) -> None:
        """The broker enforces a quota: the client sends it nothing for ``seconds``.

        The answer to a request of the kind ``api`` says so. It is at most
        ``max_throttle_ms``.
        """

    def metadata_updated(self, brokers: int, topics: int) -> None:
        """The metadata was refreshed; it has that many brokers and topics."""

    def retrying(
        self, what: str, attempt: int, delay: float, cause: BaseException
    ) -> None:
        """A request or another step failed and is repeated after ``delay`` seconds."""

    def topic_unavailable(self, topic: str, cause: BaseException) -> None:
        """A topic cannot be used: the broker returns an error for its metadata.

        ``cause`` says which: the topic does not exist, its name is illegal, or this
        client may not see it. Reported at once, and again as long as that lasts and the
        topic is in use: after half a minute, then after pauses that double, up to an
        hour. A topic that the request may create (``allow_auto_create_topics``) is
        reported if it is still missing half a second later.
        """

    def new_partitions(self, partitions: Collection[TopicPartition]) -> None:
        """Partitions without a committed offset are new to the consumer's group.

        They were added after it had subscribed, or while the group was down, and begin
        where ``auto_offset_reset_new_partitions`` says.
        """

    def positions_missing(self, reasons: Mapping[TopicPartition, str]) -> None:
        """Partitions of a consumer cannot be read: their positions are not found.

        ``reasons`` says of each what it lacks: it has no leader, or the leader does not
        answer. Other partitions are read meanwhile, and these as soon as their
        positions are found. Reported after five seconds, and again with pauses that
        grow from ten seconds to five minutes.
        """

    def partition_unavailable(
        self, partition: TopicPartition, cause: BaseException
    ) -> None:
        """Records wait for a partition that their topic does not have (yet).

        They fail after ``max_block_ms``. Reported once for a producer and a partition,
        and again only if the partition existed in between.
        """

    def batch_sent(self, partition: TopicPartition, records: int, size: int) -> None:
        """A batch of ``records`` records was sent, perhaps not for the first time.

        ``size`` is its bytes before compression.
        """

    def batch_acknowledged(self, batch: AcknowledgedBatch) -> None:
        """A broker has the batch; with ``acks=0``, the batch was sent."""

    def batch_retried(
        self,
        partition: TopicPartition,
        records: int,
        attempts: int,
        error: BaseException,
    ) -> None:
        """A batch that was sent ``attempts`` times will be sent again.

        ``retrying`` reports the same with the delay.
        """

    def batch_split(self, partition: TopicPartition, records: int) -> None:
        """A broker refused a batch as too large: it is sent again as smaller ones."""

    def record_failed(
        self, partition: TopicPartition, error: BaseException, count: int
    ) -> None:
        """The delivery of ``count`` records of a partition failed.

        The number of the partition is -1 if it was not chosen yet.
        """

    def delivery_lost(
        self, partition: TopicPartition, error: BaseException, count: int
    ) -> None:
        """The delivery of ``count`` records failed, and no task awaited it.

        The number of the partition is -1 if it was not chosen yet.
        """

    def fetch_answered(
        self,
        node_id: int,
        seconds: float,
        parts: Mapping[TopicPartition, FetchedPart],
    ) -> None:
        """A broker answered a fetch, ``seconds`` after it was sent.

        ``parts`` has what came of each partition, those without records left out. Data
        that is dropped, because the position was left meanwhile, is in it, too.
        """

    def records_handed_out(self, partition: TopicPartition, records: int) -> None:
        """The user has taken ``records`` records of a partition.

        Reported once for what is taken of one record batch, when the next records are
        asked for, or with the call that takes them (``poll``, ``batches``, tables).
        With ``io_thread=True``: they were handed to the user's thread.
        """

    def heartbeat_answered(self, group: str, seconds: float) -> None:
        """The group coordinator answered a heartbeat of a member."""

    def rebalance_completed(self, group: str, seconds: float) -> None:
        """A member has taken over a new assignment, callbacks included.

        ``seconds`` have passed since it asked to join, or since the coordinator asked
        it to release partitions or gave it new ones.
        """

    def rebalance_failed(self, group: str, error: BaseException | None) -> None:
        """A rebalance of a member ended without an assignment, or lost partitions.

        ``error`` is the coordinator's refusal, if there was one.
        """

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
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], seconds: float
    ) -> None:
        """The group coordinator, or the offset store, acknowledged a commit.

        ``seconds`` is how long that took, without back-offs and earlier attempts. For
        offsets in a transaction, it is the time of the transaction's commit.
        """

    def commit_failed(self, group: str, error: BaseException) -> None:
        """An automatic commit failed, or one before a release; or a part of it.

        ``error`` names the partitions and the reason; the others are committed. If the
        partitions go to another member before a later commit succeeds, that member gets
        the records since the last commit again. An error of ``commit()`` is raised by
        the call instead.
        """

    def records_acquired(
        self,
        group: str,
        node_id: int,
        seconds: float,
        parts: Mapping[TopicPartition, AcquiredPart],
    ) -> None:
        """A broker answered a fetch of a share consumer, ``seconds`` after it was sent.

        ``parts`` has what was acquired of each partition; it is empty if that is
        nothing.
        """

    def records_acknowledged(
        self,
        group: str,
        node_id: int,
        seconds: float,
        parts: Mapping[TopicPartition, AcknowledgedPart],
    ) -> None:
        """A broker confirmed acknowledgements ``seconds`` after they were sent.

        ``parts`` has what became of the records of each partition. What the broker
        refused is not in it: ``acknowledgement_failed`` or ``lock_lost`` reports that.
        A broker confirms an acknowledgement of records that were delivered to nobody,
        or acknowledged before, as well.
        """

    def acknowledgement_failed(
        self,
        group: str,
        partition: TopicPartition,
        first_offset: int,
        last_offset: int,
        error: AcknowledgeFailed,
    ) -> None:
        """Records were decided on, and that did not count, or it is unknown.

        They may be delivered again, to any member of the group. ``flush()``,
        ``commit()`` and ``record.acked`` raise or return the same error.
        """

    def lock_lost(
        self,
        group: str,
        partition: TopicPartition,
        first_offset: int,
        last_offset: int,
        error: LockLost,
    ) -> None:
        """Records without a decision are locked for this share consumer no longer.

        They are delivered again: to others while the program may still work on them, so
        their ``is_lost`` is True. ``error`` says why: the lock has run out, the
        connection to the leader was lost, the leader has moved.
        """

    def locks_renewed(
        self, group: str, node_id: int, partition: TopicPartition, records: int
    ) -> None:
        """A broker renewed the locks of ``records`` records of a partition (KIP-1222).

        From now on they last as long as new locks. Reported once for what one answer
        renewed of a partition.
        """

    def acknowledgements_missing(
        self, group: str, records: int, seconds: float
    ) -> None:
        """A share consumer cannot fetch: the program has all records it may have.

        ``records`` were handed out and have no decision: as many as ``max_in_flight``
        allows. Nothing was acknowledged for ``seconds``, which is longer than a lock
        lasts. Either the work takes that long, or the program forgets to acknowledge.
        Reported once, and again only if a record was acknowledged in between.
        """

    def handler_failed(
        self,
        group: str,
        partition: TopicPartition,
        offset: int,
        delivery_count: int,
        outcome: str,
        error: BaseException,
    ) -> None:
        """A handler of ``ShareConsumer.run`` raised, or its record cannot be read.

        ``outcome`` says what became of the record: ``"accepted"`` (``on_error`` has
        dealt with it, such as by a dead letter), ``"released"``, ``"rejected"``,
        ``"decided before"`` (by the handler itself, before it raised), or ``"lost"``:
        its lock was gone already. `kafkaio.Release` and `kafkaio.Reject` are not
        reported.
        """

    def group_configs_unknown(self, group: str, error: BaseException) -> None:
        """The configs of a share group cannot be read; ``error`` says why.

        ``ShareConsumer.run`` takes it that the brokers write no dead letters for the
        group: its `DeadLetter` writes them, beside the broker if that is wrong.
        """

    def dead_letters_at_broker(self, group: str, topic: str) -> None:
        """The brokers write the dead letters of a share group to ``topic`` (KIP-1191).

        ``DeadLetter`` of this program writes none, therefore: it rejects the record.
        Reported once for a share consumer.
        """

    def transaction_step(
        self, transactional_id: str, step: str, seconds: float
    ) -> None:
        """A step of a transaction has succeeded, and took ``seconds``.

        ``step`` is ``"init"`` (obtain the identity at the start), ``"begin"``,
        ``"send_offsets"``, ``"commit"`` or ``"abort"``. A commit and an abort count
        from the moment that the user, or an error, decided on the end until the
        coordinator acknowledged it.
        """

    def telemetry_ended(self, cause: BaseException) -> None:
        """The client pushes no metrics to the brokers any more (KIP-714).

        ``cause`` says why: a broker's refusal, or an error in making the metrics. If a
        metric of the application raised it, only that metric is no longer pushed.
        Reported once. It affects nothing else.
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


#: The observers of every client that is made, in the order in which they were added.
_defaults: tuple[_Default, ...] = ()


@public("kafkaio")
def add_default_observer(observer: object) -> None:
    """Give every client, producer, consumer and admin an observer.

    For instrumentation that does not edit the program. It applies to those that are
    made from now on, in every thread of the process, beside the observers that they
    are given; those that share a `kafkaio.Client` have that client's. An object does
    not get the default observer if it is given one of the same class: the one that it
    is given takes its place.

    To add an observer that is there already does nothing.

    Args:
        observer: an object with any of the methods of `Observer`. If clients run in
            several threads, it is called in all of them.
    """
    global _defaults
    if not any(each.observer is observer for each in _defaults):
        _defaults = (*_defaults, _Default(observer))


@public("kafkaio")
def remove_default_observer(observer: object) -> None:
    """Take back what `add_default_observer` did.

    Objects that have the observer stop calling it, but for ``closed``, which lets it
    release what it keeps for them. Removing an observer that is not there does nothing.

    Args:
        observer: the object that was added.
    """
    global _defaults
    for each in _defaults:
        if each.observer is observer:
            each.is_on = False
    _defaults = tuple(each for each in _defaults if each.is_on)


class _Default:
    """A default observer, with the methods that it has; they can be switched off.

    Clients keep methods of their observers, so that to forget them is not enough.

    Args:
        observer: the user's.

    Attributes:
        observer: the user's.
        is_on: whether its methods are called.
    """

    def __init__(self, observer: object) -> None:
        self.observer = observer
        self.is_on = True
        for name in [*vars(Observer), *_LOOKED_UP]:
            method = getattr(observer, name, None)
            if not name.startswith("_") and callable(method):
                if getattr(method, "__func__", None) is vars(Observer).get(name, 0):
                    continue  # inherited, and does nothing
                setattr(self, name, self._switched(name, method))

    def is_replaced_by(self, given: Collection[object]) -> bool:
        """Whether one of these observers takes its place."""
        return any(isinstance(each, type(self.observer)) for each in given)

    def _switched(
        self, name: str, method: Callable[..., object]
    ) -> Callable[..., object]:
        if name == "closed":
            return method
        off = _LOOKED_UP.get(name, _nothing)

        def call(*args: object, **kwargs: object) -> object:
            return method(*args, **kwargs) if self.is_on else off(*args, **kwargs)

        return call


def _nothing(*args: object, **kwargs: object) -> None:
    del args, kwargs


def _unchanged(topic: str, headers: Headers) -> Headers:
    del topic
    return headers


def _around_nothing(what: object, group: str | None) -> AbstractContextManager[object]:
    del what, group
    return nullcontext()


#: The methods that clients look up, and are no events, with what each does if off.
_LOOKED_UP: Final[Mapping[str, Callable[..., object]]] = {
    "inject": _unchanged,
    "handling": _around_nothing,
}


def guarded(observer: object | None) -> Observer:
    """Make an observer that passes events on and never raises.

    The default observers are added to those that are given.

    Args:
        observer: an object with any of the methods of ``Observer``, a list or tuple of
            such objects, or None.
    """
    guard = Observer()
    given = observer if isinstance(observer, list | tuple) else (observer,)
    for each in given:
        add_observer(guard, each)
    for default in _defaults:
        if not default.is_replaced_by(given):
            add_observer(guard, default)
    return guard


def observes(observer: Observer, name: str) -> bool:
    """Whether an observer does something in the method of that name.

    Asked where the arguments of the call would cost something.
    """
    method = getattr(observer, name)
    return getattr(method, "__func__", None) is not vars(Observer)[name]


def add_observer(
    guard: Observer, observer: object, leave_out: Collection[str] = ()
) -> Callable[[], None]:
    """Pass the events of ``guard`` on to one more observer.

    Args:
        guard: made by ``guarded``.
        observer: an object with any of the methods of ``Observer``.
        leave_out: names of methods that are not to be called.

    Returns:
        A function that ends it for all events; ``inject`` and ``handling`` stay. Events
        without another observer get a method again that does nothing. A caller that
        has kept a method of ``guard`` keeps its old behaviour.
    """
    added: dict[str, Callable[..., None]] = {}
    for name, no_op in vars(Observer).items():
        method = getattr(observer, name, None)
        if name.startswith("_") or name in leave_out or not callable(method):
            continue
        # An inherited no-op need not be called at all.
        if getattr(method, "__func__", None) is not no_op:
            added[name] = _contained(method, name)
            _pass_on(guard, name, [*_notified(guard).get(name, ()), added[name]])
    inject = getattr(observer, "inject", None)
    if callable(inject) and "inject" not in leave_out:
        before = vars(guard).get("inject")
        guard.inject = _injecting(inject, before)
    handling = getattr(observer, "handling", None)
    if callable(handling) and "handling" not in leave_out:
        guard.handling = _within(handling, vars(guard).get("handling"))

    def remove() -> None:
        for name, notify in added.items():
            others = [each for each in _notified(guard)[name] if each is not notify]
            _pass_on(guard, name, others)

    return remove


def _notified(guard: Observer) -> dict[str, list[Callable[..., None]]]:
    """Return what is called for each event that somebody observes."""
    found: dict[str, list[Callable[..., None]]]
    found = vars(guard).setdefault("_notified", {})
    return found


def _pass_on(guard: Observer, name: str, to: list[Callable[..., None]]) -> None:
    """Let the method of an event call these functions, and nothing else."""
    _notified(guard)[name] = to
    if to:
        setattr(guard, name, reduce(_both, to))
    else:
        vars(guard).pop(name, None)


def _both(first: Callable[P, None], second: Callable[P, None]) -> Callable[P, None]:
    def notify(*args: P.args, **kwargs: P.kwargs) -> None:
        first(*args, **kwargs)
        second(*args, **kwargs)

    return notify


def _injecting(
    inject: Callable[[str, Headers], Headers],
    before: Callable[[str, Headers], Headers] | None,
) -> Callable[[str, Headers], Headers]:
    def extended(topic: str, headers: Headers) -> Headers:
        if before is not None:
            headers = before(topic, headers)
        try:
            return inject(topic, headers)
        except (Exception, Cancelled) as error:  # noqa: BLE001  (see the class)
            _report_failure("inject", error)
            return headers

    return extended


def _within(handling: Handling, before: Handling | None) -> Handling:
    """Return a context manager that an observer's failure does not get out of.

    Whatever the block raises is raised, even if an observer would suppress it.
    """

    @contextmanager
    def entered(what: object, group: str | None) -> Iterator[None]:
        with before(what, group) if before is not None else nullcontext():
            inner = ExitStack()
            _try(lambda: inner.enter_context(handling(what, group)))
            try:
                yield
            except BaseException as error:
                _try(partial(inner.__exit__, type(error), error, error.__traceback__))
                raise
            _try(inner.close)

    return entered


def _try(call: Callable[[], object]) -> None:
    try:
        call()
    except (Exception, Cancelled) as error:  # noqa: BLE001  (see the class)
        _report_failure("handling", error)


def _contained(method: Callable[P, object], name: str) -> Callable[P, None]:
    @wraps(method)
    def notify(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            method(*args, **kwargs)
        except (Exception, Cancelled) as error:  # noqa: BLE001  (see the class)
            _report_failure(name, error)

    return notify


def _report_failure(name: str, error: BaseException) -> None:
    asyncio.get_running_loop().call_exception_handler(
        {"message": f"observer failed in {name}", "exception": error}
    )
