"""The operations of `kafkaio.Admin` on transactions (KIP-664, KIP-939).

A transaction has its state in two places. Its coordinator has the transactional id, the
state and the partitions. The leader of each partition has the producers with an open
transaction there, and where it begins. A transaction *hangs* if it is open at a leader
and its coordinator does not have it, or has it without that partition: no marker will
ever be written, and readers with ``read_committed`` wait there for good. With brokers
before 3.6 that happens when a write arrives after the end of its transaction.

`Transactions.abort_transaction` aborts the transaction in one partition, by a marker
that the coordinator does not know about. That is right for a late write. A transaction
that does not hang would still be committed in its other partitions, so the coordinator
is asked first.

A transaction also hangs if its marker was lost, and then an abort may be wrong. Kafka
4.3.1 drops the marker of a partition without a leader, and completes the transaction.
If it was committed, the records that hang there are committed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import (
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Sequence,
)
from typing import TypeVar

from kafkaio._arguments import (
    partition_of,
    topics_of,
)
from kafkaio._client.destinations import (
    ANY,
    Broker,
    Leader,
    TransactionCoordinator,
)
from kafkaio._client.fanout import Answer, Operation, Results, Terms
from kafkaio._runtime.clock import now, wall_ms
from kafkaio.admin._asking import (
    all_brokers,
    ask,
    final_at,
    need_brokers,
    outcome,
)
from kafkaio.admin._subject import Subject
from kafkaio.admin._types import (
    HangingTransaction,
    ProducerIdAndEpoch,
    ProducerState,
    TransactionDescription,
    TransactionListing,
    TransactionState,
    TransactionStateName,
)
from kafkaio.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BrokerError,
    KafkaError,
    UnsupportedVersion,
    UsageError,
)
from kafkaio.protocol import _api_numbers as apis, messages
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.types import TopicPartition

ItemT = TypeVar("ItemT", bound=Hashable)
ValueT = TypeVar("ValueT")

#: The default of the brokers' ``transaction.max.timeout.ms``.
_MAX_TRANSACTION_TIMEOUT_MS = 900_000
#: The first versions of ListTransactions with the filters, and their Kafka releases.
_DURATION_FROM, _PATTERN_FROM = (1, "3.8"), (2, "4.1")
#: The part of the time that leaders get in `Transactions.find_hanging_transactions`,
#: before coordinators are asked.
_SHARE = 2 / 3
#: The version of WriteTxnMarkers to use: the epoch of the marker must not be older than
#: that of the producer. In version 2 it may have to be newer (KIP-1228).
_MARKERS_VERSION = 1
#: The states after a commit: the last transaction was, or is being, committed.
_COMMITTED = frozenset(
    {TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT}
)
#: Milliseconds that a transaction may live beyond its timeout: the coordinator aborts
#: it in a periodic task.
_MARGIN_MS = 300_000
#: Final for a broker that was named by its id: it has no replica of the partition, and
#: the leader, which metadata would name, was not asked for.
_NO_REPLICA = final_at(
    apis.DESCRIBE_PRODUCERS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)
#: The coordinator epoch of a marker if the partition has none yet.
_FIRST_EPOCH = 0


class Transactions(Subject):
    """The operations on transactions."""

    async def list_transactions(
        self,
        *,
        states: Iterable[TransactionState | TransactionStateName] | None = None,
        producer_ids: Iterable[int] | None = None,
        duration_ms: int | None = None,
        pattern: str | None = None,
        timeout: float | None = None,
    ) -> list[TransactionListing]:
        """List the transactional ids of the cluster, of all coordinators (KIP-664).

        It needs Kafka 3.0. Every filter that is given must hold.

        Args:
            states: the states that are wanted.
            producer_ids: the producer ids that are wanted.
            duration_ms: the time in milliseconds for which a transaction must have
                been open (KIP-994, Kafka 3.8).
            pattern: a regular expression for the whole transactional id, in RE2 syntax
                (KIP-1152, Kafka 4.1).
            timeout: seconds.

        Returns:
            The ids, sorted. Ids that the client may not describe are left out.

        Raises:
            ArgumentValueError: an argument is impossible, or the brokers do not know a
                state.
            UnsupportedVersion: a broker is too old; the message names what is needed.
            KafkaError: a broker did not answer in time, or refused. ``results`` has the
                transactions of the others, by node id.
            AdminErrors: several brokers did not; likewise.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        if duration_ms is not None and duration_ms < 0:
            raise ArgumentValueError(f"duration_ms must not be negative: {duration_ms}")
        request = messages.ListTransactionsRequest(
            state_filters=sorted({str(each) for each in states or ()}),
            producer_id_filters=sorted(set(producer_ids or ())),
            duration_filter=-1 if duration_ms is None else duration_ms,
            transactional_id_pattern=pattern or None,
        )
        return await self._listed_transactions(request, deadline)

    async def describe_transactions(
        self,
        ids: Iterable[str],
        *,
        timeout: float | None = None,
    ) -> dict[str, TransactionDescription]:
        """Describe transactional ids, as their coordinators know them (KIP-664).

        It needs Kafka 3.0.

        Args:
            ids: transactional ids.
            timeout: seconds.

        Returns:
            The descriptions by id, in the order of ``ids``.

        Raises:
            BrokerError: an id is unknown (TRANSACTIONAL_ID_NOT_FOUND), or refused.
            UnsupportedVersion: a coordinator is too old.
            RequestTimeout: a coordinator did not answer in time.
            AdminErrors: several ids failed.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        wanted = _ids(ids)
        results = await self._described_transactions(wanted, deadline)
        return outcome("describe the transactions", wanted, results)

    async def describe_producers(
        self,
        partitions: Iterable[TopicPartition],
        *,
        broker: int | None = None,
        timeout: float | None = None,
    ) -> dict[TopicPartition, tuple[ProducerState, ...]]:
        """Describe the producers that the leaders of partitions remember (KIP-664).

        It needs Kafka 2.8.

        Args:
            partitions: the partitions.
            broker: the node id of a broker whose replicas to ask; None asks the
                leaders.
            timeout: seconds.

        Returns:
            The producers by partition, in the order of ``partitions``.

        Raises:
            UnknownTopicOrPartition: the partition does not exist.
            BrokerError: NOT_LEADER_OR_FOLLOWER, if ``broker`` has no replica of the
                partition; or another refusal.
            UnsupportedVersion: a broker is too old.
            RequestTimeout: a broker did not answer in time.
            AdminErrors: several partitions failed.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        wanted = list(dict.fromkeys(map(partition_of, partitions)))
        results = await self._producers(wanted, deadline, broker)
        return outcome("describe the producers", wanted, results)

    async def find_hanging_transactions(
        self,
        *,
        broker: int | None = None,
        topics: str | Collection[str] | None = None,
        max_transaction_timeout_ms: int = _MAX_TRANSACTION_TIMEOUT_MS,
        timeout: float | None = None,
    ) -> list[HangingTransaction]:
        """Find transactions that are open in a partition and that no broker will end.

        A transaction hangs if it is open at the partition's leader for longer than any
        may be, while its coordinator does not have it, or has it without the
        partition. Readers with ``read_committed`` wait at its start for good, until
        `abort_transaction` ends it. Brokers before 3.6 let that happen; and Kafka 4.3.1
        loses the markers of partitions without a leader, of committed transactions as
        well.

        It needs Kafka 3.0, and asks every broker, so that all of them have to answer.
        It needs the right to describe every transactional id: brokers leave out the
        others, whose old transactions then look as if they hung.

        Args:
            broker: looks only at partitions that this broker leads.
            topics: looks only at these topics; at all, internal ones included, by
                default.
            max_transaction_timeout_ms: the brokers' ``transaction.max.timeout.ms``. A
                transaction whose last record is younger than that and five minutes is
                passed over. Producers set the time of records.
            timeout: seconds.

        Returns:
            The hanging transactions, in the order of the partitions.

        Raises:
            ArgumentValueError: an argument is impossible.
            UnsupportedVersion: a broker is too old.
            KafkaError: a partition has no leader that answers, or a broker does not.
                Where it is a leader, ``results`` has what hangs in the other
                partitions, by partition.
            AdminErrors: several partitions have none; likewise.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        if max_transaction_timeout_ms < 0:
            raise ArgumentValueError(
                "max_transaction_timeout_ms must not be negative: "
                f"{max_transaction_timeout_ms}"
            )
        names = None if topics is None else topics_of(topics)
        # Compared with timestamps of records, so by the clock of the wall.
        oldest = wall_ms() - max_transaction_timeout_ms - _MARGIN_MS
        partitions = await self._partitions_of(broker, names, deadline)
        # A leader that does not answer must leave time to ask the coordinators about
        # the transactions of the others.
        early = now() + _SHARE * (deadline - now())
        results = await self._producers(partitions, early)
        candidates = [
            (tp, producer)
            for tp, producers in results.found.items()
            for producer in producers
            if producer.transaction_start_offset is not None
            and producer.last_timestamp < oldest
        ]
        found: list[HangingTransaction] = []
        if candidates:
            found = await self._hanging_of(candidates, deadline)
        # Only now: what hangs elsewhere is in the results of the error.
        if results.failed:
            by_partition = Results[TopicPartition, list[HangingTransaction]]()
            by_partition.failed = dict(results.failed)
            for each in found:
                by_partition.found.setdefault(each.partition, []).append(each)
            _raise_failed("find hanging transactions", by_partition)
        return found

    async def abort_transaction(
        self,
        partition: TopicPartition,
        start_offset: int,
        *,
        force: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Abort a hanging transaction in one partition, so that readers go on.

        It writes a marker that the coordinator does not know about. A transaction that
        does not hang would be aborted in this partition and committed in all others.
        Therefore the coordinators are asked first, and the call is refused if one of
        them still has the transaction. They leave out ids that the client may not
        describe. It needs the right to alter the cluster, and Kafka 3.0, or 2.8 with
        ``force``.

        A transaction that hangs may have been committed. Kafka 4.3.1 drops the marker
        of a partition without a leader and completes the transaction; then the records
        that hang are committed, and an abort loses them. The call is also refused if
        the last transaction of the producer was committed. Once the producer has begun
        another transaction, the brokers cannot tell: look at the records first.

        Args:
            partition: where it is open, as `find_hanging_transactions` returns it.
            start_offset: its first offset.
            force: whether to abort without asking the coordinators.
            timeout: seconds.

        Raises:
            UsageError: no open transaction begins there, or its coordinator still has
                it: `fence_producers` aborts such a transaction as a whole. Or it may be
                committed.
            UnsupportedVersion: a broker is too old to be asked.
            AuthorizationError: the client may not alter the cluster.
            BrokerError: the leader refused the marker; TRANSACTION_COORDINATOR_FENCED
                if another was written meanwhile.
            RequestTimeout: the leader did not answer in time; it may be aborted.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        tp = partition_of(partition)
        described = (await self._producers([tp], deadline)).or_raise()
        name = f"{tp.topic}-{tp.partition}"
        # The first offset names the transaction: a producer id may have begun another
        # one since the caller found it.
        found = [
            producer
            for producer in described[tp]
            if producer.transaction_start_offset == start_offset
        ]
        if not found:
            raise UsageError(
                f"{name} has no open transaction that begins at offset {start_offset}"
            )
        producer = found[0]
        if not force:
            await self._check_hanging(tp, producer, deadline)
        operation: Operation[TopicPartition, None, messages.WriteTxnMarkersResponse] = (
            Operation(
                what="abort the transaction in",
                request=messages.WriteTxnMarkersRequest,
                destination=Leader,
                build=lambda items, _: _abort_marker(items[0], producer),
                read=_read_markers,
                max_version=_MARKERS_VERSION,
            )
        )
        (await ask(self._cluster, operation, [tp], deadline, "2.7")).or_raise()

    async def fence_producers(
        self,
        ids: Iterable[str],
        *,
        timeout: float | None = None,
    ) -> dict[str, ProducerIdAndEpoch]:
        """Fence the producers of transactional ids, and abort their open transactions.

        Each id gets a new epoch, as if another producer had started with it: the next
        request of the present producer fails as ``Fenced``. When the call returns, its
        open transaction has been aborted. An unknown id is created.

        The call's timeout becomes the transaction timeout of the ids, until a producer
        starts with them: brokers refuse one above ``transaction.max.timeout.ms``.

        Args:
            ids: transactional ids.
            timeout: seconds.

        Returns:
            The new identities by id, in the order of ``ids``.

        Raises:
            AuthorizationError: the client may not write with an id.
            BrokerError: a coordinator refused for another reason.
            RequestTimeout: a coordinator did not answer in time, or could not abort
                the transaction in time; it may still.
            AdminErrors: several ids failed.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        wanted = _ids(ids)
        # The coordinator applies the transaction timeout to its own write, so that a
        # very short one could not be met (KAFKA-16047).
        timeout_ms = max(1, int((deadline - now()) * 1000))

        def read(
            response: messages.InitProducerIdResponse, items: Sequence[str]
        ) -> Iterator[Answer[str, ProducerIdAndEpoch]]:
            identity = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
            yield Answer(items[0], identity, response.error_code)

        operation: Operation[
            str, ProducerIdAndEpoch, messages.InitProducerIdResponse
        ] = Operation(
            what="fence the producer of",
            request=messages.InitProducerIdRequest,
            destination=TransactionCoordinator,
            build=lambda items, _: messages.InitProducerIdRequest(
                transactional_id=items[0], transaction_timeout_ms=timeout_ms
            ),
            read=read,
            name=repr,
            batch=lambda _: 1,  # InitProducerId has one transactional id
        )
        results = await ask(self._cluster, operation, wanted, deadline, "0.11")
        return outcome("fence the producers", wanted, results)

    async def force_terminate_transaction(
        self,
        transactional_id: str,
        *,
        timeout: float | None = None,
    ) -> None:
        """Abort the open transaction of one transactional id, and fence its producer.

        It is `fence_producers` for one id. It also ends a transaction of a two-phase
        commit, which has no timeout (KIP-939).

        Args:
            transactional_id: the id.
            timeout: seconds.

        Raises:
            KafkaError: as in `fence_producers`.
        """
        await self.fence_producers([transactional_id], timeout=timeout)

    async def _listed_transactions(
        self, request: messages.ListTransactionsRequest, deadline: float
    ) -> list[TransactionListing]:
        """Ask every broker for the transactional ids that it coordinates.

        Args:
            request: the filters.
            deadline: the time of the loop's clock at which to give up.

        Raises:
            ArgumentValueError: the brokers do not know a state.
            UnsupportedVersion: a broker knows no version that has the filters.
            KafkaError: a broker did not answer, or refused.
        """
        since = "3.0"
        if request.transactional_id_pattern is not None:
            since = _PATTERN_FROM[1]
        elif request.duration_filter >= 0:
            since = _DURATION_FROM[1]
        operation: Operation[
            int, list[TransactionListing], messages.ListTransactionsResponse
        ] = Operation(
            what="list the transactions of broker",
            request=messages.ListTransactionsRequest,
            destination=Broker,
            build=lambda _, terms: _checked(request, terms.version),
            read=_read_listing,
        )
        nodes = await all_brokers(self._cluster, deadline)
        results = await ask(self._cluster, operation, nodes, deadline, since)
        _raise_failed("list transactions", results)
        return sorted(
            (each for listed in results.found.values() for each in listed),
            key=lambda each: each.transactional_id,
        )

    async def _described_transactions(
        self, transactional_ids: Iterable[str], deadline: float
    ) -> Results[str, TransactionDescription]:
        """Describe transactional ids by their coordinators."""
        asked: dict[str, int] = {}

        def build(
            items: Sequence[str], terms: Terms
        ) -> messages.DescribeTransactionsRequest:
            asked.update(dict.fromkeys(items, terms.node_id))
            return messages.DescribeTransactionsRequest(transactional_ids=list(items))

        def read(
            response: messages.DescribeTransactionsResponse, items: object
        ) -> Iterator[Answer[str, TransactionDescription]]:
            del items
            for it in response.transaction_states:
                described = _description(it, asked.get(it.transactional_id, -1))
                yield Answer(it.transactional_id, described, it.error_code)

        operation: Operation[
            str, TransactionDescription, messages.DescribeTransactionsResponse
        ] = Operation(
            what="describe the transaction of",
            request=messages.DescribeTransactionsRequest,
            destination=TransactionCoordinator,
            build=build,
            read=read,
            name=repr,
        )
        return await ask(self._cluster, operation, transactional_ids, deadline, "3.0")

    async def _owners(
        self, producer_ids: Collection[int], deadline: float
    ) -> dict[int, TransactionDescription]:
        """Return the descriptions by producer id; unknown producer ids are left out."""
        request = messages.ListTransactionsRequest(
            producer_id_filters=sorted(producer_ids)
        )
        listed = await self._listed_transactions(request, deadline)
        results = await self._described_transactions(
            [each.transactional_id for each in listed], deadline
        )
        for transactional_id, error in list(results.failed.items()):
            if _is_unknown_id(error):
                # The transactional id expired after it was listed.
                del results.failed[transactional_id]
        found = results.or_raise()
        return {each.producer_id: each for each in found.values()}

    async def _producers(
        self,
        partitions: Iterable[TopicPartition],
        deadline: float,
        broker: int | None = None,
    ) -> Results[TopicPartition, tuple[ProducerState, ...]]:
        """Describe the producers of partitions by their leaders, or by a broker."""
        operation: Operation[
            TopicPartition,
            tuple[ProducerState, ...],
            messages.DescribeProducersResponse,
        ] = Operation(
            what="describe the producers of",
            request=messages.DescribeProducersRequest,
            destination=Leader if broker is None else lambda _: Broker(broker),
            build=_ask_for_producers,
            read=_read_producers,
            react=None if broker is None else _NO_REPLICA,
        )
        need_brokers(self._cluster, "describe producers")
        wanted = list(partitions)
        # To look for the leader of a topic that does not exist could create the topic.
        missing = await self._cluster.missing_partitions(wanted, deadline - now())
        there = [tp for tp in wanted if tp not in missing]
        results = await ask(self._cluster, operation, there, deadline, "2.8")
        results.failed |= missing
        return results

    async def _hanging_of(
        self,
        candidates: Sequence[tuple[TopicPartition, ProducerState]],
        deadline: float,
    ) -> list[HangingTransaction]:
        """Return the candidates that no coordinator has as open."""
        ids = {producer.producer_id for _, producer in candidates}
        owners = await self._owners(ids, deadline)
        found = [
            _hanging(tp, producer, owners.get(producer.producer_id))
            for tp, producer in candidates
            if not _has(owners.get(producer.producer_id), tp)
        ]
        return await self._still_open(found, deadline)

    async def _still_open(
        self, found: Sequence[HangingTransaction], deadline: float
    ) -> list[HangingTransaction]:
        # Race: a transaction may end after its leader was asked and before its
        # coordinator is. It then looks as if it hung. The leader decides, asked again.
        partitions = dict.fromkeys(each.partition for each in found)
        described = (await self._producers(partitions, deadline)).or_raise()
        return [
            each
            for each in found
            if any(
                (producer.producer_id, producer.transaction_start_offset)
                == (each.producer_id, each.start_offset)
                for producer in described[each.partition]
            )
        ]

    async def _partitions_of(
        self, broker: int | None, topics: Collection[str] | None, deadline: float
    ) -> list[TopicPartition]:
        if topics is None:
            request = messages.MetadataRequest(
                topics=None, allow_auto_topic_creation=False
            )
            answer = await self._cluster.request(request, ANY, timeout=deadline - now())
            topics = [topic.name for topic in answer.topics if topic.name]
        view = await self._cluster.wait_for_topics(topics, deadline - now())
        found = [
            TopicPartition(topic, number)
            for topic in topics
            for number in range(view.partition_count(topic) or 0)
        ]
        return [tp for tp in found if broker is None or view.leader(tp) == broker]

    async def _check_hanging(
        self, partition: TopicPartition, producer: ProducerState, deadline: float
    ) -> None:
        try:
            owners = await self._owners([producer.producer_id], deadline)
        except UnsupportedVersion as error:
            raise UnsupportedVersion(
                "whether the coordinator still has the transaction cannot be asked of "
                f"brokers before Kafka 3.0: force=True aborts it all the same ({error})"
            ) from error
        owner = owners.get(producer.producer_id)
        if owner is None:
            return
        is_its_own = _has(owner, partition)
        if not is_its_own and _may_have_committed(owner, producer):
            raise UsageError(
                f"the transaction in {partition.topic}-{partition.partition} may be "
                f"committed: its coordinator, broker {owner.coordinator}, has committed"
                f" the last one of {owner.transactional_id!r} ({owner.state}). Either "
                "a record was written after the end, or the broker has lost the marker"
                " of this partition, as Kafka 4.3.1 does while a partition has no "
                "leader. Then an abort would drop committed records. force=True aborts"
                " all the same"
            )
        if not is_its_own:
            return
        raise UsageError(
            f"the transaction in {partition.topic}-{partition.partition} does not hang:"
            f" its coordinator, broker {owner.coordinator}, has it as "
            f"{owner.transactional_id!r} in state {owner.state}, and would still end it"
            " in its other partitions; to abort all of it, use "
            f"fence_producers([{owner.transactional_id!r}]); force=True aborts it in "
            "this partition alone"
        )


