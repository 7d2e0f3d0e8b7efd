"""The consumer: records of topics, for a group or for one reader alone."""

from __future__ import annotations

import re
from collections.abc import (
    AsyncIterator,
    Collection,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from types import TracebackType
from typing import Any, ClassVar, Final, Self, Unpack

from kafkaio._net.transport import Dial
from kafkaio._runtime.clock import now
from kafkaio.client.client import Client, cluster_of
from kafkaio.client.cluster import Cluster
from kafkaio.config import ConsumerConfig, ConsumerOptions
from kafkaio.config.signature import OptionsSignature
from kafkaio.consumer.arguments import most_of, seconds_of
from kafkaio.consumer.core import Core
from kafkaio.consumer.parallel.offers import InParallel
from kafkaio.consumer.places import Places, ToCommit
from kafkaio.consumer.poll import Poll
from kafkaio.consumer.reading.iterators import BatchIterator, TableIterator
from kafkaio.consumer.reading.stream import RecordStream
from kafkaio.consumer.rebalance.callbacks import HeldCallbacks, PartitionsCallback
from kafkaio.consumer.rebalance.events import RevokeRequested
from kafkaio.consumer.rebalance.feed import Rebalances
from kafkaio.consumer.statistics import ConsumerStatistics
from kafkaio.consumer.wanted import Topics, Wanted
from kafkaio.errors import UsageError
from kafkaio.types import GroupMetadata, Record, TopicPartition

__all__ = ["TABLE_ROWS", "Consumer", "ConsumerStatistics", "ToCommit"]

#: Rows of a table: what takes about a millisecond to make.
TABLE_ROWS: Final = 32_768


class Consumer(Places, InParallel):
    """Reads records, one at a time, in batches, or by polling.

    ``async with`` opens and closes it; `start` and `close` are the same by hand; one
    that is forgotten open gives a ResourceWarning. Only one task may read at a time.
    Records of a partition come in the order of their offsets; there is no order
    between partitions.

    A record is *finished* when the next one (or batch, or poll) is asked for: leaving
    the loop, by an exception or cancellation too, does not finish the record that
    was being worked on. Auto-commit commits finished records alone, so a crash
    repeats records and never skips one. ``commit()``, without arguments, commits
    everything that was handed out: calling it says that all of that is done.

    Args:
        bootstrap_servers: ``"host:port,host2:port"``, a sequence of such, or a started
            `kafkaio.Client` to share, which `close` then leaves open.
        topics: topics to subscribe to. With a ``group_id`` the group divides their
            partitions among its members; without one this consumer reads all,
            including partitions that are added later.
        assign: fixed partitions to read instead.
        on_assigned: called with partitions that were assigned, once their records may
            come. Like the other two it may be a coroutine function; what it raises
            reaches the consumer's next call.
        on_revoked: called with partitions about to be given up; commits still count.
        on_lost: called with partitions that are gone already; without it
            ``on_revoked`` is.
        observer: an object with any of the methods of `kafkaio.Observer`, or a list of
            such objects. A shared client has its own; none can be given beside it.
        options: see `kafkaio.ConsumerConfig`. A shared client has the options of
            `kafkaio.ClientConfig`; none of them can be given beside it.

    Raises:
        ConfigurationError: an option is unknown or impossible.
        UsageError: both topics and partitions are given.
    """

    __signature__ = OptionsSignature(ConsumerOptions, ConsumerConfig)

    #: The kind that runs in a thread.
    _in_thread: ClassVar[type[Consumer]]

    def __init_subclass__(cls, *, in_thread: bool = False, **more: object) -> None:
        """Derive a class; one of them is the kind that runs in a thread."""
        super().__init_subclass__(**more)
        if in_thread:
            Consumer._in_thread = cls

    def __new__(cls, *_: object, io_thread: bool = False, **__: object) -> Self:
        """Choose the kind that runs in a thread where the options ask for it."""
        made: Any = super().__new__(cls._kind(io_thread=io_thread))
        return made  # type: ignore[no-any-return]  # of this class, or one below

    @classmethod
    def _kind(cls, *, io_thread: bool) -> type[Consumer]:
        if not io_thread:
            return cls
        if issubclass(cls, Consumer._in_thread):
            return cls
        if cls is not Consumer:
            raise UsageError(f"io_thread=True is for Consumer itself, not {cls!r}")
        return Consumer._in_thread

    def __init__(  # noqa: PLR0913
        self,
        bootstrap_servers: str | Sequence[str] | Client = "localhost:9092",
        *,
        topics: Topics | None = None,
        assign: Iterable[TopicPartition] | None = None,
        on_assigned: PartitionsCallback | None = None,
        on_revoked: PartitionsCallback | None = None,
        on_lost: PartitionsCallback | None = None,
        observer: object | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> None:
        # A client that nobody refers to any more ends its cluster.
        self._client = client = (
            bootstrap_servers if isinstance(bootstrap_servers, Client) else None
        )
        if isinstance(bootstrap_servers, Client):
            config = ConsumerConfig.sharing(bootstrap_servers.config, options, observer)
            cluster = cluster_of(bootstrap_servers)
        else:
            config = ConsumerConfig.of(bootstrap_servers, options)
            cluster = Cluster(config, observer)
        held = HeldCallbacks(on_assigned, on_revoked, on_lost)
        core = Core(
            cluster,
            config,
            owns_cluster=client is None,
            on_assigned=held.on_assigned,
            on_revoked=held.on_revoked,
            on_lost=held.on_lost,
        )
        self._set_up(core, Wanted.of(topics, assign))
        self._held = held

    @classmethod
    def from_config(  # noqa: PLR0913
        cls,
        config: ConsumerConfig,
        *,
        topics: Topics | None = None,
        assign: Iterable[TopicPartition] | None = None,
        on_assigned: PartitionsCallback | None = None,
        on_revoked: PartitionsCallback | None = None,
        on_lost: PartitionsCallback | None = None,
        observer: object | None = None,
        dial: Dial | None = None,
    ) -> Self:
        """Make a consumer of options that were checked before.

        Args:
            config: the options.
            topics: as for the constructor, like all that follow.
            assign: fixed partitions.
            on_assigned: hears of partitions assigned.
            on_revoked: hears of partitions about to be given up.
            on_lost: hears of partitions that are gone.
            observer: hears what happens.
            dial: makes transports; None for TCP and TLS.
        """
        consumer = cls.__new__(cls, io_thread=config.io_thread)
        held = HeldCallbacks(on_assigned, on_revoked, on_lost)
        core = Core(
            Cluster(config, observer, dial),
            config,
            owns_cluster=True,
            on_assigned=held.on_assigned,
            on_revoked=held.on_revoked,
            on_lost=held.on_lost,
        )
        consumer._set_up(core, Wanted.of(topics, assign))
        consumer._held = held
        return consumer

    @classmethod
    def from_properties(
        cls,
        properties: Mapping[str, object],
        *,
        topics: Topics | None = None,
        assign: Iterable[TopicPartition] | None = None,
        observer: object | None = None,
    ) -> Self:
        """Make a consumer of Kafka's dotted names, as Java and librdkafka use.

        Raises:
            ConfigurationError: a name is unknown, or a value is impossible.
        """
        config = ConsumerConfig.from_properties(properties)
        return cls.from_config(config, topics=topics, assign=assign, observer=observer)

    def _set_up(self, core: Core, wanted: Wanted) -> None:
        Places.__init__(self, core)
        core.apply(wanted)

    def __repr__(self) -> str:
        numbers = self.statistics()
        name = self._core.config.group_id or self._core.config.client_id
        group = ""
        if numbers.group is not None:
            protocol, at = numbers.group_protocol, numbers.generation
            group = f" {numbers.group} ({protocol} {at})"
        return (
            f"<Consumer {name!r} {numbers.state}{group} | {numbers.assigned} assigned, "
            f"{numbers.paused} paused | {numbers.fetches_in_flight} fetches in flight, "
            f"{numbers.buffered_bytes} bytes buffered>"
        )

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self.close()
        except Exception as failure:
            if error is None:
                raise
            error.add_note(f"and in closing: {failure!r}")

    async def start(self, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Connect, join, and find every position; then records can be read.

        A record written after that is seen, also with ``auto_offset_reset="latest"``.
        If the call fails or is cancelled, the consumer is closed: it leaves the group
        and disconnects, within about a second.

        Args:
            timeout: seconds; without it ``default_api_timeout_ms`` bounds every step
                but the group's rebalance, which may take as long as its members do.

        Raises:
            BrokerNotAvailable: no broker can be reached.
            UnknownTopicOrPartition: there is no such topic or partition. In a group a
                missing topic is no error, for it may come; the observer hears of it
                (``topic_unavailable``).
            InvalidTopic: no topic can have such a name.
            AuthorizationError: a topic may not be described to us.
            RequestTimeout: time ran out; the message says in which step.
            ClosedError: the consumer was started before.
        """
        await self._core.start(timeout)

    async def close(self, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Commit finished records (with auto-commit), leave the group, disconnect.

        May be called again, by several, and in every state; it returns when all has
        ended. Whoever reads gets a ClosedError.

        If the call is cancelled, everything ends all the same: nothing is committed,
        the partitions are lost, callbacks that run are cut off, and the group is told
        that this member leaves. The call waits half a second at most for the group's
        answer. If it is cancelled again, it returns at once, and the rest goes on in
        the background; another call waits for that.

        Waits for holds and bodies of lanes, except those entered by the calling task:
        calling `close` counts as leaving them. It does not wait for events of
        `rebalances` that the calling task, or a task that has ended, did not look at.

        Args:
            timeout: seconds that it takes at most; 30 by default. With 0 the group is
                told that this member leaves, and its answer is waited for 0.04 s.

        Raises:
            UsageError: it is called in a callback or in a handler of `run`, and would
                wait for that; start it in another task.
            Exception: what a callback raised meanwhile; all has ended even so.
        """
        await self._core.close(timeout)
        self._core.assigned.raise_close_failure()

    # ExclusiveReading

    def __aiter__(self) -> AsyncIterator[Record]:
        """Iterate over records, as `__anext__` gives them.

        While records are at hand, a step costs no coroutine, future or task. The loop
        gets a turn every millisecond all the same.
        """
        return RecordStream(self._reader.handout, self._next_record)

    def _next_record(self) -> Coroutine[Any, Any, Record]:
        # A method of this, so that whoever iterates holds the consumer.
        return self._core.next_record()

    async def __anext__(self) -> Record:
        """The next record. If cancelled, none was taken.

        Raises:
            OffsetOutOfRange: a position is invalid and there is no reset policy.
            CorruptRecord: fetched data fails its checks; seek past it to go on.
            InvalidTopic: no topic can have a name that is subscribed to; raised once,
                and the other topics are read on.
            UsageError: another task reads at the same time, or nothing is to be read:
                no topics are subscribed to and no partitions are assigned. That is
                raised by a read that waits when `unsubscribe` is called, too.
            ClosedError: the consumer is not running.
            Exception: what a callback or a deserializer raised, or what ended a
                background task.
        """
        record = self._reader.handout.take()
        return record if record is not None else await self._core.next_record()

    async def poll(
        self,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
        max_records: int | None = None,
    ) -> Poll:
        """Take what is at hand; wait only where there is nothing.

        Returns early and perhaps without records when the group asks for partitions
        back, or has taken some. What a poll told to be asked back is given up by the
        next one, unless `delay_revoke` or a hold keeps it; what was asked back between
        two polls is told by the second first. If cancelled, nothing was taken or told.

        Args:
            timeout: seconds to wait at most; None waits as long as it takes.
            max_records: most records to take, ``max_poll_records`` by default.

        Raises:
            UsageError: the arguments leave nothing to take, or are no time to wait.
            KafkaError: as iterating does.
        """
        core, host = self._core, self._core.assigned
        limit = most_of(max_records, core.config.max_poll_records)
        wait = None if timeout is None else seconds_of("timeout", timeout)
        core.check()
        deadline = None if wait is None else now() + wait

        def take() -> list[Record] | None:
            records = self._reader.take(limit)
            return records if records or host.has_news else None

        records = await core.read(take, lambda: deadline, polls=True)
        host.poll_ended()
        return Poll(records or [], host.to_be_revoked, host.lost_now)

    def batches(
        self, *, max_records: int | None = None, max_wait: float = 0.0
    ) -> BatchIterator:
        """Iterate over batches of one partition each.

        A batch comes when a partition has ``max_records`` at hand, or ``max_wait``
        after there was something at hand. Asking for the next batch finishes the
        one before. If cancelled, nothing was taken.

        Args:
            max_records: most records of a batch, ``max_poll_records`` by default.
            max_wait: seconds to wait for a full batch.
        """
        limit = most_of(max_records, self._core.config.max_poll_records)
        iterator = BatchIterator(self._core, limit, max_wait)
        iterator.consumer = self
        return iterator

    def arrow_batches(
        self,
        *,
        max_records: int | None = None,
        max_wait: float = 0.0,
        headers: bool = False,
    ) -> TableIterator:
        """Iterate over tables of pyarrow, with what is at hand of all partitions.

        A table comes when ``max_records`` are at hand, or ``max_wait`` after there was
        something at hand; records of one partition stand together in it, in order.
        Asking for the next table finishes the one before. If cancelled, nothing was
        taken. `kafkaio.arrow` tells the columns; with deserializers, key and value
        have the types that Arrow finds for their objects.

        Args:
            max_records: most rows of a table, 32,768 by default.
            max_wait: seconds to wait for that many.
            headers: whether the tables have the records' headers.

        Raises:
            ImportError: pyarrow is not installed: ``pip install 'kafkaio[arrow]'``.
        """
        limit = most_of(max_records, TABLE_ROWS)
        iterator = TableIterator(self._core, limit, max_wait, headers=headers)
        iterator.consumer = self
        return iterator

    # What to read

    @property
    def to_be_revoked(self) -> frozenset[TopicPartition]:
        """Partitions that the group asked back and that the next step gives up.

        One that is delayed is among them again after that step.
        """
        return self._core.assigned.to_be_revoked

    @property
    def lost(self) -> frozenset[TopicPartition]:
        """Partitions that the last poll told to be lost, or that were lost since."""
        return self._core.assigned.lost_now

    def delay_revoke(self, partitions: Collection[TopicPartition]) -> bool:
        """Keep partitions through the next poll: they are worked on (KIP-983).

        Say so again after each poll that names them, until the work is done and
        committed. Records of them that were handed out are not finished by that poll,
        so automatic commits leave them out. The deadline is not put off: past it the
        partitions are lost. One that nobody asked for is left alone. Made for `poll`;
        beside an iterator, hold the partitions (`rebalances`).

        Returns:
            False if some of them were lost or given up; the others are kept even so.
        """
        return self._core.assigned.delay(partitions)

    def rebalances(self) -> Rebalances:
        """Iterate over what rebalances do, from this call on, before `start` too.

        `Assigned`, `RevokeRequested`, `Revoked` and `Lost`, in order. Partitions whose
        revocation is requested stay while the event waits in the iterator, until the
        next event is asked for, and while ``event.hold()`` is entered; reading the
        other partitions goes on. There may be several such iterators; all count. Events
        are never dropped: a slow listener keeps partitions until their deadline, and
        of its waiting events those of one kind that follow each other become one,
        except requests. Ends when the consumer is closed. If cancelled, no event was
        taken.

        An iterator keeps partitions for the task that asked it for an event last. When
        that task ends, by whatever way, the iterator keeps nothing any longer, after
        half a second in which another task may go on with it; so does one that nobody
        has iterated over yet. A task that leaves the loop by ``break`` and goes on has
        not ended: unless nothing refers to the iterator any more, call ``aclose()``,
        or it keeps the request that it returned last, and those after it, until their
        deadlines. `asyncio.wait_for` before Python 3.12 runs each step in a task of its
        own: enter the hold of what it returns at once.

        Raises:
            Exception: while iterating: what the consumer failed of.
        """
        return Rebalances(self._core.assigned.feed)

    async def wait_for_revoke(self) -> RevokeRequested:
        """Wait until the group asks partitions back.

        A request that is pending and was not returned by this method yet is returned
        at once. Hold it before you await anything else: nothing else keeps it. If
        cancelled, no request was taken.

        Raises:
            UsageError: there is no group.
            ClosedError: the consumer was closed.
            Exception: what the consumer failed of.
        """
        self._core.group_committer()
        return await self._core.assigned.feed.next_request()

    @property
    def group_metadata(self) -> GroupMetadata:
        """Who this consumer is to its group, to fence transactional commits.

        Raises:
            UsageError: there is no group.
        """
        self._core.group_committer()
        return self._core.identity()

    @property
    def subscription(self) -> frozenset[str] | re.Pattern[str]:
        """What is subscribed to: names of topics, or the pattern that was given.

        Empty without a subscription, so also while fixed partitions are assigned. A
        pattern is returned as such, since with KIP-848 it is the group coordinator
        that matches it; `assignment` tells the topics that are read.
        """
        wanted = self._core.wanted
        return wanted.pattern or wanted.topics or frozenset()

    def subscribe(self, topics: Topics) -> None:
        """Read these topics from now on, instead of those before.

        A name that no topic can have, or that may not be described to us, is told by
        the next read (InvalidTopic, AuthorizationError).

        Args:
            topics: a name, names, or a pattern that matches whole names. No names at
                all are the same as `unsubscribe`.

        Raises:
            UsageError: partitions are assigned; unsubscribe first.
            ClosedError: the consumer is closed.
        """
        self._core.apply(Wanted.of(topics, None))

    def unsubscribe(self) -> None:
        """Read nothing any more: topics, pattern and fixed partitions are given up.

        From this call on `assignment` is empty and no record is handed out; what was
        buffered is dropped. The rest follows in the background: finished records are
        committed (with auto-commit), ``on_revoked`` is called, in which commits and
        `position` still work, and the group is left. The record handed out last is
        not finished by this call. Holds and lanes keep their partitions as long as in
        any revocation, and the group waits for them.

        A later `subscribe` joins the group anew when all that is done, even if it
        names the same topics and nothing was awaited in between. Until then reading
        raises UsageError, also a read that is already waiting; `run` and `partitions`
        raise it when the work that was begun has ended.

        Raises:
            ClosedError: the consumer is closed.
        """
        self._core.apply(Wanted())

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions; those read already go on undisturbed.

        No partitions at all are the same as `unsubscribe`. A partition that the cluster
        does not have, or does not let us see, is told by the next read
        (UnknownTopicOrPartition after ``default_api_timeout_ms`` where the topic is
        missing, AuthorizationError), again and again while it is wanted; the others
        are read meanwhile.

        Raises:
            UsageError: topics are subscribed to; unsubscribe first.
            ClosedError: the consumer is closed.
        """
        self._core.apply(Wanted.of(None, partitions))

    def enforce_rebalance(self, reason: str = "") -> None:
        """Make the group divide its partitions anew.

        Raises:
            UsageError: this consumer is not a member of a group.
            ClosedError: it is closed.
        """
        self._core.check_open()
        if self._core.member is None or not self._core.wanted.is_subscription:
            raise UsageError("only a member of a group can ask for a rebalance")
        self._core.member.enforce_rebalance(reason)

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out no records of these partitions; what is buffered stays."""
        for tp in self._assigned(partitions):
            self._reader.pause(tp)

    def resume(self, *partitions: TopicPartition) -> None:
        """End a pause."""
        for tp in self._assigned(partitions):
            self._reader.resume(tp)

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that are paused."""
        positions = self._reader.positions
        return frozenset(tp for tp in positions if positions[tp].is_paused)

    # Looking inside

    def statistics(self) -> ConsumerStatistics:
        """A snapshot of the consumer."""
        core = self._core
        coordinator = core.member
        group = None if coordinator is None else coordinator.statistics()
        return ConsumerStatistics(
            state=core.state,
            group=None if group is None else group.state,
            group_protocol=None if group is None else group.protocol,
            generation=-1 if group is None else group.generation,
            assigned=len(core.assigned.assignment),
            paused=len(self.paused),
            to_be_revoked=0 if group is None else group.to_be_revoked,
            fetches_in_flight=core.fetcher.in_flight,
            buffered_bytes=self._reader.buffers.unread,
            stale_answers=core.fetcher.stale_answers,
        )
