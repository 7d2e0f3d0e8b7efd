"""The sender: what moves batches from the accumulator to the brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

import anyio

from kafkaio._machines.accumulator import Accumulator, ProduceBatch, Receipt
from kafkaio._machines.backoff import Backoff
from kafkaio._machines.metadata import ClusterView
from kafkaio._machines.sequence import Identity, ProducerIdentity
from kafkaio._net.connection import Connection
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._runtime.clock import roll
from kafkaio._runtime.supervisor import TaskScope
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.client.cluster import Cluster
from kafkaio.client.destinations import ANY
from kafkaio.config import ProducerConfig
from kafkaio.errors import KafkaError, UnsupportedVersion
from kafkaio.producer.replies import Replies
from kafkaio.producer.room import Room
from kafkaio.protocol.broker_errors import broker_error
from kafkaio.protocol.message import ZERO_UUID
from kafkaio.protocol.messages.init_producer_id import InitProducerIdRequest
from kafkaio.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kafkaio.types import TopicPartition

__all__ = ["Sender"]

#: From this version on, topics go by their ids alone.
_BY_TOPIC_ID = 13
#: Brokers that know zstd know this version (KIP-110).
_WITH_ZSTD = 7
_NO_TRANSACTION_TIMEOUT = 2**31 - 1

_NEVER = float("inf")
#: Seconds after which it is looked anew which topics are not written to any more.
_TOPICS_INTERVAL = 1.0

_Step: TypeAlias = Callable[[], Awaitable[None]]


class Sender:
    """Sends what the accumulator has ready, and hears what became of it.

    When there is news, or a deadline has come, the loop calls it once in its next turn:
    it asks the accumulator which nodes have something to send, fills one request after
    the other, and hands them to the connections. That is a callback and not a task,
    which would cost a future and more with every request; the task only waits for a
    failure, to crash with it. Answers settle their batches where they arrive, without a
    turn of the loop between. Connections are opened, and the producer's identity asked
    for, in short-lived tasks beside it, so that no slow broker holds up the others.

    Args:
        cluster: whose connections and metadata are used.
        config: the producer's options.
        accumulator: the records.
        identity: the producer's identity, None without idempotence.
        room: those who wait for buffer room.
    """

    def __init__(
        self,
        cluster: Cluster,
        config: ProducerConfig,
        accumulator: Accumulator,
        identity: ProducerIdentity | None,
        room: Room,
    ) -> None:
        self._cluster = cluster
        self._config = config
        self._accumulator = accumulator
        self._identity = identity
        self._room = room
        self._replies = Replies(cluster, config, accumulator)
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        self._request_timeout = config.request_timeout_ms / 1000
        self._topic_max_idle = config.metadata_max_idle_ms / 1000
        self._acks = config.required_acks
        self._has_zstd = config.compression_type == "zstd"
        self._compresses = config.compression_type != "none"
        self._loop = asyncio.get_running_loop()
        # Whether the loop will call _look.
        self._is_called = False
        # Requests without an answer yet, and whether other records came meanwhile.
        self._on_wire = 0
        self._has_company = False
        self._failed = Wakeup()
        # Rings no later than the sender asked for; early is harmless.
        self._alarm: asyncio.TimerHandle | None = None
        self._look_at_topics_at = 0.0
        self._is_stopping = False
        self._failure: BaseException | None = None
        # Nodes whose connection is being opened.
        self._opening: set[int] = set()
        self._is_obtaining = False
        # Scopes of all tasks of this sender; stop() cancels them.
        self._scopes: dict[TaskScope, None] = {}
        self._on_idle: asyncio.Future[None] | None = None
        self._watched: frozenset[str] = frozenset()
        #: Called when the task ends although nobody stopped it.
        self.on_end: Callable[[], None] = _nothing

    def start(self) -> None:
        """Start the task; the client must have been started."""
        self._start(self._run, "producer")
        self.wake()
        if self._identity is not None:
            self._obtain_identity()

    def wake(self) -> None:
        """Look at the accumulator soon: in the loop's next turn."""
        if not self._is_called:
            self._is_called = True
            self._loop.call_soon(self._look)

    def batch_begun(self) -> None:
        """Look at a record that began a batch: soon, so that others can join it.

        At once, where the one before went alone and was answered before another came:
        waiting for company would cost such records a turn of the loop each.
        """
        self._has_company |= self._is_called or self._on_wire > 0
        accumulator = self._accumulator
        is_lone, accumulator.is_lone = accumulator.is_lone, False
        if is_lone and not self._has_company:
            self._look()
        else:
            self.wake()

    def stop(self) -> None:
        """Stop sending; what is on the wire is no longer waited for."""
        self._is_stopping = True
        for scope in list(self._scopes):
            scope.cancel()

    async def stopped(self) -> None:
        """Wait until all tasks have ended."""
        if self._scopes:
            self._on_idle = asyncio.get_running_loop().create_future()
            await self._on_idle

    def metadata_changed(self, view: ClusterView) -> None:
        """Hear of new metadata."""
        self._accumulator.learn(view)
        self.wake()

    def _start(self, step: _Step, name: str) -> None:
        scope = TaskScope()
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
                # The client ends, and we with it; or we crash it, which it tells first.
                self._loop.call_soon(self.on_end)
            raise
        finally:
            self._is_stopping = True
            if self._alarm is not None:
                self._alarm.cancel()
        if self._failure is not None:
            raise self._failure

    def _look(self) -> None:
        self._is_called = False
        if self._is_stopping or self._failure is not None:
            return
        try:
            wake_at = self._turn(self._loop.time())
            if self._accumulator.is_urgent:
                # What asks for no answer, or could not be sent, made room already.
                self._room.grant()
        except Exception as failure:  # noqa: BLE001 - the task raises it
            self._fail(failure)
            return
        alarm = self._alarm
        if wake_at != _NEVER and (alarm is None or wake_at < alarm.when()):
            if alarm is not None:
                alarm.cancel()
            self._alarm = self._loop.call_at(wake_at, self._ring)

    def _fail(self, failure: BaseException) -> None:
        self._failure = failure
        self._failed.notify()

    def _ring(self) -> None:
        self._alarm = None
        self.wake()

    def _turn(self, at: float) -> float:
        """Do all that can be done now; return when to look again."""
        accumulator = self._accumulator
        if at >= accumulator.expires_at:
            for receipt in accumulator.expire(at):
                self._report(receipt)
        room = self._room
        accumulator.is_urgent = room.is_awaited and room.grant()
        if at >= self._look_at_topics_at or accumulator.has_new_topic:
            self._watch_topics(at)
        while True:
            accumulator.looked()
            outlook = accumulator.outlook(at)
            if self._needs_identity():
                self._obtain_identity()
                return outlook.wake_at
            if not self._send_to_some(outlook.nodes, at):
                break
            if accumulator.is_all_sent:
                return accumulator.expires_at
            if self._compresses:
                # A megabyte takes milliseconds: others on the loop come in between.
                self.wake()
                return accumulator.expires_at
        if outlook.is_leaderless:
            self._cluster.request_refresh()
        return outlook.wake_at

    def _watch_topics(self, at: float) -> None:
        self._look_at_topics_at = at + _TOPICS_INTERVAL
        topics = self._accumulator.topics_in_use(at - self._topic_max_idle)
        if topics != self._watched:
            self._watched = topics
            self._cluster.watch_topics(self, topics)
        if self._accumulator.has_new_topic:
            self._accumulator.has_new_topic = False
            unknown = self._accumulator.unknown_topics()
            if unknown:
                self._cluster.request_refresh(*unknown)

    # Requests.

    def _send_to_some(self, nodes: tuple[int, ...], at: float) -> bool:
        """Send a request to each of the nodes; whether there was one to send.

        With compression, to the first one that can be sent to.
        """
        is_sent = False
        for node in nodes:
            is_sent |= self._send_to(node, at)
            if is_sent and self._compresses:
                break
        return is_sent

    def _send_to(self, node: int, at: float) -> bool:
        """Send a node a request; whether there was one to send."""
        connection = self._cluster.ready_connection(node, ConnectionClass.PRODUCE)
        if connection is None:
            if node not in self._opening:
                self._opening.add(node)
                self._start(partial(self._open, node), f"producer to node {node}")
            return False
        batches = self._accumulator.drain(node, at)
        if not batches:
            return False
        try:
            self._submit(connection, batches)
        except KafkaError as error:
            self._accumulator.node(node).answered()
            self._replies.unanswered(batches, error)
        return True

    def _submit(self, connection: Connection, batches: list[ProduceBatch]) -> None:
        if self._has_zstd:
            self._check_codec(connection)
        request, names = self._request(batches)
        is_by_id = len(names) == len(request.topic_data)
        max_version = None if is_by_id else _BY_TOPIC_ID - 1
        observer = self._cluster.observer
        for batch in batches:
            builder = batch.builder
            observer.batch_sent(batch.partition, builder.count, builder.size_bytes)
        if request.acks == 0:
            connection.submit_oneway(request, max_version=max_version)
            self._accumulator.node(connection.node_id).answered()
            self._replies.unacknowledged(batches)
            return
        self._on_wire += 1
        reply = _Reply(self, connection.node_id, batches, names)
        connection.submit_to(
            reply, request, timeout=self._request_timeout, max_version=max_version
        )

    def _check_codec(self, connection: Connection) -> None:
        version = connection.versions.usable(ProduceRequest)
        if version < _WITH_ZSTD:
            raise UnsupportedVersion(
                f"broker {connection.node_id} knows Produce up to version {version}; "
                f"compression_type='zstd' wants {_WITH_ZSTD} (Kafka 2.1)"
            )

    def _request(
        self, batches: list[ProduceBatch]
    ) -> tuple[ProduceRequest, dict[int, str]]:
        """Make a request, and tell its topics by the numbers of their ids."""
        view = self._cluster.view
        topics: list[TopicProduceData] = []
        places: dict[str, list[PartitionProduceData]] = {}
        names: dict[int, str] = {}
        for batch in batches:
            name, index = batch.partition
            partitions = places.get(name)
            if partitions is None:
                partitions = places[name] = []
                topic_id = view.topic_id(name)
                if topic_id is not None:
                    # The number, since the hash of a UUID is a call of Python.
                    names[topic_id.int] = name
                topics.append(
                    TopicProduceData(
                        name=name,
                        topic_id=topic_id or ZERO_UUID,
                        partition_data=partitions,
                    )
                )
            partitions.append(PartitionProduceData(index=index, records=batch.encode()))
        request = ProduceRequest(
            acks=self._acks,
            timeout_ms=self._config.request_timeout_ms,
            topic_data=topics,
        )
        return request, names

    def hear(
        self,
        node: int,
        batches: list[ProduceBatch],
        names: dict[int, str],
        answer: ProduceResponse | Exception,
    ) -> None:
        """Take the answer to a request, or the reason why there is none."""
        # An exception would end in the connection, and the batches would hang. So it
        # goes to the task, whose crash fails everything that waits.
        self._on_wire -= 1
        try:
            self._accumulator.node(node).answered()
            if isinstance(answer, Exception):
                self._replies.unanswered(batches, answer)
            else:
                self._replies.answered(batches, names, answer)
            if self._room.is_awaited:
                self._room.grant()
        except Exception as failure:  # noqa: BLE001 - see above
            self._fail(failure)
        if not self._accumulator.is_all_sent:
            self.wake()
        elif not self._on_wire:
            is_one = len(batches) == 1 and batches[0].builder.count == 1
            self._accumulator.is_lone = is_one and not self._has_company
            self._has_company = False

    async def _open(self, node: int) -> None:
        try:
            await self._cluster.connection(node, ConnectionClass.PRODUCE)
        except KafkaError as error:
            self._accumulator.note_cause(node, error)
            self._cluster.request_refresh()
            # The pool keeps the back-off of connections; this is for errors that
            # come at once, such as a node that has left the cluster.
            await anyio.sleep(self._backoff.delay(0, roll()))
        finally:
            self._opening.discard(node)
            self.wake()

    # Identity.

    def _needs_identity(self) -> bool:
        identity = self._identity
        return (
            identity is not None
            and identity.current is None
            and not self._accumulator.is_empty
        )

    def _obtain_identity(self) -> None:
        if not self._is_obtaining:
            self._is_obtaining = True
            self._start(self._obtain, "producer id")

    async def _obtain(self) -> None:
        assert self._identity is not None
        attempt = 0
        try:
            while (error := await self._ask_for_identity(self._identity)) is not None:
                if not error.retriable:
                    self._refuse_all(error)
                delay = self._backoff.delay(attempt, roll())
                self._accumulator.note_cause(None, error)
                self._cluster.observer.retrying(
                    "get a producer id", attempt, delay, error
                )
                attempt += 1
                await anyio.sleep(delay)
                if self._accumulator.is_empty:
                    break
        finally:
            self._is_obtaining = False
            self.wake()

    def _refuse_all(self, error: Exception) -> None:
        # Each record fails with the reason; later ones ask again, so that the
        # producer recovers when somebody grants what was missing.
        for receipt in self._accumulator.fail_all(lambda _: error):
            self._report(receipt)
        self._room.grant()

    def _report(self, receipt: Receipt) -> None:
        assert receipt.error is not None
        tp = TopicPartition(receipt.topic, receipt.partition)
        self._cluster.observer.record_failed(tp, receipt.error, receipt.count)

    async def _ask_for_identity(self, identity: ProducerIdentity) -> KafkaError | None:
        request = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=_NO_TRANSACTION_TIMEOUT
        )
        try:
            response = await self._cluster.request(
                request, ANY, timeout=self._request_timeout
            )
        except KafkaError as error:
            return error
        if response.error_code:
            return broker_error(response.error_code, "cannot get a producer id")
        identity.obtained(Identity(response.producer_id, response.producer_epoch))
        return None


class _Reply:
    """Tells the sender what became of one request; see `kafkaio._net`."""

    __slots__ = ("_batches", "_names", "_node", "_sender")

    def __init__(
        self,
        sender: Sender,
        node: int,
        batches: list[ProduceBatch],
        names: dict[int, str],
    ) -> None:
        self._sender = sender
        self._node = node
        self._batches = batches
        self._names = names

    def done(self) -> bool:
        """Batches always want to know."""
        return False

    def set_result(self, response: ProduceResponse) -> None:
        """Take the answer."""
        self._sender.hear(self._node, self._batches, self._names, response)

    def set_exception(self, error: Exception) -> None:
        """Take the reason why there is none."""
        self._sender.hear(self._node, self._batches, self._names, error)


def _nothing() -> None:
    pass