def _checked(
    request: messages.ListTransactionsRequest, version: int
) -> messages.ListTransactionsRequest:
    least, filters = 0, "no filter"
    if request.transactional_id_pattern is not None:
        least, filters = _PATTERN_FROM[0], "pattern"
    elif request.duration_filter >= 0:
        least, filters = _DURATION_FROM[0], "duration_ms"
    if version < least:
        raise UnsupportedVersion(
            f"{filters} needs version {least} of the request, the broker knows "
            f"{version}"
        )
    return request


def _read_listing(
    response: messages.ListTransactionsResponse, items: Sequence[int]
) -> Iterator[Answer[int, list[TransactionListing]]]:
    # A broker passes over states that it does not know, and answers with the others. A
    # misspelled state must not look like a cluster without such transactions.
    if response.unknown_state_filters:
        unknown = ", ".join(response.unknown_state_filters)
        raise ArgumentValueError(f"states: the brokers do not know {unknown}")
    (node_id,) = items
    listed = [
        TransactionListing(
            it.transactional_id,
            it.producer_id,
            TransactionState(it.transaction_state),
            node_id,
        )
        for it in response.transaction_states
    ]
    yield Answer(node_id, listed, response.error_code)


def _description(
    state: messages.DescribeTransactionsResponseTransactionState, coordinator: int
) -> TransactionDescription:
    how_far = TransactionState(state.transaction_state)
    # Brokers also tell the start of the last transaction when it has ended.
    begun = state.transaction_start_time_ms if how_far.is_open else -1
    return TransactionDescription(
        transactional_id=state.transactional_id,
        coordinator=coordinator,
        state=how_far,
        producer_id=state.producer_id,
        producer_epoch=state.producer_epoch,
        timeout_ms=state.transaction_timeout_ms,
        start_time_ms=begun if begun >= 0 else None,
        partitions=frozenset(
            TopicPartition(topic.topic, number)
            for topic in state.topics
            for number in topic.partitions
        ),
    )


