"""Operations on many items at many brokers: route, group, ask, and ask again.

An *item* has a result of its own: a partition, a group, a topic, a broker. An
`Operation` says where each item belongs, how to make one request for some items, and
how to read the answer. `Fanout.ask` routes the items to their brokers, sends one
request to each broker, all brokers at once, sorts the results, and asks again for the
items whose failures may pass, until each item is decided or the deadline has passed.
`Fanout.ask_once` sends one round of requests, for callers that pace themselves.

Every item is in exactly one of these places (see `ItemProgress`)::

    waiting ──due──▶ routing ──located──▶ queued for a broker ──sent──▶ in flight
       ▲                │                                                  │
       └──── again ─────┴────────────────────── again ─────────────────────┤
                                                                           ▼
                                                                   found or failed

The invariants:

- A broker has at most one request of an operation in flight. Items that are routed to
  it meanwhile go together into the next one.
- Brokers do not wait for each other: one that does not answer delays its own items
  alone.
- Items that failed together are due again together, so that they share a request.
  Partitions without a leader wait together, and are reported together.
- An item that failed with an error that makes the metadata out of date waits for the
  next attempt to refresh the metadata, which has its own back-off. All others wait for
  the back-off of the item.
- Only items whose failure is retriable are asked for again (see
  `kafkaio._machines.reactions`). An item that took effect although its answer was lost
  may therefore be reported with the error that the repetition brought.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Hashable,
    Iterable,
    Mapping,
    Sequence,
)
from dataclasses import field
from math import inf
from typing import Protocol, TypeAlias, TypeVar

from kafkaio._client.destinations import Destination, Leader
from kafkaio._client.retry import RetryLater, RetryPolicy, timed_out
from kafkaio._dataclass import dataclass
from kafkaio._generic import Generic
from kafkaio._machines.backoff import Backoff
from kafkaio._machines.reactions import Reaction, ReactionStep, reaction
from kafkaio._named_tuple import NamedTuple
from kafkaio._net.connection import Connection
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._runtime.clock import now, roll
from kafkaio._runtime.group import TaskGroup
from kafkaio._runtime.scopes import CancelScope, FailingScope
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.errors import (
    BrokerError,
    ConnectionLost,
    KafkaError,
    NetworkError,
    ProtocolError,
    RequestTimeout,
    UnsupportedVersion,
)
from kafkaio.protocol._broker_errors import broker_error, meaning
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Request, Response
from kafkaio.types import TopicPartition

ItemT = TypeVar("ItemT", bound=Hashable)
ValueT = TypeVar("ValueT")
ResponseT = TypeVar("ResponseT", bound=Response)

#: The least seconds for a request, however close the deadline is.
_LEAST = 0.001


class Terms(NamedTuple):
    """The terms of one request of an operation.

    Attributes:
        version: the version in which it will be sent.
        timeout: seconds that are left for it.
        node_id: the broker to which it will be sent.
    """

    version: int
    timeout: float
    node_id: int

    @property
    def timeout_ms(self) -> int:
        """The milliseconds that the broker may take, for requests with such a field."""
        # A little less than what is left: the answer REQUEST_TIMED_OUT, which says more
        # than silence, has to arrive in time, too.
        left = int(self.timeout * 1000)
        return max(1, left - min(500, left // 10))


class Answer(NamedTuple, Generic[ItemT, ValueT]):
    """The part of an answer that is about one item.

    Attributes:
        item: the item.
        value: the result, if the code is 0.
        code: the error code of the item.
        message: the broker's message for the error.
    """

    item: ItemT
    value: ValueT
    code: int = 0
    message: str | None = None


@dataclass(slots=True)
class Results(Generic[ItemT, ValueT]):
    """The results of items; each item is in one of the three.

    Attributes:
        found: the results.
        failed: the errors that another attempt cannot change; after `Fanout.ask` also
            a RequestTimeout for each item that the deadline left undecided.
        again: the errors of the items that are worth another attempt; empty after
            `Fanout.ask`.
    """

    found: dict[ItemT, ValueT] = field(default_factory=dict)
    failed: dict[ItemT, KafkaError] = field(default_factory=dict)
    again: dict[ItemT, KafkaError] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.found) + len(self.failed) + len(self.again)

    def __contains__(self, item: object) -> bool:
        return any(item in kind for kind in (self.found, self.failed, self.again))

    def add(self, others: Results[ItemT, ValueT]) -> None:
        """Add the results of other items."""
        self.found |= others.found
        self.failed |= others.failed
        self.again |= others.again

    def fail(self, items: Iterable[ItemT], error: KafkaError) -> None:
        """Add the same error for several items, by whether it is retriable."""
        kind = self.again if error.retriable else self.failed
        kind.update(dict.fromkeys(items, error))

    def or_raise(self) -> dict[ItemT, ValueT]:
        """Return what was found, if that is everything.

        Raises:
            KafkaError: the error of the first item that failed; a note names how many
                others failed.
        """
        failures = {**self.failed, **self.again}
        for error in failures.values():
            if len(failures) > 1:
                error.add_note(f"{len(failures) - 1} others failed, too")
            raise error
        return self.found


def _name(item: object) -> str:
    if isinstance(item, TopicPartition):
        return f"{item.topic}-{item.partition}"
    return str(item)


def _as_many(version: int) -> int:
    del version
    return 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Generic[ItemT, ValueT, ResponseT]):
    """A kind of request for items, and how to route, make and read it.

    Attributes:
        what: the name of the operation; messages continue with the name of an item, as
            in ``look up the offset of orders-3``.
        request: the class of its requests.
        destination: returns where an item belongs: its leader, coordinator, the
            controller, one broker, or any.
        build: makes the request for some items. It may raise UnsupportedVersion for
            some of them, which then fail, each with what is raised for it alone; the
            others go into another request.
        read: reads the results of the items from an answer, in any order. It may raise
            a KafkaError, which all items then have. An item that it leaves out is asked
            for again.
        name: names an item in messages; a partition is ``orders-3`` by default.
        connection_class: the connections to use.
        max_version: the highest version of the request to use.
        batch: returns how many items a request of a version can carry.
        react: returns the reaction to an error code, in place of the table.
        is_exact: whether an answer must have every item asked for and no other. Then an
            item that is left out fails with a ProtocolError, and one that was not asked
            for fails the request.
    """

    what: str
    request: type[Request[ResponseT]]
    destination: Callable[[ItemT], Destination]
    build: Callable[[Sequence[ItemT], Terms], Request[ResponseT]]
    read: Callable[[ResponseT, Sequence[ItemT]], Iterable[Answer[ItemT, ValueT]]]
    name: Callable[[ItemT], str] = _name
    connection_class: ConnectionClass = ConnectionClass.SHARED
    max_version: int | None = None
    batch: Callable[[int], int] = _as_many
    react: Callable[[int], Reaction] | None = None
    is_exact: bool = False

    def reaction(self, code: int) -> Reaction:
        """Return the reaction to an error code."""
        if self.react is not None:
            return self.react(code)
        return reaction(self.request.API_KEY, code)

    def named(self, items: Collection[ItemT]) -> str:
        """Name the operation on some items, for messages."""
        first = self.name(next(iter(items)))
        others = f" and {len(items) - 1} more" if len(items) > 1 else ""
        return f"{self.what} {first}{others}"


class _Undecided(NamedTuple):
    """An item without a result.

    Attributes:
        failures: the number of failures.
        due: when to ask for it; ``inf`` unless it waits for a time.
        last: the last failure.
        reason: what it waits for, if that is not a failure; else None.
    """

    failures: int
    due: float
    last: KafkaError | None
    reason: KafkaError | None = None


def _may_have_worked(failure: KafkaError | None) -> bool:
    # REQUEST_TIMED_OUT means that the broker began, and was not done in time.
    if isinstance(failure, BrokerError):
        return failure.code == ErrorCode.REQUEST_TIMED_OUT
    return isinstance(failure, ConnectionLost | RequestTimeout)


#: An item before its first request, and during it. Most items are these two in turn, so
#: that thousands of items share two tuples.
_NEW = _Undecided(0, 0.0, None)
_TAKEN = _Undecided(0, inf, None)


class ItemProgress(Generic[ItemT, ValueT]):
    """The state of each item: decided, waiting for a time or an event, or taken.

    It does no I/O and has no clock. An item that is taken (`take_due`) stays taken
    until it is decided, postponed or released.

    Args:
        items: the items; each is due at once.
        backoff: the waits between the attempts at one item.
        deadline: the time at which the attempts end.

    Attributes:
        results: the results of the items that are decided.
        deadline: the time at which the attempts end.
    """

    def __init__(
        self, items: Iterable[ItemT], backoff: Backoff, deadline: float
    ) -> None:
        self.results: Results[ItemT, ValueT] = Results[ItemT, ValueT]()
        self._backoff = backoff
        self.deadline = deadline
        # Invariant: an item is either here or in the results.
        self._undecided = dict.fromkeys(items, _NEW)
        self._items = tuple(self._undecided)

    @property
    def is_over(self) -> bool:
        """Whether every item is decided."""
        return not self._undecided

    def take_due(self, at: float) -> list[ItemT]:
        """Take the items that are due."""
        due = [item for item, it in self._undecided.items() if it.due <= at]
        for item in due:
            it = self._undecided[item]
            self._undecided[item] = _TAKEN if it is _NEW else it._replace(due=inf)
        return due

    @property
    def next_due(self) -> float:
        """When the next item is due; ``inf`` if none waits for a time."""
        return min((it.due for it in self._undecided.values()), default=inf)

    def decide(self, results: Results[ItemT, ValueT]) -> None:
        """Add the items that were found, and those that failed for good.

        An error gets a note if an earlier attempt at the item may have taken effect,
        because its answer was lost: that may be the reason for the error.
        """
        self.results.found |= results.found
        self.results.failed |= results.failed
        for item, error in results.failed.items():
            # Only an answer of a broker can be caused by the attempt before, such as
            # TOPIC_ALREADY_EXISTS for a topic that this very call has created.
            last = self._undecided[item].last
            if _may_have_worked(last) and isinstance(error, BrokerError):
                error.add_note(
                    f"an earlier attempt, which may have taken effect, ended so: {last}"
                )
        for item in (*results.found, *results.failed):
            del self._undecided[item]

    def postpone(
        self, failures: Mapping[ItemT, KafkaError], at: float, dice: float
    ) -> tuple[int, float]:
        """Let items wait for the back-off after a failure.

        Args:
            failures: why they failed.
            at: the time now.
            dice: a random number in [0, 1), the same for all of them: items that failed
                together are due together.

        Returns:
            The most failures that one of them has, and the longest of the waits.
        """
        most, longest = 0, 0.0
        for item, error in failures.items():
            count = self._undecided[item].failures
            delay = self._backoff.delay(count, dice)
            most, longest = max(most, count + 1), max(longest, delay)
            self._undecided[item] = _Undecided(count + 1, at + delay, error)
        return most, longest

    def suspend(
        self, failures: Mapping[ItemT, KafkaError], *, counts: bool = True
    ) -> int:
        """Let items wait for `release`.

        Args:
            failures: why they wait.
            counts: whether that counts as a failure.

        Returns:
            The most failures that one of them has.
        """
        most = 0
        for item, error in failures.items():
            it = self._undecided[item]
            if counts:
                self._undecided[item] = _Undecided(it.failures + 1, inf, error)
            else:
                self._undecided[item] = it._replace(due=inf, reason=error)
            most = max(most, it.failures + counts)
        return most

    def release(self, items: Iterable[ItemT], at: float) -> None:
        """Let items be due that were suspended."""
        for item in items:
            self._undecided[item] = self._undecided[item]._replace(due=at, reason=None)

    @property
    def is_too_late(self) -> bool:
        """Whether every undecided item waits for a time after the deadline."""
        return all(self.deadline <= it.due < inf for it in self._undecided.values())

    def expire(
        self, why: Callable[[ItemT, KafkaError | None], KafkaError]
    ) -> Results[ItemT, ValueT]:
        """End it: every undecided item fails.

        Args:
            why: makes its error of the last failure.

        Returns:
            The results, in the order in which the items were given.
        """
        for item, it in self._undecided.items():
            self.results.failed[item] = why(item, it.reason or it.last)
        self._undecided.clear()
        return self.in_order()

    def in_order(self) -> Results[ItemT, ValueT]:
        """Return the results in the order in which the items were given."""
        found, failed = self.results.found, self.results.failed
        self.results.found = {i: found[i] for i in self._items if i in found}
        self.results.failed = {i: failed[i] for i in self._items if i in failed}
        return self.results


def sort_answers(
    operation: Operation[ItemT, ValueT, ResponseT],
    items: Sequence[ItemT],
    answers: Iterable[Answer[ItemT, ValueT]],
) -> tuple[Results[ItemT, ValueT], dict[ItemT, Reaction]]:
    """Sort the parts of an answer by item and result.

    Returns:
        The results, and the reactions to the error codes among them.
    """
    results = Results[ItemT, ValueT]()
    reactions: dict[ItemT, Reaction] = {}
    answered = {answer.item: answer for answer in answers}
    if operation.is_exact:
        _check_unasked(operation, items, answered)
    # Nearly all items have the same code.
    by_code: dict[int, Reaction] = {}
    for item in items:
        answer = answered.get(item)
        if answer is None:
            left_out = f"the answer leaves {operation.name(item)} out"
            if operation.is_exact:
                error: KafkaError = ProtocolError(f"{operation.what}: {left_out}")
                results.failed[item] = error
            else:
                results.again[item] = NetworkError(left_out)
            continue
        what = by_code.get(answer.code)
        if what is None:
            what = by_code[answer.code] = operation.reaction(answer.code)
        if what.step is ReactionStep.SUCCESS:
            results.found[item] = answer.value
            continue
        reason = answer.message or meaning(answer.code)
        detail = f": {reason}" if reason else ""
        error = broker_error(
            answer.code,
            f"{operation.named([item])}{detail}",
            api=operation.request.API_KEY,
        )
        # The reaction decides, not `error.retriable`: an operation may have its own.
        (results.again if what.retry else results.failed)[item] = error
        reactions[item] = what
    return results, reactions


def _check_unasked(
    operation: Operation[ItemT, ValueT, ResponseT],
    items: Sequence[ItemT],
    answered: Mapping[ItemT, object],
) -> None:
    wanted = frozenset(items)
    for item in answered:
        if item not in wanted:
            raise ProtocolError(
                f"{operation.named(items)}: the answer has {operation.name(item)}, "
                "which was not asked for"
            )


class RoutingPort(Protocol):
    """The routing of requests; see `kafkaio._client.router.Router`."""

    def by_broker(
        self, destination: Callable[[ItemT], Destination], items: Sequence[ItemT]
    ) -> tuple[dict[int, list[ItemT]], dict[Destination, list[ItemT]]]:
        """Sort items by broker, and those whose broker is not known by destination."""
        ...

    async def locate(self, to: Destination) -> int:
        """The node id of a destination; raises RetryLater or a KafkaError."""
        ...

    async def refreshed(self) -> None:
        """Request metadata and wait for the next attempt."""
        ...

    async def connection(
        self, node_id: int, connection_class: ConnectionClass
    ) -> Connection:
        """Return the connection to a broker; open it if necessary."""
        ...

    def why_held(self, node_id: int, connection_class: ConnectionClass) -> str:
        """Return why a broker gets no requests now; empty if it does."""
        ...

    def why_unlocated(self) -> str:
        """Return what delays finding brokers; empty for nothing."""
        ...

    def unreachable(self, node_id: int) -> None:
        """Drop what may be out of date, because a broker could not be reached."""
        ...

    def react(self, to: Destination, node_id: int, reaction: Reaction) -> None:
        """Perform the reaction to the error code of an answer."""
        ...


class Fanout:
    """Performs operations on many items.

    Args:
        routing: resolves destinations, and opens connections.
        policy: the back-off, and the observer of retries.
        request_timeout: seconds that one request may take.
    """

    def __init__(
        self, routing: RoutingPort, policy: RetryPolicy, request_timeout: float
    ) -> None:
        self._routing = routing
        self._policy = policy
        self._timeout = request_timeout

    async def ask(
        self,
        operation: Operation[ItemT, ValueT, ResponseT],
        items: Iterable[ItemT],
        timeout: float,
        *,
        stops_at_failure: bool = False,
    ) -> Results[ItemT, ValueT]:
        """Ask for items until each has a result, or the time is over.

        If the call is cancelled, requests in flight may still take effect.

        Args:
            operation: the operation.
            items: the items; an item that occurs twice counts once.
            timeout: seconds for all of them, retries included.
            stops_at_failure: whether one item that fails for good ends the call, with
                the others left undecided.

        Returns:
            The items found and failed, each in the order of ``items``. An undecided
            item fails with a RequestTimeout, whose cause is its last failure.
        """
        deadline = now() + timeout
        progress = ItemProgress[ItemT, ValueT](items, self._policy.backoff, deadline)
        run = _Run(self, self._routing, operation, progress)
        with CancelScope(deadline=deadline):
            await run.drive(stops_at_failure=stops_at_failure)
        if progress.is_over:
            return progress.in_order()
        stages = run.in_flight()
        why = self._routing.why_unlocated()
        unlocated = f"{_UNLOCATED}: {why}" if why else _UNLOCATED
        return progress.expire(
            lambda item, last: timed_out(
                operation.named([item]),
                timeout,
                last or stages.get(item, unlocated),
                stages.get(item, ""),
            )
        )

    async def ask_once(
        self,
        operation: Operation[ItemT, ValueT, ResponseT],
        items: Iterable[ItemT],
        within: float,
    ) -> Results[ItemT, ValueT]:
        """Ask each broker once, all at the same time.

        Args:
            operation: the operation.
            items: the items.
            within: seconds for all of them.

        Returns:
            The items found, failed, and to ask for again. The last include items whose
            broker the metadata does not name; a refresh of the metadata was requested.
        """
        deadline = now() + within
        results = Results[ItemT, ValueT]()
        by_node, unknown = self._routing.by_broker(operation.destination, list(items))

        async def locate(to: Destination, wanted: list[ItemT]) -> None:
            node_id = await self._locate_once(to, deadline)
            if isinstance(node_id, int):
                by_node.setdefault(node_id, []).extend(wanted)
            else:
                results.fail(wanted, node_id)

        async def send(node_id: int, wanted: Sequence[ItemT]) -> None:
            contact = Contact(node_id)
            try:
                with FailingScope(deadline=deadline):
                    # One request may not carry all of them.
                    while wanted:
                        some, _ = await self.request(
                            operation, contact, wanted, deadline
                        )
                        results.add(some)
                        wanted = [item for item in wanted if item not in some]
            except TimeoutError as error:
                silence = self._silence(operation, contact, within)
                silence.__cause__ = error
                results.fail(wanted, silence)

        # Two steps, so that items that are located go into the request to their broker.
        async with TaskGroup() as group:
            for to, wanted in unknown.items():
                group.start_soon(locate, to, wanted)
        async with TaskGroup() as group:
            for node_id, wanted in by_node.items():
                group.start_soon(send, node_id, wanted)
        return results

    async def _locate_once(self, to: Destination, deadline: float) -> int | KafkaError:
        try:
            with FailingScope(deadline=deadline):
                return await self._routing.locate(to)
        except RetryLater as later:
            self._routing.react(to, _NOBODY, _STALE)
            missing = NetworkError(str(later.reason))
            missing.__cause__ = later.reason
            return missing
        except KafkaError as error:
            return error
        except TimeoutError:
            return RequestTimeout(f"no broker was found in time for {to}")

    async def request(
        self,
        operation: Operation[ItemT, ValueT, ResponseT],
        contact: Contact,
        items: Sequence[ItemT],
        deadline: float,
    ) -> tuple[Results[ItemT, ValueT], Collection[ItemT]]:
        """Send a broker one request for as many of some items as it can carry.

        Args:
            operation: the operation.
            contact: the broker; whether it was asked is noted there.
            items: the items.
            deadline: the time of the loop's clock at which the caller gives up.

        Returns:
            The results of the items in the request, and those of them whose error means
            that the metadata is out of date. Items that did not fit have no result.
        """
        results, node_id = Results[ItemT, ValueT](), contact.node_id
        left = max(_LEAST, min(self._timeout, deadline - now()))
        try:
            # Not the time that is left: a connection whose request is not answered in
            # its time is closed, and others use it, too. The caller's scope ends the
            # wait at the deadline, which closes nothing.
            with FailingScope(deadline=now() + self._timeout):
                connection = await self._routing.connection(
                    node_id, operation.connection_class
                )
                version = connection.versions.usable(
                    operation.request, operation.max_version
                )
                items = items[: operation.batch(version)]
                terms = Terms(version, left, node_id)
                try:
                    request = operation.build(items, terms)
                except UnsupportedVersion as error:
                    results.failed = _too_new(operation, items, terms, error)
                    return results, ()
                contact.connection = connection
                response = await connection.call(
                    request, timeout=self._timeout, max_version=version
                )
            results, reactions = sort_answers(
                operation, items, operation.read(response, items)
            )
        except KafkaError as error:
            if isinstance(error, NetworkError):
                self._routing.unreachable(node_id)
            results.fail(items, error)
            return results, ()
        except TimeoutError as error:
            silence = self._silence(operation, contact, self._timeout)
            silence.__cause__ = error
            results.fail(items, silence)
            return results, ()
        if not reactions:
            return results, ()
        # Each reaction once for a destination, however many of its items have it.
        for to, what in {(operation.destination(i), r) for i, r in reactions.items()}:
            self._routing.react(to, node_id, what)
        stale = {i for i, what in reactions.items() if what.refresh_metadata}
        return results, stale & results.again.keys()

    def _silence(
        self,
        operation: Operation[ItemT, ValueT, ResponseT],
        contact: Contact,
        seconds: float,
    ) -> RequestTimeout:
        # The most precise cause first: a throttle, for example, explains why nothing
        # was sent, and "did not answer" would blame the broker.
        node_id = contact.node_id
        held = self._routing.why_held(node_id, operation.connection_class)
        if held:
            return RequestTimeout(f"not sent within {round(seconds, 3):g} s: {held}")
        if contact.connection is None:
            return RequestTimeout(
                f"broker {node_id} was not asked: there was no connection to it within "
                f"{round(seconds, 3):g} s"
            )
        return RequestTimeout(
            f"broker {node_id} did not answer within {round(seconds, 3):g} s"
        )

    def report(
        self,
        operation: Operation[ItemT, ValueT, ResponseT],
        failures: Mapping[ItemT, KafkaError],
        attempt: int,
        delay: float,
    ) -> None:
        """Tell the observer that items are asked for again."""
        error = next(iter(failures.values()))
        what = operation.named(failures)
        self._policy.observer.retrying(what, attempt, delay, error)


#: The node id of a broker that metadata does not name.
_NOBODY = -1
_STALE = Reaction(retry=True, refresh_metadata=True)
_UNLOCATED = "it waits for the broker to be found"


def _too_new(
    operation: Operation[ItemT, ValueT, ResponseT],
    items: Sequence[ItemT],
    terms: Terms,
    error: UnsupportedVersion,
) -> dict[ItemT, KafkaError]:
    """Return the items that the version of a request cannot carry, with the reasons.

    Args:
        operation: the operation.
        items: the items of a request that could not be made.
        terms: the terms of that request.
        error: the error; all items have it if a request for each alone could be made.
    """
    failed: dict[ItemT, KafkaError] = {}
    for item in items:
        try:
            operation.build([item], terms)
        except UnsupportedVersion as alone:
            failed[item] = alone
    return failed or dict.fromkeys(items, error)


class Contact:
    """A broker to be asked, and how far its request has come.

    Attributes:
        node_id: the broker.
        connection: the connection that has the request; None before that.
    """

    __slots__ = ("connection", "node_id")

    def __init__(self, node_id: int) -> None:
        self.node_id: int = node_id
        self.connection: Connection | None = None

    @property
    def stage(self) -> str:
        """The step that the request has reached, for the error of a timeout."""
        broker = f"broker {self.node_id}"
        if self.connection is None:
            return f"{broker} was not asked: there is no connection to it yet"
        return f"{broker} has not answered"


#: Destinations that one task looks up, with the items that wait for each.
_Lookup: TypeAlias = list[tuple[Destination, Sequence[ItemT]]]


class _Run(Generic[ItemT, ValueT, ResponseT]):
    """One call of `Fanout.ask`: the tasks that move the items of an `ItemProgress`.

    One task routes and sends. If a single broker is to be asked first, it sends that
    request itself. Otherwise it starts a task for each destination that has to be
    looked up, and for each request; those wake it when they have news.
    """

    def __init__(
        self,
        fanout: Fanout,
        routing: RoutingPort,
        operation: Operation[ItemT, ValueT, ResponseT],
        progress: ItemProgress[ItemT, ValueT],
    ) -> None:
        self._fanout = fanout
        self._routing = routing
        self._operation = operation
        self._progress = progress
        self._wakeup = Wakeup()
        # Items whose broker is known, and those that a broker was asked for.
        # Invariant: a broker has at most one request in flight. Items routed to it
        # meanwhile wait in the queue, and go together into its next request.
        self._queued: dict[int, list[ItemT]] = defaultdict(list)
        self._in_flight: dict[int, Sequence[ItemT]] = {}
        self._contacts: dict[int, Contact] = {}

    async def drive(self, *, stops_at_failure: bool) -> None:
        """Ask until everything is decided, or it is too late for another attempt."""
        lookups = self._route()
        stale: Mapping[ItemT, KafkaError] = {}
        if len(self._queued) == 1 and not lookups:
            # The first round is one request, with nothing to do beside it. It needs no
            # task: nothing can become due, and no item can be routed, until it ends.
            node_id, items = self._queued.popitem()
            self._in_flight[node_id] = items
            stale = await self._request(node_id, items)
        if not self._progress.is_over:
            await self._drive_tasks(lookups, stale, stops_at_failure=stops_at_failure)

    async def _drive_tasks(
        self,
        lookups: Iterable[_Lookup[ItemT]],
        stale: Mapping[ItemT, KafkaError],
        *,
        stops_at_failure: bool,
    ) -> None:
        progress = self._progress
        async with TaskGroup() as group:
            if stale:
                group.start_soon(self._suspend, stale, self._routing.refreshed)
            while not progress.is_over and not progress.is_too_late:
                if stops_at_failure and progress.results.failed:
                    break
                for wanted in lookups:
                    group.start_soon(self._locate, wanted)
                self._send(group)
                due = progress.next_due
                await self._wakeup.wait(None if due == inf else due)
                lookups = self._route()
            # Lookups and waits for events may still run: nothing needs them any more.
            group.cancel_scope.cancel()

    def in_flight(self) -> dict[ItemT, str]:
        """Return the items whose brokers are known, with what they wait for."""
        stages = {
            item: f"it waits for an earlier request to broker {node_id}"
            for node_id, items in self._queued.items()
            for item in items
        }
        for node_id, items in self._in_flight.items():
            held = self._routing.why_held(node_id, self._operation.connection_class)
            stages |= dict.fromkeys(items, held or self._contacts[node_id].stage)
        return stages

    def _route(self) -> list[_Lookup[ItemT]]:
        """Queue the items that are due, and return what has to be looked up.

        Each element is looked up by a task of its own.
        """
        due = self._progress.take_due(now())
        known, unknown = self._routing.by_broker(self._operation.destination, due)
        for node_id, items in known.items():
            self._queued[node_id] += items
        lookups: list[_Lookup[ItemT]] = []
        leaderless: _Lookup[ItemT] = []
        for to, items in unknown.items():
            if isinstance(to, Leader):
                leaderless.append((to, items))
            else:
                lookups.append([(to, items)])
        if leaderless:
            lookups.append(leaderless)
        return lookups

    def _send(self, group: TaskGroup) -> None:
        for node_id in [n for n in self._queued if n not in self._in_flight]:
            items = self._in_flight[node_id] = self._queued.pop(node_id)
            group.start_soon(self._ask, node_id, items)

    async def _locate(self, wanted: _Lookup[ItemT]) -> None:
        """Look up destinations that the same event makes known, or a single one.

        Metadata names all leaders. Their partitions wait for the same refresh, so that
        there is one retry, and one report of it, for all.
        """
        failures: dict[ItemT, KafkaError] = {}
        wait: Callable[[], Awaitable[object]] = self._routing.refreshed
        async with TaskGroup() as group:
            for to, items in wanted:
                try:
                    node_id = await self._routing.locate(to)
                except RetryLater as later:
                    lost = dict.fromkeys(items, later.reason)
                    if later.is_failure:
                        failures |= lost
                        wait = later.wait
                    else:
                        group.start_soon(self._await_news, lost, later.wait)
                except KafkaError as error:
                    self._failed(items, error)
                else:
                    self._queued[node_id] += items
            self._wakeup.notify()
            if failures:
                await self._suspend(failures, wait)

    async def _await_news(
        self, lost: Mapping[ItemT, KafkaError], wait: Callable[[], Awaitable[object]]
    ) -> None:
        await self._suspend(lost, wait, counts=False)

    async def _ask(self, node_id: int, items: Sequence[ItemT]) -> None:
        stale = await self._request(node_id, items)
        self._wakeup.notify()
        if stale:
            await self._suspend(stale, self._routing.refreshed)

    async def _request(
        self, node_id: int, items: Sequence[ItemT]
    ) -> Mapping[ItemT, KafkaError]:
        """Send one request; return the failures that wait for newer metadata."""
        progress = self._progress
        contact = self._contacts[node_id] = Contact(node_id)
        results, stale = await self._fanout.request(
            self._operation, contact, items, progress.deadline
        )
        del self._in_flight[node_id]
        if len(results) < len(items):
            # The request could not carry all of them. They go first into the next one.
            left = [item for item in items if item not in results]
            self._queued[node_id][:0] = left
        progress.decide(results)
        again = results.again
        if not again:
            return again
        self._postpone({i: e for i, e in again.items() if i not in stale})
        return {i: e for i, e in again.items() if i in stale}

    def _failed(self, items: Iterable[ItemT], error: KafkaError) -> None:
        results = Results[ItemT, ValueT]()
        results.fail(items, error)
        self._progress.decide(results)
        self._postpone(results.again)

    def _postpone(self, failures: Mapping[ItemT, KafkaError]) -> None:
        if failures:
            attempt, delay = self._progress.postpone(failures, now(), roll())
            self._fanout.report(self._operation, failures, attempt, delay)

    async def _suspend(
        self,
        failures: Mapping[ItemT, KafkaError],
        wait: Callable[[], Awaitable[object]],
        *,
        counts: bool = True,
    ) -> None:
        attempt = self._progress.suspend(failures, counts=counts)
        if counts:
            self._fanout.report(self._operation, failures, attempt, 0.0)
        # An event, not a time: suspended items are not due until it happens or fails.
        try:
            await wait()
        except KafkaError as error:
            self._failed(failures, error)
        else:
            self._progress.release(failures, now())
        self._wakeup.notify()
