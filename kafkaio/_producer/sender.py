"""The sender: moves batches from the accumulator to the brokers.

When something has changed (a batch began, an answer arrived, metadata changed, a time
has come), the event loop calls the sender once in its next iteration. The sender asks
the outbox which brokers have something to send, fills one request after the other, and
hands them to the connections. This is a callback and not a task: a task would cost a
future and more with every request. The sender's own task only waits for a failure, to
crash with it. Answers complete their batches where they arrive, in the connection's
callback, without another iteration of the loop. Connections are opened, and the
producer's identity is obtained, in short-lived tasks, so that a slow broker does not
hold up the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeAlias

from kafkaio._client.cluster import Cluster
from kafkaio._client.retry import RetryPolicy
from kafkaio._config import ProducerConfig
from kafkaio._machines.accumulator import Accumulator, ProduceBatch, Receipt
from kafkaio._machines.accumulator.availability import Flight
from kafkaio._machines.accumulator.exchange import Exchange
from kafkaio._machines.backoff import Backoff
from kafkaio._machines.metadata import ClusterView
from kafkaio._machines.reactions import Harm
from kafkaio._machines.sequence import ProducerIdentity
from kafkaio._net.connection import Connection
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._producer.backpressure import BufferSpace
from kafkaio._producer.identity import IdentityRequester
from kafkaio._producer.outcomes import Outcomes
from kafkaio._records.compression import Compression
from kafkaio._runtime.clock import roll
from kafkaio._runtime.scopes import CancelScope
from kafkaio._runtime.timer import Timer
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.errors import (
    AuthenticationError,
    KafkaError,
    RequestTimeout,
    UnsupportedVersion,
)
from kafkaio.protocol.messages.produce import ProduceRequest, ProduceResponse
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio._producer.oneway import OnewayRequests

#: Brokers that know zstd know this version of Produce (KIP-110).
_WITH_ZSTD = 7

_NEVER = float("inf")
#: Seconds between two checks for topics that are no longer written to.
_TOPICS_INTERVAL = 1.0

_Step: TypeAlias = Callable[[], Awaitable[None]]


class SendingTransactionPort(Protocol):
    """The part of the transaction manager that the sender uses."""

    @property
    def transactional_id(self) -> str:
        """The id that requests with records of a transaction name."""
        ...

    @property
    def produce_versions(self) -> tuple[int, int]:
        """The lowest and highest version of Produce that the transaction may use."""
        ...

    @property
    def is_first_checked(self) -> bool:
        """Whether brokers refuse a first number other than 0 under a new epoch."""
        ...

    def partitions_wanted(self, partitions: Collection[TopicPartition]) -> None:
        """Note that records wait until the transaction has these partitions."""

    def sending(self, partitions: Collection[TopicPartition]) -> None:
        """Note that a request with records of these partitions is sent now."""

    def batches_ended(self) -> None:
        """Note that batches were answered, or have failed."""

    def failed(self, error: Exception, *, harm: Harm) -> None:
        """Note that a record of the open transaction has failed."""


class Sender:
    """Sends the batches that are ready, and completes those that were answered.

    Args:
        cluster: whose connections and metadata are used.
        config: the producer's options.
        accumulator: the records.
        identity: the producer's identity, None without idempotence.
        space: the calls that wait for buffer memory.
        transaction: the transaction manager; None without transactions.

    Attributes:
        on_end: called when the sender's task ends although nobody stopped it.
    """

    # Of more than thirty attributes Python 3.11 finds each by a look-up in a dict.
    __slots__ = (
        "__weakref__", "_accumulator", "_acks", "_availability", "_backlog",
        "_backoff", "_check_topics_at", "_cluster", "_compresses", "_config",
        "_failed", "_failure", "_gate", "_has_others", "_has_zstd", "_held",
        "_identity", "_is_obtaining", "_is_scheduled", "_is_stopping", "_loop",
        "_may_expire", "_on_idle", "_on_wire", "_oneway", "_open_batches",
        "_opening", "_outbox", "_outcomes", "_request_timeout", "_scopes",
        "_space", "_timer", "_topic_max_idle", "_transaction", "_watched",
        "on_end",
    )  # fmt: skip

    def __init__(
        self,
        cluster: Cluster,
        config: ProducerConfig,
        accumulator: Accumulator,
        identity: ProducerIdentity | None,
        space: BufferSpace,
        transaction: SendingTransactionPort | None = None,
    ) -> None:
        self._transaction = transaction
        if transaction is not None:
            failed = partial(transaction.failed, harm=Harm.ABORT)
            accumulator.placement.on_failed = failed
        accumulator.placement.on_missing = self._report_missing
        accumulator.placement.why_undescribed = cluster.why_undescribed
        self._cluster = cluster
        self._config = config
        self._accumulator = accumulator
        self._backlog = accumulator.backlog
        self._outbox = accumulator.outbox
        self._gate = accumulator.gate
        self._availability = accumulator.availability
        self._open_batches = accumulator.budget.open_batches
        self._identity = identity
        self._space = space
        self._outcomes = Outcomes(
            cluster, cluster.observer, config, accumulator.completion, transaction
        )
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        self._request_timeout = config.request_timeout_ms / 1000
        self._topic_max_idle = config.metadata_max_idle_ms / 1000
        self._acks = config.required_acks
        self._has_zstd = config.compression_type == "zstd"
        self._compresses = config.compression_type != "none"
        self._loop = asyncio.get_running_loop()
        # Whether the loop will call _check, and whether that may let batches expire.
        self._is_scheduled, self._may_expire = False, False
        # Requests without an answer yet, and whether other batches began meanwhile; if
        # so, the next record is not sent alone (`batch_begun`).
        self._on_wire, self._has_others = 0, False
        # Requests that were submitted while a throttle held them back.
        self._held: list[tuple[Connection, _ProduceReply]] = []
        # Requests without an answer that have not left; None while there were none.
        self._oneway: OnewayRequests | None = None
        self._failed = Wakeup()
        # Fires no later than needed. An early call checks in vain, which costs less
        # than a timer that is set again with every request.
        self._timer = Timer(self._time_passed)
        self._check_topics_at = 0.0
        self._is_stopping = False
        self._failure: BaseException | None = None
        # Brokers whose connection is being opened.
        self._opening: set[int] = set()
        self._is_obtaining = False
        # Scopes of all tasks of this sender; stop() cancels them.
        self._scopes: dict[CancelScope, None] = {}
        self._on_idle: asyncio.Future[None] | None = None
        self._watched: frozenset[str] = frozenset()
        self.on_end: Callable[[], None] = _nothing

    def start(self) -> None:
        """Start the task; the cluster must have been started."""
        self._start(self._run, "producer")
        self.wake()
        if self._identity is not None and self._transaction is None:
            self._obtain_identity(self._identity)

    def wake(self) -> None:
        """Check the accumulator in the loop's next iteration."""
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._check)

    def check_now(self) -> None:
        """Check the accumulator now; not to be called from a callback of the sender."""
        if not self._is_scheduled:
            self._check()

    def batch_begun(self) -> None:
        """Send a batch that a record began: in the next iteration, or now.

        The next iteration lets other records join the batch. A record is sent now if
        the one before was sent alone and answered before another one came: such records
        would each wait an iteration for nothing. Where a transaction admits partitions
        one by one, the next iteration is better in any case: others can join the
        request that adds them, which costs a round trip.
        """
        self._has_others |= self._is_scheduled or self._on_wire > 0
        gate = self._gate
        is_lone, gate.is_lone = gate.is_lone, False
        if not is_lone or self._has_others or gate.admitted is not None:
            self.wake()
        elif not self._send_lone():
            self._check()

    def stop(self) -> None:
        """Stop sending; answers to what is on the wire are not awaited."""
        self._is_stopping = True
        for scope in list(self._scopes):
            scope.cancel()

    async def stopped(self) -> None:
        """Wait until all tasks have ended."""
        if self._scopes:
            self._on_idle = asyncio.get_running_loop().create_future()
            await self._on_idle

    def metadata_changed(self, view: ClusterView) -> None:
        """Take over new metadata."""
        self._accumulator.placement.learn(view)
        if self._space.is_awaited:
            # Now: a record that comes next must not overtake one that waited for this.
            self._space.grant()
        self.wake()

    def _start(self, step: _Step, name: str) -> None:
        scope = CancelScope()
        self._scopes[scope] = None

        async def child() -> None:
            try:
                with scope:
                    await step()
            finally:
                del self._scopes[scope]
                if not self._scopes and self._on_idle and not self._on_idle.done():
                    self._on_idle.set_result(None)

        self._cluster.start_soon(child, name)

    async def _run(self) -> None:
        try:
            await self._failed.wait()
        except BaseException:
            if not self._is_stopping:
                # The cluster ends, and this task with it; or this task crashes the
                # cluster, whose crash listeners have to be called first.
                self._loop.call_soon(self.on_end)
            raise
        finally:
            self._is_stopping = True
            self._timer.cancel()
        if self._failure is not None:
            raise self._failure

    def _time_passed(self) -> None:
        if self._loop.time() < self._backlog.expires_at:
            self.wake()
        else:
            # In the iteration after the next one: if the loop was blocked, it has not
            # read yet what has come meanwhile, and answers count before the time does.
            self._loop.call_soon(self._let_expire)

    def _let_expire(self) -> None:
        self._may_expire = True
        self.wake()

    def _check(self) -> None:
        self._is_scheduled = False
        if self._is_stopping or self._failure is not None:
            return
        at, space = self._loop.time(), self._space
        if at >= self._backlog.expires_at and not self._may_expire:
            self._timer.set(at)
            return
        try:
            if self._may_expire:
                self._may_expire = False
                self._expire(at)
            if self._oneway is not None:
                self._oneway.check(at)
                self._timer.set(self._oneway.check_at(at))
            self._outbox.is_urgent = space.is_awaited and space.grant()
            if at >= self._check_topics_at or self._backlog.has_new_topic:
                self._watch_topics(at)
            wake_at = self._send_ready(at)
            if self._outbox.is_urgent:
                # Batches without an answer (acks=0), and those that could not be sent,
                # have returned their bytes.
                space.grant()
        except Exception as failure:  # noqa: BLE001 - the task raises it
            self._fail(failure)
            return
        if wake_at < self._timer.when:
            self._timer.set(wake_at)

    def _send_lone(self) -> bool:
        """Send the only batch there is; return whether nothing else was to be done.

        It is what `_check` comes to with one batch that can leave at once. Whenever
        there may be something else, nothing is done here.
        """
        at, backlog = self._loop.time(), self._backlog
        if (
            at >= backlog.expires_at
            or at >= self._check_topics_at
            or backlog.has_new_topic
            or self._transaction is not None
            or self._space.is_awaited
            or self._is_stopping
            or self._failure is not None
        ):
            return False
        queue = self._outbox.lone_queue()
        if queue is None:
            return False
        connection = self._cluster.ready_connection(
            queue.leader, ConnectionClass.PRODUCE
        )
        if connection is None:
            return False
        backlog.has_news = False
        self._open_batches.taken = 0
        try:
            self._send(connection, [self._outbox.take(queue, at)], at)
        except Exception as failure:  # noqa: BLE001 - the task raises it
            self._fail(failure)
        if backlog.expires_at < self._timer.when:
            self._timer.set(backlog.expires_at)
        return True

    def _fail(self, failure: BaseException) -> None:
        self._failure = failure
        self._failed.notify()

    def _send_ready(self, at: float) -> float:
        """Send all that can be sent now; return when to check again."""
        backlog, identity = self._backlog, self._identity
        availability = self._availability
        while True:
            backlog.has_news = False
            self._open_batches.taken = 0
            outlook = self._outbox.outlook(at)
            if identity is not None and self._transaction is not None:
                self._inform(self._transaction, identity)
            elif (
                identity is not None
                and identity.current is None
                and not backlog.is_empty
            ):
                self._obtain_identity(identity)
                self._prepare()
                return outlook.wake_at
            is_sent = False
            for node in outlook.nodes:
                is_sent |= self._send_to(node, at)
                if is_sent and self._compresses:
                    break  # one request per iteration, see below
            if not is_sent:
                break
            if backlog.is_all_sent:
                slow_at = availability.check(at) if availability.is_watching else _NEVER
                return min(backlog.expires_at, slow_at)
            if self._compresses:
                # A megabyte takes milliseconds: other callbacks must run in between.
                self.wake()
                return backlog.expires_at
        if outlook.is_leaderless:
            self._cluster.request_refresh()
        return outlook.wake_at

    def _expire(self, at: float) -> None:
        transaction, expired = self._transaction, self._accumulator.expire(at)
        if self._held:
            self._withdraw_expired()
        for receipt in expired:
            self._report(receipt)
        if transaction is not None:
            # Once for all of them: after the first report, EndTxn may be on its way,
            # and a further one would belong to the next transaction.
            if expired and (error := expired[0].error) is not None:
                transaction.failed(error, harm=Harm.BUMP)
            transaction.batches_ended()

    def _inform(
        self, transaction: SendingTransactionPort, identity: ProducerIdentity
    ) -> None:
        identity.is_first_checked = transaction.is_first_checked
        wanted = self._outbox.partitions_to_add()
        if wanted:
            transaction.partitions_wanted(wanted)
        if identity.has_gap:
            identity.has_gap = False
            gap = KafkaError("a partition's leader lost batches that it acknowledged")
            transaction.failed(gap, harm=Harm.BUMP)

    def _withdraw_expired(self) -> None:
        # A throttle can hold a request back for longer than its batches live. Without
        # this, the abort of a transaction would wait for the request, which would then
        # write records that have failed.
        for connection, in_flight in self._held:
            if in_flight.has_expired and connection.withdraw(in_flight):
                in_flight.set_exception(
                    RequestTimeout(f"not sent in time: {connection.why_held()}")
                )
        self._held = [it for it in self._held if not it[1].is_answered]

    def _watch_topics(self, at: float) -> None:
        self._check_topics_at = at + _TOPICS_INTERVAL
        topics = self._backlog.topics_in_use(at - self._topic_max_idle)
        if topics != self._watched:
            self._watched = topics
            self._cluster.watch_topics(self, topics)
        if self._backlog.has_new_topic:
            self._backlog.has_new_topic = False
            unknown = self._backlog.unknown_topics()
            if unknown:
                self._cluster.request_refresh(*unknown)

    # Requests

    def _prepare(self) -> None:
        """Connect to leaders while the producer's identity is obtained."""
        for node in self._outbox.leaders():
            self._cluster.prepare(node, ConnectionClass.PRODUCE)

    def _send_to(self, node: int, at: float) -> bool:
        """Send a broker a request; return whether there was one to send."""
        connection = self._cluster.ready_connection(node, ConnectionClass.PRODUCE)
        if connection is None:
            if node not in self._opening:
                self._opening.add(node)
                self._start(partial(self._open, node), f"producer to node {node}")
            return False
        batches = self._outbox.drain(node, at)
        if not batches:
            return False
        self._send(connection, batches, at)
        return True

    def _send(
        self, connection: Connection, batches: list[ProduceBatch], at: float
    ) -> None:
        """Send batches that were taken from the outbox."""
        exchange: Exchange | None = None
        try:
            if self._has_zstd or self._backlog.has_zstd:
                batches = self._decodable(connection, batches)
            exchange = self._filled(batches)
            self._submit(connection, batches, exchange)
        except KafkaError as error:
            state = self._availability.node(connection.node_id)
            state.ended(at, state.latest)
            self._outcomes.unanswered(batches, error)
            if self._transaction is not None:
                self._transaction.batches_ended()
            self.wake()  # they may have to be sent again, at a time to be found
        finally:
            if exchange is not None:
                exchange.clear()

    def _submit(
        self, connection: Connection, batches: list[ProduceBatch], exchange: Exchange
    ) -> None:
        request, max_version = exchange.request, exchange.max_version
        if self._transaction is not None:
            max_version = self._join(
                self._transaction, connection, request, max_version
            )
            self._transaction.sending([batch.partition for batch in batches])
        observer, at = self._cluster.observer, self._loop.time()
        held = connection.why_held() if connection.holds_back(at) else ""
        for batch in batches:
            builder = batch.builder
            batch.sent_at = at
            if batch.first_sent_at is None:
                batch.first_sent_at = at
            batch.held = held
            observer.batch_sent(batch.partition, builder.count, builder.size_bytes)
        node = connection.node_id
        state = self._availability.nodes[node]
        if not state.is_met:
            state.met(connection.round_trip)
        if request.acks == 0:
            connection.submit_oneway(request, max_version=max_version)
            if not connection.unsent:
                self._left(node, batches, state.latest, at)
                return
        self._on_wire += 1
        in_flight = _ProduceReply(self, node, batches, exchange, state.latest)
        if request.acks == 0:
            self._await_leaving(connection, in_flight, at)
            return
        if held:
            self._held.append((connection, in_flight))
        connection.submit_to(
            in_flight,
            request,
            timeout=self._request_timeout,
            max_version=max_version,
            last=exchange.answer,
            # Where the way is slow, it is spent behind the requests before.
            in_turn=True,
        )

    def _await_leaving(
        self, connection: Connection, in_flight: _ProduceReply, at: float
    ) -> None:
        if self._oneway is None:
            # Imported late: few producers need it.
            from kafkaio._producer.oneway import OnewayRequests

            # A quota is not announced: without an answer it looks like a hang.
            throttle = self._config.max_throttle_ms / 1000
            self._oneway = OnewayRequests(self._request_timeout + throttle)
        self._oneway.add(connection, in_flight, at)
        self.wake()  # uvloop writes at the end of an iteration

    def sent(self, reply: _ProduceReply) -> None:
        """Complete the batches of a request that has no answer, and has left."""
        self._on_wire -= 1
        self._left(reply.node, reply.batches, reply.flight, self._loop.time())

    def _left(
        self, node: int, batches: list[ProduceBatch], flight: Flight, at: float
    ) -> None:
        self._availability.nodes[node].ended(at, flight)
        self._availability.node_answered(node)
        self._outcomes.unacknowledged(node, batches)

    @staticmethod
    def _join(
        transaction: SendingTransactionPort,
        connection: Connection,
        request: ProduceRequest,
        max_version: int | None,
    ) -> int:
        """Make a request part of the transaction; return its highest version."""
        request.transactional_id = transaction.transactional_id
        lowest, highest = transaction.produce_versions
        if max_version is not None:
            highest = min(highest, max_version)
        version = connection.versions.usable(ProduceRequest, highest)
        if version < lowest:
            connection.versions.miss(ProduceRequest.API_KEY)
            raise UnsupportedVersion(
                f"broker {connection.node_id} knows Produce up to version {version}; "
                f"the transaction's protocol needs {lowest}"
            )
        return highest

    def _decodable(
        self, connection: Connection, batches: list[ProduceBatch]
    ) -> list[ProduceBatch]:
        """Return the batches whose codec the broker knows; the others fail.

        Raises:
            UnsupportedVersion: it knows that of none.
        """
        version = connection.versions.usable(ProduceRequest)
        if version >= _WITH_ZSTD:
            return batches
        unknown = [it for it in batches if it.builder.compression is Compression.ZSTD]
        if not unknown:
            return batches
        connection.versions.miss(ProduceRequest.API_KEY)
        error = UnsupportedVersion(
            f"broker {connection.node_id} knows Produce up to version {version}; "
            f"compression_type='zstd' needs {_WITH_ZSTD} (Kafka 2.1)"
        )
        if len(unknown) == len(batches):
            raise error
        self._outcomes.unanswered(unknown, error)
        return [batch for batch in batches if batch not in unknown]

    def _filled(self, batches: list[ProduceBatch]) -> Exchange:
        """Return a request with batches; if it is only one, in the request kept."""
        acks, timeout_ms = self._acks, self._config.request_timeout_ms
        topics = self._backlog.topics
        if len(batches) > 1:
            exchange = Exchange(acks, timeout_ms)
            for batch in batches:
                topic_id = topics[batch.partition.topic].topic_id
                exchange.add(batch.partition, topic_id, batch.encode())
            return exchange
        (batch,) = batches
        tp = batch.partition
        queue = self._backlog.active[tp]
        kept = queue.exchange
        if kept is None:
            topic_id = topics[tp.topic].topic_id
            kept = Exchange.of_one(tp, topic_id, acks, timeout_ms)
            queue.exchange = kept
        kept.last.records = batch.encode()
        return kept

    def answered(
        self, reply: _ProduceReply, answer: ProduceResponse | Exception
    ) -> None:
        """Complete the batches of a request by its answer, or by its error."""
        # The connection calls this. An exception would end in its callback, and the
        # batches would never complete. So the task raises it, and its crash fails every
        # caller that waits.
        self._on_wire -= 1
        node, batches, exchange = reply.node, reply.batches, reply.exchange
        try:
            availability = self._availability
            state, at = availability.nodes[node], self._loop.time()
            if isinstance(answer, Exception):
                state.ended(at, reply.flight)
                availability.node_failed(node)
                self._outcomes.unanswered(batches, answer, state)
            else:
                state.answered(at, reply.flight)
                if availability.has_trouble:
                    availability.node_answered(node)
                known = exchange.answer
                if known is not None and known.response is answer:
                    self._outcomes.acknowledged(node, batches[0], known.written)
                else:
                    self._outcomes.answered(node, batches, exchange.names, answer)
            if self._transaction is not None:
                self._transaction.batches_ended()
            if self._space.is_awaited:
                self._space.grant()
        except Exception as failure:  # noqa: BLE001 - see above
            self._fail(failure)
        if not self._backlog.is_all_sent:
            self.wake()
        elif not self._on_wire:
            is_one = len(batches) == 1 and batches[0].builder.count == 1
            self._gate.is_lone = is_one and not self._has_others
            self._has_others = False

    async def _open(self, node: int) -> None:
        try:
            await self._cluster.connection(node, ConnectionClass.PRODUCE)
        except KafkaError as error:
            if isinstance(error, AuthenticationError):
                self._refuse(node, error)
            self._outbox.note_cause(node, error)
            self._availability.node_failed(node)
            self._cluster.request_refresh()
            # The pool backs off before it connects again. This pause is for errors that
            # come at once, such as a broker that has left the cluster.
            await asyncio.sleep(self._backoff.delay(0, roll()))
        finally:
            self._opening.discard(node)
            self.wake()

    def _refuse(self, node: int, error: AuthenticationError) -> None:
        """Fail what waits for a broker that refuses the credentials.

        Later records lead to another attempt, after the back-off of the connection.
        """
        failed = self._accumulator.refuse(node, error)
        for receipt in failed:
            self._report(receipt)
        if failed and self._transaction is not None:
            self._transaction.failed(error, harm=Harm.ABORT)
            self._transaction.batches_ended()
        self._space.grant()

    # Identity

    def _obtain_identity(self, identity: ProducerIdentity) -> None:
        if not self._is_obtaining:
            self._is_obtaining = True
            self._start(partial(self._obtain, identity), "producer id")

    async def _obtain(self, identity: ProducerIdentity) -> None:
        requester = IdentityRequester(
            self._cluster,
            identity,
            RetryPolicy.from_config(self._config, self._cluster.observer),
            timeout=self._request_timeout,
            on_failure=self._no_identity,
            is_needed=lambda: not self._backlog.is_empty,
        )
        try:
            await requester.obtain()
        finally:
            self._is_obtaining = False
            self.wake()

    def _no_identity(self, error: KafkaError) -> None:
        # A producer without any rights is refused an id, too (31). The metadata of its
        # topic has the better reason, so wait for that.
        if not error.retriable and not self._backlog.unknown_topics():
            self._refuse_all(error)
        self._outbox.note_cause(None, error)

    def _refuse_all(self, error: Exception) -> None:
        # Each record fails with the error. Later records lead to another attempt, so
        # the producer recovers when a missing permission is granted.
        for receipt in self._accumulator.fail_all(lambda _: error):
            self._report(receipt)
        self._space.grant()

    def _report_missing(self, tp: TopicPartition, error: Exception) -> None:
        self._cluster.observer.partition_unavailable(tp, error)

    def _report(self, receipt: Receipt) -> None:
        assert receipt.error is not None
        tp = TopicPartition(receipt.topic, receipt.partition)
        self._cluster.observer.record_failed(tp, receipt.error, receipt.count)