def _is_unknown_id(error: KafkaError) -> bool:
    if not isinstance(error, BrokerError):
        return False
    return error.code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def _ask_for_producers(
    items: Sequence[TopicPartition], terms: Terms
) -> messages.DescribeProducersRequest:
    del terms
    numbers: dict[str, list[int]] = defaultdict(list)
    for tp in items:
        numbers[tp.topic].append(tp.partition)
    return messages.DescribeProducersRequest(
        topics=[
            messages.DescribeProducersRequestTopicRequest(
                name=topic, partition_indexes=indexes
            )
            for topic, indexes in numbers.items()
        ]
    )


def _read_producers(
    response: messages.DescribeProducersResponse, items: object
) -> Iterator[Answer[TopicPartition, tuple[ProducerState, ...]]]:
    del items
    for topic in response.topics:
        for it in topic.partitions:
            tp = TopicPartition(topic.name, it.partition_index)
            states = tuple(_producer_state(each) for each in it.active_producers)
            yield Answer(tp, states, it.error_code, it.error_message)


def _producer_state(state: messages.ProducerState) -> ProducerState:
    epoch, start = state.coordinator_epoch, state.current_txn_start_offset
    return ProducerState(
        producer_id=state.producer_id,
        producer_epoch=state.producer_epoch,
        last_sequence=state.last_sequence,
        last_timestamp=state.last_timestamp,
        coordinator_epoch=epoch if epoch >= 0 else None,
        transaction_start_offset=start if start >= 0 else None,
    )


