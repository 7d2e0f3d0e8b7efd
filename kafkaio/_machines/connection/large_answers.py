"""Large answers, which are decoded in slices.

A small answer is decoded as soon as it comes. A large one is decoded in slices of some
milliseconds, so that the event loop is not blocked, and within bounds of memory: the
broker determines the content, and five bytes can become an object of a hundred. Later
answers wait behind a large one, because answers keep their order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from typing import Final

from kafkaio._machines.bounds import check_in_slices
from kafkaio._machines.connection.pipeline import AnyTicket
from kafkaio.errors import ProtocolError
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._headers import decode_response_in_slices
from kafkaio.protocol._message import Buffer, Response

#: A longer answer is decoded in slices. The densest one of this size takes 15 ms.
LARGE_ANSWER: Final = 65_536
#: An answer may fill so many times the memory of its bytes on the wire. The metadata of
#: real clusters fill up to 19 times as much, if each partition has one replica.
_FACTOR: Final = 19
#: Any answer may fill so much: an honest small answer can have a dense part.
_SMALL: Final = 262_144
#: All answers may fill so many times `max_control_response_size`: 96 MiB by default, or
#: 100,000 partitions in as many topics. More objects make each full garbage collection
#: take longer than 100 ms.
_CEILING: Final = 6
#: Most of their bytes are records, which are not decoded here.
_WITH_RECORDS: Final = frozenset({ApiKey.FETCH, ApiKey.SHARE_FETCH})


class LargeAnswers:
    """Answers with their tickets, oldest first.

    Args:
        max_control: the largest answer that does not carry records, in bytes.

    Attributes:
        size: the bytes of the answers that wait.
    """

    __slots__ = ("_answers", "_decoder", "_max_control", "size")

    def __init__(self, max_control: int) -> None:
        self._max_control = max_control
        self._answers: deque[tuple[AnyTicket, Buffer]] = deque()
        # Decodes the oldest answer, once that has begun.
        self._decoder: Generator[None, None, Response] | None = None
        self.size = 0

    def __len__(self) -> int:
        """How many answers wait."""
        return len(self._answers)

    @property
    def oldest(self) -> AnyTicket:
        """The ticket of the answer that is decoded next."""
        return self._answers[0][0]

    def check(self, ticket: AnyTicket, size: int) -> None:
        """Check the size of an answer before it is received.

        Raises:
            ProtocolError: it is larger than the option allows.
        """
        if size <= self._max_control or _has_records(ticket):
            return
        raise ProtocolError(
            f"the answer has {size} bytes; max_control_response_size allows "
            f"{self._max_control}"
        )

    def add(self, ticket: AnyTicket, frame: Buffer) -> None:
        """Take an answer."""
        self._answers.append((ticket, frame))
        self.size += len(frame)

    def decode(self) -> tuple[AnyTicket, Response, int] | None:
        """Decode one slice of the oldest answer.

        Returns:
            If that was the last slice: its ticket, the answer, and its size in bytes.

        Raises:
            ProtocolError: it cannot be decoded, or has an impossible number; it stays
                the oldest.
        """
        ticket, frame = self._answers[0]
        if self._decoder is None:
            limit = min(_SMALL + _FACTOR * len(frame), _CEILING * self._max_control)
            self._decoder = _read(ticket, frame, limit)
        try:
            next(self._decoder)
        except StopIteration as end:
            self._decoder = None
            self._answers.popleft()
            self.size -= len(frame)
            response: Response = end.value
            return ticket, response, len(frame)
        return None

    def clear(self) -> list[AnyTicket]:
        """Forget everything. Returns the tickets."""
        tickets = [ticket for ticket, _ in self._answers]
        self._answers.clear()
        self._decoder = None
        self.size = 0
        return tickets


def _read(
    ticket: AnyTicket, frame: Buffer, max_memory: int
) -> Generator[None, None, Response]:
    """Decode an answer, and check its numbers, in slices."""
    response = yield from decode_response_in_slices(
        ticket.kind.response_type, ticket.kind.version, frame, max_memory=max_memory
    )
    yield from check_in_slices(response)
    return response


def _has_records(ticket: AnyTicket) -> bool:
    return ticket.kind.response_type.API_KEY in _WITH_RECORDS
