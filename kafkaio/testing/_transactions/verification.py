"""A leader verifies the first batch of a transaction in a partition (KIP-890).

For a producer of the older protocol it asks the coordinator whether the partition is
in the transaction. For one of the newer protocol it adds the partition there; while the
transaction before is still being ended, it tries again for a short time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from kafkaio._named_tuple import NamedTuple
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing._broker.cluster import EmbeddedCluster
from kafkaio.testing._broker.partition import EmbeddedPartition
from kafkaio.testing._broker.producers import ProducerBatch
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._transactions.coordinator import coordinator_of
from kafkaio.testing._transactions.transaction import BUMPING, TopicPartition

#: Kafka's configs for the pause between two tries and for all tries together, and
#: their defaults in milliseconds.
_PAUSE: Final = ("add.partitions.to.txn.retry.backoff.ms", 20)
_LONGEST: Final = ("add.partitions.to.txn.retry.backoff.max.ms", 100)
_UNREACHED: Final = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


class Speaker(NamedTuple):
    """The producer that sent a request.

    Attributes:
        transactional_id: its transactional id.
        bumps: whether it speaks the newer protocol.
        is_told_to_abort: whether its version of the API has TRANSACTION_ABORTABLE;
            else INVALID_TXN_STATE stands for it.
    """

    transactional_id: str
    bumps: bool
    is_told_to_abort: bool


async def admit(
    cluster: EmbeddedCluster,
    speaker: Speaker,
    batches: Sequence[tuple[EmbeddedPartition, ProducerBatch]],
) -> dict[TopicPartition, Refusal]:
    """Verify or add the partitions of a Produce request.

    Args:
        cluster: the cluster.
        speaker: the producer.
        batches: the transactional batches, and the partitions that they are for.

    Returns:
        The partitions whose batch must not be appended, and why.
    """
    refused: dict[TopicPartition, Refusal] = {}
    asked: dict[tuple[int, int], list[TopicPartition]] = {}
    if not speaker.bumps and not cluster.verifies_transactions:
        return refused
    is_from_zero = speaker.bumps and cluster.rules.checks_first_sequence
    for partition, batch in batches:
        place = (partition.topic, partition.index)
        partition.open()
        try:
            if partition.producers.begin_verification(batch, is_from_zero=is_from_zero):
                asked.setdefault((batch.producer_id, batch.epoch), []).append(place)
        except Refusal as refusal:
            refused[place] = refusal
    for producer, places in asked.items():
        codes = await _ask_patiently(cluster, speaker, producer, places)
        refused |= {place: Refusal(code) for place, code in codes.items() if code}
    return refused


async def _ask_patiently(
    cluster: EmbeddedCluster,
    speaker: Speaker,
    producer: tuple[int, int],
    places: Sequence[TopicPartition],
) -> dict[TopicPartition, ErrorCode]:
    def seconds(config: tuple[str, int]) -> float:
        name, default = config
        return int(cluster.configs.in_force(name) or default) / 1000

    pause, left = seconds(_PAUSE), seconds(_LONGEST)
    coordinator = coordinator_of(cluster)
    while True:
        codes = ask(cluster, speaker, producer, places)
        if speaker.bumps and not any(codes.values()):
            if not coordinator.is_writing(speaker.transactional_id):
                return codes
            # They are asked for again, since the transaction may end meanwhile.
            await coordinator.written(speaker.transactional_id)
            continue
        # The markers of the transaction before are still being written. The leader
        # waits a moment for them, so that a quick producer sees no error.
        is_late = ErrorCode.CONCURRENT_TRANSACTIONS in codes.values()
        if not (speaker.bumps and is_late) or left <= 0:
            return codes
        await asyncio.sleep(pause)
        left -= pause


def ask(
    cluster: EmbeddedCluster,
    speaker: Speaker,
    producer: tuple[int, int],
    places: Sequence[TopicPartition],
) -> dict[TopicPartition, ErrorCode]:
    """Ask the coordinator once; return the error codes for the producer."""
    coordinator = coordinator_of(cluster)
    name = speaker.transactional_id
    code = coordinator.reach(name)
    if not code and speaker.bumps:
        code = coordinator.add(name, producer, places, BUMPING)
    if code or speaker.bumps:
        return dict.fromkeys(places, _told(code, speaker))
    return {
        place: _told(coordinator.verify(name, producer, place), speaker)
        for place in places
    }


def _told(code: ErrorCode, speaker: Speaker) -> ErrorCode:
    """The error code for the producer that stands for the coordinator's."""
    if code == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code == ErrorCode.TRANSACTION_ABORTABLE and not speaker.is_told_to_abort:
        return ErrorCode.INVALID_TXN_STATE
    # Older clients know how to repeat a batch after this error, and not after these.
    if code in _UNREACHED:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    if code == ErrorCode.CONCURRENT_TRANSACTIONS and not speaker.bumps:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return code
