"""The sizes and times that bound what an accumulator does."""

from __future__ import annotations

from kafkaio._dataclass import dataclass

#: Part of the delivery timeout for which a batch takes records.
_OPEN_SHARE = 0.1
#: Bytes of a request that are far from what a broker accepts by default (100 MiB,
#: ``socket.request.max.bytes``).
_LARGEST_REQUEST = 33_554_432


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Sizes in bytes and times in seconds.

    Attributes:
        batch_size: size of the largest batch that is filled.
        buffer_memory: size of all records together.
        max_request_size: size of the largest batch, and so of the largest record; and
            of the largest request with several batches, unless requests may grow.
        may_grow: whether requests with several batches may become larger.
        linger: longest wait of a batch for more records.
        delivery_timeout: longest time from a record's append to its acknowledgement.
        max_block: longest wait for a topic's metadata.
        max_in_flight: requests to one broker that may wait for an answer.
        availability_timeout: time for which a broker may accept no batch before records
            without a key avoid it; 0 for no limit.
        stalled_percent: the part of ``buffer_memory`` that partitions without progress
            may take, in percent.
    """

    batch_size: int = 1_000_000
    buffer_memory: int = 33_554_432
    max_request_size: int = 1_048_576
    may_grow: bool = False
    linger: float = 0.005
    delivery_timeout: float = 120.0
    max_block: float = 60.0
    max_in_flight: int = 5
    availability_timeout: float = 0.0
    stalled_percent: int = 50

    @property
    def grown_request_size(self) -> int:
        """Bytes of the largest request with several batches, however far the broker.

        With as many in flight as there may be, the buffer is full.
        """
        if not self.may_grow:
            return self.max_request_size
        return min(self.buffer_memory // self.max_in_flight, _LARGEST_REQUEST)

    @property
    def open_for(self) -> float:
        """How long a batch takes records while it cannot be sent.

        The delivery timeout of a batch runs from its first record. So this is the most
        that a later record can lose of it.
        """
        return max(self.linger, self.delivery_timeout * _OPEN_SHARE)

    @property
    def reserved_memory(self) -> int:
        """Bytes that only partitions which hold little may take."""
        return 0 if self.stalled_percent == 100 else self.buffer_memory // 8

    @property
    def stalled_memory(self) -> int:
        """Bytes that partitions without progress may take, all together."""
        return self.buffer_memory * self.stalled_percent // 100
