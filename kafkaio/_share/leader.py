"""One leader: its session, its connection, and one request at a time.

Every ShareFetch and ShareAcknowledge carries the next number of one sequence, so a
request waits for the answer to the one before, also for a fetch that waits for records.
Acknowledgements go with the next fetch. They go by themselves when nothing is to be
fetched, when locks are renewed (such a fetch may bring nothing), and when they are of a
partition that was taken away (a fetch would put it into the session again).

The leader answers acknowledgements with the records, and acknowledgements that are
decided while a fetch waits at the leader are late by the rest of that wait. So a fetch
with acknowledgements waits shortly. While records are in the user's hands, fetches wait
shortly at first, and then each twice as long as the one before.

The session and all locks end with the connection, so it belongs to this leader alone,
and its end is noticed at once, also while nothing is in flight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from kafkaio._client.retry import Attempts
from kafkaio._config import ShareConsumerConfig
from kafkaio._machines.metadata import EndpointPort
from kafkaio._machines.reactions import reaction
from kafkaio._machines.share.ledger import AckPlan, AckRange, ShareLedger
from kafkaio._machines.share.room import Grant, ShareRoom
from kafkaio._machines.share.session import (
    SessionPlan,
    ShareSession,
    TopicIdPartition,
)
from kafkaio._named_tuple import NamedTuple
from kafkaio._net.connection import Connection
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._records.batch import RELEASE, Acquired
from kafkaio._runtime.clock import now
from kafkaio._runtime.observer import AcquiredPart
from kafkaio._runtime.wakeup import Wakeup
from kafkaio._share.acknowledging import Acknowledgements
from kafkaio._share.messages import (
    Answered,
    acknowledge_request,
    acknowledged,
    fetch_request,
    fetched,
    lock_of,
)
from kafkaio._share.partitions import AssignedPartitions
from kafkaio._share.ports import FetchedPart, ReaderPort
from kafkaio.errors import ClosedError, KafkaError, NetworkError, ProtocolError
from kafkaio.protocol import _api_numbers as apis
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Buffer, Request, Response
from kafkaio.protocol.messages.share_acknowledge import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
)
from kafkaio.protocol.messages.share_fetch import (
    ShareFetchRequest,
    ShareFetchResponse,
)
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio._client.ports import ClusterPort

ResponseT = TypeVar("ResponseT", bound=Response)

#: The wait of a fetch while records are in the user's hands, at first.
_SHORT_WAIT: Final = 0.02
#: Doubled so often, it exceeds any wait that an option can have.
_LONGEST_DOUBLED: Final = 40
#: Seconds before a turn that found nothing to send is repeated, at least.
_LEAST_PAUSE: Final = 0.005
#: The version of both requests that can renew locks (KIP-1222).
_RENEWS_FROM: Final = 2
#: The codes after which another broker is the leader.
_MOVED: Final = frozenset(
    {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH}
)
#: The session is not the one that the leader has. That is no error of a leader.
_NO_SESSION: Final = frozenset(
    {
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
    }
)
#: Part of the broker's words for 121 where the group allows no renewals. The code alone
#: says that the lock is gone, and the locks of everything in the request would be
#: taken for lost.
_NOT_ENABLED: Final = "not enabled"


class Fetching(NamedTuple):
    """What decides whether anything may be fetched.

    Attributes:
        may_fetch: whether the member may, and the consumer does not close.
        leaders: how many leaders there are.
    """

    may_fetch: Callable[[], bool]
    leaders: Callable[[], int]


class LeaderParts(NamedTuple):
    """What all leaders of one consumer share.

    Attributes:
        cluster: has the connections and the metadata.
        config: the consumer's options.
        member_id: the member.
        connection_class: the connections of this consumer alone.
        ledger: has what is locked.
        acks: is notified about what became of it.
        partitions: what to fetch.
        room: how much.
        reader: takes what was fetched.
        fetching: whether anything may be fetched.
        on_answer: called with a leader when a request to it has an answer, or will have
            none: there may be room again, and locks may end at other times.
        on_end: called with a leader whose loop has ended.
    """

    cluster: ClusterPort
    config: ShareConsumerConfig
    member_id: str
    connection_class: ConnectionClass
    ledger: ShareLedger
    acks: Acknowledgements
    partitions: AssignedPartitions
    room: ShareRoom
    reader: ReaderPort
    fetching: Fetching
    on_answer: Callable[[int], None]
    on_end: Callable[[int], None]


class _Sent(NamedTuple):
    """A request that was sent."""

    at: float
    session: SessionPlan
    acks: AckPlan | None


class Leader:
    """Sends the requests to one leader, until it leads nothing and nothing is locked.

    Args:
        node_id: the leader.
        parts: what all leaders share.
    """

    def __init__(self, node_id: int, parts: LeaderParts) -> None:
        self.node_id = node_id
        self.session: ShareSession = ShareSession()
        #: Whether a request has no answer yet.
        self.is_busy: bool = False
        self._parts = parts
        self._wakeup = Wakeup()
        self._connection: Connection | None = None
        what = f"share fetch from broker {node_id}"
        self._attempts = Attempts(what, parts.cluster.retry_policy)
        self._short_wait = _SHORT_WAIT
        # Whether the session is to be closed, and whether that was done.
        self._is_finishing = self._has_finished = False
        # Errors that were raised to the user and have not passed: of the leader, and of
        # partitions.
        self._raised: int | None = None
        self._refused = dict[TopicIdPartition, int]()

    def __repr__(self) -> str:
        state = "busy" if self.is_busy else "idle"
        return f"<Leader {self.node_id} {state} | {self.session}>"

    def wake(self) -> None:
        """Check again what there is to send."""
        self._wakeup.notify()

    def finish(self) -> None:
        """Acknowledge what is decided, close the session, and end."""
        self._is_finishing = True
        self._wakeup.notify()

    # ---- the loop --------------------------------------------------------------------

    async def run(self) -> None:
        """Send requests until there is nothing more to do here."""
        try:
            while not self._has_finished:
                began_at = now()  # a pause that ends from here on is not missed
                try:
                    has_sent = await self._turn()
                except KafkaError as error:
                    self._failed(error)
                    if self._is_finishing:
                        # The leader frees the rest with the connection.
                        self._has_finished = True
                    has_sent = False
                if not has_sent and not self._has_finished:
                    await self._wakeup.wait(self._next_due(began_at))
        finally:
            self._end()

    def _end(self) -> None:
        parts, connection = self._parts, self._connection
        self._connection = None
        parts.room.leave(self.node_id)
        parts.room.unanswered(self.node_id)
        if connection is not None:
            # The leader frees what is locked, if anything is.
            connection.close()
        parts.ledger.connection_lost(self.node_id, "the session was closed", now())
        parts.on_end(self.node_id)

    def _next_due(self, since: float) -> float | None:
        if since < self._attempts.due:
            return self._attempts.due
        at = now()
        times = (
            self._next_send(at),
            self._parts.partitions.next_due(self.node_id, since),
        )
        due = min((time for time in times if time is not None), default=None)
        # A turn has just found nothing to send.
        return None if due is None else max(due, at + _LEAST_PAUSE)

    async def _turn(self) -> bool:
        """Send one request, or connect; return whether something was done."""
        self._check_connection()
        at, parts = now(), self._parts
        if self._is_finishing or self._is_idle():
            return await self._finish()
        if at < self._attempts.due:
            return False
        wanted = self._wanted(at)
        is_due = self._is_due(at)
        if not wanted:
            parts.room.leave(self.node_id)
        if not wanted and not is_due:
            return False
        if not self.is_connected:
            await self._connect()
            return True
        if not self.session.is_open:
            return await self._open(at, wanted)
        return await self._go_on(at, wanted, is_due=is_due)

    def _is_idle(self) -> bool:
        # Nothing is led here any more, and nothing is left to acknowledge.
        parts = self._parts
        return not (
            parts.partitions.leads(self.node_id) or parts.ledger.locked_at(self.node_id)
        )

    def _next_send(self, at: float) -> float | None:
        return self._parts.ledger.next_send(
            self.node_id, at, may_renew=self._may_renew()
        )

    def _is_due(self, at: float) -> bool:
        due = self._next_send(at)
        return due is not None and (due <= at or self._parts.acks.is_awaited)

    def _wanted(self, at: float) -> Sequence[TopicIdPartition]:
        """Return the partitions to fetch now; none if nothing is to be fetched."""
        parts = self._parts
        reader = parts.reader
        if not parts.fetching.may_fetch() or not reader.wants:
            return []
        # At most one round ahead: what is buffered is locked, and its time runs.
        if reader.buffered and 2 * parts.ledger.locked > parts.room.max_records:
            return []
        return parts.partitions.at(self.node_id, at)

    # ---- the connection --------------------------------------------------------------

    async def _connect(self) -> None:
        parts = self._parts
        connection = await parts.cluster.connection(
            self.node_id, parts.connection_class
        )
        connection.versions.usable(ShareFetchRequest)
        connection.versions.usable(ShareAcknowledgeRequest)
        self.session.reset()
        self._connection = connection
        connection.add_end_listener(self.wake)

    def _check_connection(self) -> None:
        connection = self._connection
        if connection is not None and not connection.is_ready:
            why = f"the connection to its leader, broker {self.node_id}, was lost"
            self._disconnected(why)

    def _disconnected(self, why: str) -> None:
        """Note that the session and all locks are gone with the connection."""
        parts, connection = self._parts, self._connection
        self._connection = None
        if connection is not None:
            connection.close()
        self.session.reset()
        # Its turn, too: to connect again may take long.
        parts.room.leave(self.node_id)
        parts.room.unanswered(self.node_id)
        parts.ledger.connection_lost(self.node_id, why, now())
        parts.on_answer(self.node_id)

    # ---- what to send ----------------------------------------------------------------

    async def _open(self, at: float, wanted: Sequence[TopicIdPartition]) -> bool:
        """Open the session. The request can carry no acknowledgements."""
        grant = self._ask(0) if wanted else None
        if wanted and grant is None and not self._is_due(at):
            return False
        # Without room it is opened without partitions, to acknowledge.
        await self._fetch(wanted if grant is not None else (), None, grant)
        return True

    async def _go_on(
        self, at: float, wanted: Sequence[TopicIdPartition], *, is_due: bool
    ) -> bool:
        parts = self._parts
        grant = self._ask(0) if wanted else None
        # Where nothing else makes room, decisions do not wait for others.
        is_full = bool(wanted) and parts.ledger.locked >= parts.room.max_records
        if grant is None and not is_due and not is_full:
            return False
        plan = parts.ledger.plan(self.node_id, at, may_renew=self._may_renew())
        freed = _decided(plan)
        if freed and wanted:
            # What the request acknowledges makes room for what it brings.
            parts.room.unanswered(self.node_id)
            grant = self._ask(freed)
        if plan is not None and not self._goes_along(plan, wanted, grant):
            parts.room.unanswered(self.node_id)
            await self._acknowledge(plan, self.session.acknowledge())
            return True
        if grant is None:
            return False
        await self._fetch(wanted, plan, grant)
        return True

    def _ask(self, freed: int) -> Grant | None:
        parts = self._parts
        return parts.room.ask(
            self.node_id,
            locked=parts.ledger.locked,
            freed=freed,
            buffered=parts.reader.buffered_bytes,
            leaders=parts.fetching.leaders(),
        )

    def _may_renew(self) -> bool:
        parts, connection = self._parts, self._connection
        return (
            connection is not None
            and parts.config.renew_locks
            and connection.versions.usable(ShareAcknowledgeRequest) >= _RENEWS_FROM
        )

    def _goes_along(
        self, plan: AckPlan, wanted: Sequence[TopicIdPartition], grant: Grant | None
    ) -> bool:
        if grant is None or plan.renews:
            return False
        asked = {self._parts.partitions.name(each) for each in wanted}
        return plan.ranges.keys() <= asked

    def _wait_of(self, plan: AckPlan | None, grant: Grant) -> float:
        parts = self._parts
        wait = parts.config.fetch_max_wait_ms / 1000
        if grant.is_scarce:
            # Another leader may have records, and waits for the end of this turn.
            wait /= max(parts.fetching.leaders(), 1)
            wait = min(wait, _SHORT_WAIT * 2 ** min(parts.room.quiet, _LONGEST_DOUBLED))
        freed = _decided(plan)
        # Others may be in the user's hands, and have no effect on this leader.
        in_hands = parts.ledger.locked_at(self.node_id) - freed
        in_hands = min(in_hands, parts.ledger.locked - freed - parts.reader.buffered)
        if plan is not None:
            # Its answer waits, too.
            self._short_wait = _SHORT_WAIT
            return 0.0 if parts.acks.is_awaited else min(wait, _SHORT_WAIT)
        # Locks are renewed behind it: with short ones, that would be too late.
        at = now()
        if (due := self._next_send(at)) is not None:
            wait = min(wait, max(0.0, due - at))
        if in_hands <= 0:
            self._short_wait = _SHORT_WAIT
            return wait
        wait = min(wait, self._short_wait)
        self._short_wait *= 2
        return wait

    # ---- requests --------------------------------------------------------------------

    async def _fetch(
        self,
        wanted: Sequence[TopicIdPartition],
        plan: AckPlan | None,
        grant: Grant | None,
    ) -> None:
        parts = self._parts
        session = self.session.fetch(wanted)
        wait = 0.0 if grant is None else self._wait_of(plan, grant)
        request = fetch_request(
            parts.config, parts.member_id, session, self._by_id(plan), grant, wait
        )
        sent = _Sent(now(), session, plan)
        try:
            self._fetched(await self._call(request, sent, wait), sent)
        finally:
            parts.on_answer(self.node_id)

    async def _acknowledge(self, plan: AckPlan | None, session: SessionPlan) -> None:
        parts = self._parts
        request = acknowledge_request(
            parts.config.group_id,
            parts.member_id,
            session,
            self._by_id(plan),
            renews=plan is not None and plan.renews,
        )
        sent = _Sent(now(), session, plan)
        try:
            self._acknowledged(await self._call(request, sent, 0.0), sent)
        finally:
            parts.on_answer(self.node_id)

    def _by_id(
        self, plan: AckPlan | None
    ) -> Mapping[TopicIdPartition, Sequence[AckRange]]:
        if plan is None:
            return {}
        with_id = self._parts.partitions.with_id
        return {with_id(tp): ranges for tp, ranges in plan.ranges.items()}

    async def _call(
        self, request: Request[ResponseT], sent: _Sent, wait: float
    ) -> ResponseT:
        assert self._connection is not None
        timeout = self._parts.config.request_timeout_ms / 1000 + wait
        self.is_busy = True
        try:
            return await self._connection.call(request, timeout=timeout)
        except BaseException:
            # Failed or cancelled: the leader may have seen this epoch, or not.
            self.session.unanswered(sent.session)
            self._parts.room.unanswered(self.node_id)
            if sent.acks is not None:
                self._parts.ledger.unanswered(sent.acks, now())
            raise
        finally:
            self.is_busy = False

    # ---- answers ---------------------------------------------------------------------

    def _fetched(self, answer: ShareFetchResponse, sent: _Sent) -> None:
        parts = self._parts
        self.session.answered(sent.session, answer.error_code)
        if answer.error_code:
            self._refused_whole(answer.error_code, answer.error_message, sent)
            return
        lock = lock_of(answer.acquisition_lock_timeout_ms)
        found = fetched(answer)
        self._check_asked(found, sent)
        if sent.acks is not None:
            self._take_acks(sent.acks, found, lock)
        count = self._take_records(found, sent, lock)
        parts.room.answered(self.node_id, count)
        self._take_errors(found, answer.node_endpoints)
        self._succeeded()

    def _acknowledged(self, answer: ShareAcknowledgeResponse, sent: _Sent) -> None:
        self.session.answered(sent.session, answer.error_code)
        if answer.error_code:
            self._refused_whole(answer.error_code, answer.error_message, sent)
            return
        lock = lock_of(answer.acquisition_lock_timeout_ms)
        found = acknowledged(answer)
        self._check_asked(found, sent)
        if sent.acks is not None:
            self._take_acks(sent.acks, found, lock)
        self._take_errors(found, answer.node_endpoints)
        self._succeeded()

    def _refused_whole(self, code: int, message: str | None, sent: _Sent) -> None:
        parts = self._parts
        parts.room.unanswered(self.node_id)
        if sent.acks is not None:
            parts.ledger.refused(sent.acks, now(), code)
        # A session that is gone is opened anew, at once.
        if code in _NO_SESSION and sent.session.epoch > 0:
            return
        why = f": {message}" if message else ""
        raise broker_error(
            code,
            f"broker {self.node_id} refused a request of share group "
            f"{parts.config.group_id!r}{why}",
            api=apis.SHARE_FETCH,
            group=parts.config.group_id,
        )

    def _check_asked(
        self, found: Mapping[TopicIdPartition, Answered], sent: _Sent
    ) -> None:
        known = {*self.session.partitions, *sent.session.forgotten}
        strange = found.keys() - known
        if strange and sent.acks is not None:
            strange -= self._by_id(sent.acks).keys()
        if strange:
            each = min(strange)
            raise ProtocolError(
                f"broker {self.node_id} answered for partition {each.partition} of "
                f"topic {each.topic_id}, which it was not asked for"
            )

    def _take_acks(
        self,
        plan: AckPlan,
        found: Mapping[TopicIdPartition, Answered],
        lock: float,
    ) -> None:
        parts, codes = self._parts, dict[TopicPartition, int]()
        for each, part in found.items():
            tp = parts.partitions.name(each)
            if tp is None or tp not in plan.ranges:
                continue
            codes[tp] = part.ack_code
            if plan.renews and _refuses_renewals(part):
                # Nothing of the partition was done, and its locks are as before.
                codes[tp] = ErrorCode.INVALID_REQUEST
        at = now()
        parts.ledger.answered(plan, codes, at, lock)
        parts.acks.report(self.node_id, at - plan.sent_at)

    def _take_records(
        self, found: Mapping[TopicIdPartition, Answered], sent: _Sent, lock: float
    ) -> int:
        """Take what was acquired; return how many records."""
        parts, at, count = self._parts, now(), 0
        reports = dict[TopicPartition, AcquiredPart]()
        for each, part in found.items():
            if not part.acquired:
                continue
            tp = parts.partitions.name(each)
            if part.code or tp is None or each not in self.session.partitions:
                raise ProtocolError(
                    f"broker {self.node_id} locked records of partition "
                    f"{each.partition} of topic {each.topic_id} without being asked"
                )
            taken = parts.ledger.acquired(
                self.node_id, tp, part.acquired, lock=lock, sent_at=sent.at, now=at
            )
            sizes = [len(acquired.states) for acquired in taken]
            again = sum(
                len(acquired.states)
                for acquired in taken
                if acquired.delivery_count > 1
            )
            reports[tp] = AcquiredPart(sum(sizes), len(part.data), again)
            count += sum(sizes)
            self._hand_over(each, tp, taken, part.data)
        acks = parts.acks
        acks.acquired += count
        acks.redelivered += sum(report.redelivered for report in reports.values())
        parts.cluster.observer.records_acquired(
            parts.config.group_id, self.node_id, at - sent.at, reports
        )
        return count

    def _hand_over(
        self,
        each: TopicIdPartition,
        tp: TopicPartition,
        taken: tuple[Acquired, ...],
        data: Buffer,
    ) -> None:
        parts = self._parts
        if parts.fetching.may_fetch() and each in parts.partitions:
            parts.reader.received(FetchedPart(tp, self.node_id, taken, data))
            return
        # Taken away, or fenced, while the fetch was in flight.
        for acquired in taken:
            acquired.decide_range(acquired.first, acquired.last, RELEASE)

    # ---- errors ----------------------------------------------------------------------

    def _take_errors(
        self,
        found: Mapping[TopicIdPartition, Answered],
        endpoints: Iterable[EndpointPort],
    ) -> None:
        parts, good = self._parts, list[TopicIdPartition]()
        has_moved = False
        for each, part in found.items():
            tp = parts.partitions.name(each)
            if tp is None:
                continue
            if part.code in _MOVED or part.ack_code in _MOVED:
                self._moved(each, tp, part, endpoints)
                has_moved = True
            elif part.code:
                self._take_error(each, tp, part)
            else:
                good.append(each)
                self._refused.pop(each, None)
        parts.partitions.succeeded(good)
        if has_moved:
            parts.partitions.update()

    def _moved(
        self,
        each: TopicIdPartition,
        tp: TopicPartition,
        part: Answered,
        endpoints: Iterable[EndpointPort],
    ) -> None:
        parts = self._parts
        why = f"broker {self.node_id} does not lead the partition any more"
        parts.ledger.partition_lost(self.node_id, tp, why, now())
        # A newer leader is asked at once.
        if not parts.cluster.apply_leader_hint(tp, *part.leader, endpoints):
            parts.partitions.pause(each)

    def _take_error(
        self, each: TopicIdPartition, tp: TopicPartition, part: Answered
    ) -> None:
        parts = self._parts
        what = reaction(apis.SHARE_FETCH, part.code)
        delay = parts.partitions.pause(each)
        if what.refresh_metadata:
            parts.cluster.request_refresh(tp.topic)
        why = f": {part.message}" if part.message else ""
        error = broker_error(
            part.code,
            f"fetching {tp.topic}-{tp.partition} for share group "
            f"{parts.config.group_id!r} failed{why}",
            api=apis.SHARE_FETCH,
            topic=tp.topic,
        )
        # While the topic of share states is made, brokers answer with this one.
        if what.retry or part.code == ErrorCode.UNKNOWN_SERVER_ERROR:
            parts.cluster.observer.retrying(
                f"share fetch of {tp.topic}-{tp.partition}", 1, delay, error
            )
        elif self._refused.get(each) != part.code:
            self._refused[each] = part.code
            parts.reader.failed(error)

    def _succeeded(self) -> None:
        if self._attempts.failures:
            self._attempts.succeeded()
        self._raised = None

    def _failed(self, error: KafkaError) -> None:
        parts = self._parts
        if isinstance(error, ClosedError):
            raise error  # the client was closed
        if isinstance(error, ProtocolError):
            # Whatever it has locked, the leader frees it with the connection.
            error.retriable = True
            self._disconnected(f"its leader broke the protocol: {error}")
        self._check_connection()
        parts.room.leave(self.node_id)
        self._attempts.failed(error)
        parts.cluster.observer.retrying(
            self._attempts.what,
            self._attempts.failures,
            self._attempts.due - now(),
            error,
        )
        if isinstance(error, NetworkError):
            parts.cluster.request_refresh()
        elif isinstance(error, ProtocolError) or not error.retriable:
            self._raise_once(error)

    def _raise_once(self, error: KafkaError) -> None:
        code = getattr(error, "code", 0)
        if self._raised != code or isinstance(error, ProtocolError):
            self._raised = code
            self._parts.reader.failed(error)

    # ---- the end ---------------------------------------------------------------------

    async def _finish(self) -> bool:
        """Send what is left to acknowledge, and then the end of the session."""
        while self._can_acknowledge():
            plan = self._parts.ledger.plan(self.node_id, now(), may_renew=False)
            if plan is not None:
                await self._acknowledge(plan, self.session.acknowledge())
                self._check_connection()
                continue
            # Some is repeated later, or there is nothing left.
            due = self._parts.ledger.next_send(self.node_id, now(), may_renew=False)
            if due is None:
                break
            await self._wakeup.wait(max(due, now() + _LEAST_PAUSE))
        session = self.session.close()
        self._has_finished = True
        if session is not None and self.is_connected:
            await self._acknowledge(None, session)
        return True

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection, so that something may be left to send."""
        return self._connection is not None

    def _can_acknowledge(self) -> bool:
        return self.is_connected and self.session.is_open


def _decided(plan: AckPlan | None) -> int:
    """Return how many records the acknowledgements of a request free."""
    if plan is None or plan.renews:
        return 0
    return sum(
        run.last - run.first + 1 for ranges in plan.ranges.values() for run in ranges
    )


def _refuses_renewals(part: Answered) -> bool:
    return (
        part.ack_code == ErrorCode.INVALID_RECORD_STATE
        and part.ack_message is not None
        and _NOT_ENABLED in part.ack_message
    )