def _has(owner: TransactionDescription | None, tp: TopicPartition) -> bool:
    """Whether a coordinator has a transaction open in a partition, and will end it."""
    return owner is not None and owner.state.is_open and tp in owner.partitions


def _may_have_committed(owner: TransactionDescription, producer: ProducerState) -> bool:
    """Whether an open transaction may be part of the one that was committed."""
    # With KIP-890 the end of a transaction raises the epoch by one.
    return owner.state in _COMMITTED and owner.producer_epoch in {
        producer.producer_epoch,
        producer.producer_epoch + 1,
    }


def _raise_failed(what: str, results: Results[ItemT, ValueT]) -> None:
    """Raise the errors of the items that failed, with the results of the others."""
    # An argument that the brokers do not know is one error of the call, and not an
    # AdminErrors with the same error of each broker.
    for error in results.failed.values():
        if isinstance(error, UsageError):
            raise error
    if results.failed:
        outcome(what, [*results.found, *results.failed], results)


def _hanging(
    tp: TopicPartition, producer: ProducerState, owner: TransactionDescription | None
) -> HangingTransaction:
    assert producer.transaction_start_offset is not None
    return HangingTransaction(
        partition=tp,
        start_offset=producer.transaction_start_offset,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        last_timestamp=producer.last_timestamp,
        transactional_id=None if owner is None else owner.transactional_id,
    )