class _ProduceReply:
    """Takes the answer to one produce request.

    It calls the sender directly, where a future would call it one iteration of the loop
    later.

    Args:
        sender: completes the batches.
        node: the broker.
        batches: the batches of the request.
        exchange: the request.
        flight: when it was sent, and how much is in flight.

    Attributes:
        is_answered: whether there was an answer, or an error instead.
    """

    __slots__ = ("_sender", "batches", "exchange", "flight", "is_answered", "node")

    def __init__(
        self,
        sender: Sender,
        node: int,
        batches: list[ProduceBatch],
        exchange: Exchange,
        flight: Flight,
    ) -> None:
        self._sender = sender
        self.node: int = node
        self.batches: list[ProduceBatch] = batches
        self.exchange: Exchange = exchange
        self.flight: Flight = flight
        self.is_answered: bool = False

    @property
    def has_expired(self) -> bool:
        """Whether every batch of the request has expired."""
        return all(batch.is_expired for batch in self.batches)

    def done(self) -> bool:
        """Always False: the answer is always needed."""
        return False

    def set_result(self, response: ProduceResponse) -> None:
        """Take the answer."""
        self.is_answered = True
        self._sender.answered(self, response)

    def set_late(self, why: str) -> None:
        """Note why the request, which has no answer, has not left."""
        for batch in self.batches:
            batch.held = why

    def set_sent(self) -> None:
        """Note that the request, which has no answer, has left."""
        self.is_answered = True
        self._sender.sent(self)

    def set_exception(self, error: Exception) -> None:
        """Take the error that stands for the answer."""
        self.is_answered = True
        self._sender.answered(self, error)


def _nothing() -> None:
    pass
