"""The operations of `kafkaio.Admin` on transactions (KIP-664, KIP-939).

A transaction is known in two places. Its coordinator knows the transactional id, the
state and the partitions. The leader of each partition knows which producer has an open
transaction there, and where it begins. A transaction *hangs* if it is open at a leader
and its coordinator does not have it, or has it without that partition: no marker will
ever be written, and readers with ``read_committed`` wait there for good. Brokers before
3.6 let that happen when a write arrives after the end of its transaction.

What is aborted here is a partition's part of a transaction, by a marker that no
coordinator knows of. That is right for a late write. For a transaction that does not
hang the rest would still be committed, which is why `Transactions.abort` looks first.

There is another way to hang, and an abort is wrong for it: the marker was lost. Kafka
4.3.1 drops the marker of a partition that has no leader, and calls the transaction
complete. If it was committed, the records that hang there are committed ones.
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

from kafkaio._client.destinations import (
    ANY,
    Broker,
    Leader,
    TransactionCoordinator,
)
from kafkaio._client.fanout import Answer, Operation, Results, Terms
from kafkaio._runtime.clock import now, wall_ms
from kafkaio.admin._asking import (
    AdminCluster,
    ask,
    brokers,
    final_at,
    need_brokers,
    outcome,
)
from kafkaio.admin._types import (
    HangingTransaction,
    ProducerIdAndEpoch,
    ProducerState,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from kafkaio.errors import (
    ArgumentValueError,
    BrokerError,
    KafkaError,
    UnsupportedVersion,
    UsageError,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages import (
    describe_producers as producers_api,
    describe_transactions as transactions_api,
    write_txn_markers as markers_api,
)
from kafkaio.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kafkaio.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from kafkaio.protocol.messages.metadata import MetadataRequest
from kafkaio.types import TopicPartition

ItemT = TypeVar("ItemT", bound=Hashable)
ValueT = TypeVar("ValueT")

#: The versions of ListTransactions that know the filters, and Kafka's that know those.
_DURATION_FROM, _PATTERN_FROM = (1, "3.8"), (2, "4.1")
#: The part of the time that leaders get, before coordinators are asked.
_SHARE = 2 / 3
#: The version of WriteTxnMarkers whose rule is: the epoch must not be older.
_MARKERS_VERSION = 1
#: The last transaction of the producer was, or is being, committed.
_COMMITTED = frozenset(
    {TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT}
)
#: Milliseconds that a transaction may be older than the longest time-out: it is aborted
#: by a task of the coordinator that runs now and then.
_MARGIN_MS = 300_000
#: What a broker that was asked for by its id says of a partition that it does not have.
_NO_REPLICA = final_at(
    ApiKey.DESCRIBE_PRODUCERS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)
#: The coordinator epoch to send where no marker was ever written.
_FIRST_EPOCH = 0


class Transactions:
    """The operations on transactions, each within a number of seconds.

    Args:
        cluster: performs them.
    """

    def __init__(self, cluster: AdminCluster) -> None:
        self._cluster = cluster

    # ---- what coordinators know ------------------------------------------------------

    async def listed(
        self, request: ListTransactionsRequest, deadline: float
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
            int, list[TransactionListing], ListTransactionsResponse
        ] = Operation(
            what="list the transactions of broker",
            request=ListTransactionsRequest,
            destination=Broker,
            build=lambda _, terms: _checked(request, terms.version),
            read=_read_listing,
        )
        results = await ask(
            self._cluster,
            operation,
            await brokers(self._cluster, deadline),
            deadline,
            since,
        )
        _raise_failed("list transactions", results)
        return sorted(
            (each for listed in results.found.values() for each in listed),
            key=lambda each: each.transactional_id,
        )

    async def described(
        self, transactional_ids: Iterable[str], deadline: float
    ) -> Results[str, TransactionDescription]:
        """Ask the coordinators what they know of transactional ids."""
        asked: dict[str, int] = {}

        def build(
            items: Sequence[str], terms: Terms
        ) -> transactions_api.DescribeTransactionsRequest:
            asked.update(dict.fromkeys(items, terms.node_id))
            return transactions_api.DescribeTransactionsRequest(
                transactional_ids=list(items)
            )

        def read(
            response: transactions_api.DescribeTransactionsResponse, items: object
        ) -> Iterator[Answer[str, TransactionDescription]]:
            del items
            for it in response.transaction_states:
                described = _description(it, asked.get(it.transactional_id, -1))
                yield Answer(it.transactional_id, described, it.error_code)

        operation: Operation[
            str, TransactionDescription, transactions_api.DescribeTransactionsResponse
        ] = Operation(
            what="describe the transaction of",
            request=transactions_api.DescribeTransactionsRequest,
            destination=TransactionCoordinator,
            build=build,
            read=read,
            name=repr,
        )
        return await ask(self._cluster, operation, transactional_ids, deadline, "3.0")

    async def _owners(
        self, producer_ids: Collection[int], deadline: float
    ) -> dict[int, TransactionDescription]:
        """What coordinators know of producer ids; one that none knows is left out."""
        request = ListTransactionsRequest(producer_id_filters=sorted(producer_ids))
        listed = await self.listed(request, deadline)
        results = await self.described(
            [each.transactional_id for each in listed], deadline
        )
        for transactional_id, error in list(results.failed.items()):
            if _is_unknown_id(error):  # it has expired since
                del results.failed[transactional_id]
        found = results.or_raise()
        return {each.producer_id: each for each in found.values()}

    # ---- what leaders know -----------------------------------------------------------

    async def producers(
        self,
        partitions: Iterable[TopicPartition],
        deadline: float,
        broker: int | None = None,
    ) -> Results[TopicPartition, tuple[ProducerState, ...]]:
        """Ask the leaders of partitions, or a broker, which producers they remember."""
        operation: Operation[
            TopicPartition,
            tuple[ProducerState, ...],
            producers_api.DescribeProducersResponse,
        ] = Operation(
            what="describe the producers of",
            request=producers_api.DescribeProducersRequest,
            destination=Leader if broker is None else lambda _: Broker(broker),
            build=_ask_for_producers,
            read=_read_producers,
            # A broker that has no replica now is not asked again.
            react=None if broker is None else _NO_REPLICA,
        )
        need_brokers(self._cluster, "describe producers")
        wanted = list(partitions)
        # To route to a leader of a topic that does not exist would create the topic.
        missing = await self._cluster.missing_partitions(wanted, deadline - now())
        there = [tp for tp in wanted if tp not in missing]
        results = await ask(self._cluster, operation, there, deadline, "2.8")
        results.failed |= missing
        return results

    async def hanging(
        self,
        broker: int | None,
        topics: Collection[str] | None,
        max_transaction_timeout_ms: int,
        deadline: float,
    ) -> list[HangingTransaction]:
        """Find transactions that hang, as `kafkaio.Admin` documents it."""
        oldest = wall_ms() - max_transaction_timeout_ms - _MARGIN_MS
        partitions = await self._partitions(broker, topics, deadline)
        # A leader that does not answer leaves time for the others' transactions.
        early = now() + _SHARE * (deadline - now())
        results = await self.producers(partitions, early)
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
        if results.failed:
            by_partition = Results[TopicPartition, list[HangingTransaction]]()
            by_partition.failed = dict(results.failed)
            for each in found:
                by_partition.found.setdefault(each.partition, []).append(each)
            _raise_failed("find hanging transactions", by_partition)
        return found

    async def _hanging_of(
        self,
        candidates: Sequence[tuple[TopicPartition, ProducerState]],
        deadline: float,
    ) -> list[HangingTransaction]:
        """Those of the candidates that no coordinator knows as open."""
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
        # Leaders were asked before coordinators: one may have ended in between.
        partitions = dict.fromkeys(each.partition for each in found)
        described = (await self.producers(partitions, deadline)).or_raise()
        return [
            each
            for each in found
            if any(
                (producer.producer_id, producer.transaction_start_offset)
                == (each.producer_id, each.start_offset)
                for producer in described[each.partition]
            )
        ]

    async def _partitions(
        self, broker: int | None, topics: Collection[str] | None, deadline: float
    ) -> list[TopicPartition]:
        if topics is None:
            request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
            answer = await self._cluster.request(request, ANY, timeout=deadline - now())
            topics = [topic.name for topic in answer.topics if topic.name]
        view = await self._cluster.wait_for_topics(topics, deadline - now())
        found = [
            TopicPartition(topic, number)
            for topic in topics
            for number in range(view.partition_count(topic) or 0)
        ]
        return [tp for tp in found if broker is None or view.leader(tp) == broker]

    # ---- what is changed -------------------------------------------------------------

    async def abort(
        self,
        partition: TopicPartition,
        start_offset: int,
        deadline: float,
        *,
        force: bool,
    ) -> None:
        """Abort a transaction in one partition, as `kafkaio.Admin` documents it."""
        described = (await self.producers([partition], deadline)).or_raise()
        name = f"{partition.topic}-{partition.partition}"
        found = [
            producer
            for producer in described[partition]
            if producer.transaction_start_offset == start_offset
        ]
        if not found:
            raise UsageError(
                f"{name} has no open transaction that begins at offset {start_offset}"
            )
        producer = found[0]
        if not force:
            await self._check_hanging(partition, producer, deadline)
        operation: Operation[
            TopicPartition, None, markers_api.WriteTxnMarkersResponse
        ] = Operation(
            what="abort the transaction in",
            request=markers_api.WriteTxnMarkersRequest,
            destination=Leader,
            build=lambda items, _: _abort_marker(items[0], producer),
            read=_read_markers,
            max_version=_MARKERS_VERSION,
        )
        (await ask(self._cluster, operation, [partition], deadline, "2.7")).or_raise()

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

    async def fence(
        self, transactional_ids: Iterable[str], deadline: float
    ) -> Results[str, ProducerIdAndEpoch]:
        """Give transactional ids a new epoch, as `kafkaio.Admin` documents it."""
        # The coordinator takes the time-out of the transaction for its own write, so
        # it must not be as short as the producer would never want it (KAFKA-16047).
        timeout_ms = max(1, int((deadline - now()) * 1000))

        def read(
            response: InitProducerIdResponse, items: Sequence[str]
        ) -> Iterator[Answer[str, ProducerIdAndEpoch]]:
            identity = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
            yield Answer(items[0], identity, response.error_code)

        operation: Operation[str, ProducerIdAndEpoch, InitProducerIdResponse] = (
            Operation(
                what="fence the producer of",
                request=InitProducerIdRequest,
                destination=TransactionCoordinator,
                build=lambda items, _: InitProducerIdRequest(
                    transactional_id=items[0], transaction_timeout_ms=timeout_ms
                ),
                read=read,
                name=repr,
                batch=lambda _: 1,
            )
        )
        return await ask(self._cluster, operation, transactional_ids, deadline, "0.11")


def _checked(request: ListTransactionsRequest, version: int) -> ListTransactionsRequest:
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
    response: ListTransactionsResponse, items: Sequence[int]
) -> Iterator[Answer[int, list[TransactionListing]]]:
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
    state: transactions_api.TransactionState, coordinator: int
) -> TransactionDescription:
    how_far = TransactionState(state.transaction_state)
    # Brokers tell the start of the last one, too.
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
) -> producers_api.DescribeProducersRequest:
    del terms
    numbers: dict[str, list[int]] = defaultdict(list)
    for tp in items:
        numbers[tp.topic].append(tp.partition)
    return producers_api.DescribeProducersRequest(
        topics=[
            producers_api.TopicRequest(name=topic, partition_indexes=indexes)
            for topic, indexes in numbers.items()
        ]
    )


def _read_producers(
    response: producers_api.DescribeProducersResponse, items: object
) -> Iterator[Answer[TopicPartition, tuple[ProducerState, ...]]]:
    del items
    for topic in response.topics:
        for it in topic.partitions:
            tp = TopicPartition(topic.name, it.partition_index)
            states = tuple(_producer_state(each) for each in it.active_producers)
            yield Answer(tp, states, it.error_code, it.error_message)


def _producer_state(state: producers_api.ProducerState) -> ProducerState:
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
    """Whether a coordinator is going to end a transaction in a partition."""
    return owner is not None and owner.state.is_open and tp in owner.partitions


def _may_have_committed(owner: TransactionDescription, producer: ProducerState) -> bool:
    """Whether what a leader has open may be part of what a coordinator has committed.

    In the newer protocol the end of a transaction raises the epoch by one (KIP-890).
    """
    return owner.state in _COMMITTED and owner.producer_epoch in {
        producer.producer_epoch,
        producer.producer_epoch + 1,
    }


def _raise_failed(what: str, results: Results[ItemT, ValueT]) -> None:
    """Raise the errors of the items that failed, with the results of the others.

    A call that no broker can take is one error, whatever the number of brokers.
    """
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
) -> markers_api.WriteTxnMarkersRequest:
    epoch = producer.coordinator_epoch
    topic = markers_api.WritableTxnMarkerTopic(
        name=tp.topic, partition_indexes=[tp.partition]
    )
    marker = markers_api.WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        transaction_result=False,
        topics=[topic],
        # An older epoch than that of the last marker is refused.
        coordinator_epoch=_FIRST_EPOCH if epoch is None else epoch,
    )
    return markers_api.WriteTxnMarkersRequest(markers=[marker])


def _read_markers(
    response: markers_api.WriteTxnMarkersResponse, items: object
) -> Iterator[Answer[TopicPartition, None]]:
    del items
    for marker in response.markers:
        for topic in marker.topics:
            for it in topic.partitions:
                tp = TopicPartition(topic.name, it.partition_index)
                yield Answer(tp, None, it.error_code)