def _abort_marker(
    tp: TopicPartition, producer: ProducerState
) -> messages.WriteTxnMarkersRequest:
    epoch = producer.coordinator_epoch
    topic = messages.WritableTxnMarkerTopic(
        name=tp.topic, partition_indexes=[tp.partition]
    )
    marker = messages.WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        transaction_result=False,
        topics=[topic],
        # The leader refuses an epoch older than that of its last marker, so as not to
        # take one from a coordinator that was replaced.
        coordinator_epoch=_FIRST_EPOCH if epoch is None else epoch,
    )
    return messages.WriteTxnMarkersRequest(markers=[marker])


def _read_markers(
    response: messages.WriteTxnMarkersResponse, items: object
) -> Iterator[Answer[TopicPartition, None]]:
    del items
    for marker in response.markers:
        for topic in marker.topics:
            for it in topic.partitions:
                tp = TopicPartition(topic.name, it.partition_index)
                yield Answer(tp, None, it.error_code)


def _ids(ids: Iterable[str]) -> list[str]:
    if isinstance(ids, str):
        raise ArgumentTypeError("ids must be several transactional ids, not one string")
    found = list(dict.fromkeys(ids))
    for each in found:
        if not isinstance(each, str):
            raise ArgumentTypeError(f"a transactional id must be a string: {each!r}")
        if not each:
            raise ArgumentValueError("a transactional id must not be empty")
    return found
