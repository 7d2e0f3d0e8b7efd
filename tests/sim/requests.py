"""The laws of requests: what a transactional producer may send, and when.

- EndTxn never leaves while a batch of its transaction is on the wire, and never commits
  while a commit of offsets is.
- A transaction is not committed after the coordinator has refused to add to it.
- Offsets are committed by a member of the group, so that the coordinator can check it.
- There is one verdict for a transaction, but for the abort after a refused commit.
- In the older protocol, no batch leaves before its partition was added; and after an
  EndTxn without an answer the epoch changes before the next transaction.
- In the older protocol, where a write of an aborted transaction, or a commit of offsets
  of any, had no answer at its end, nothing is written under the next epoch before an
  abort has told the logs that epoch (ADR 20).
- InitProducerId with an identity never leaves while the transaction is open, or after
  the producer was told that it is fenced.
- Nothing is asked again and again, while the answer is "another transaction is being
  ended", for longer than that can take.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._headers import (
    decode_request,
    decode_response,
    peek_correlation_id,
)
from kafkaio.protocol._message import Request, Response
from kafkaio.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from kafkaio.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from kafkaio.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kafkaio.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kafkaio.protocol.messages.produce import ProduceRequest, ProduceResponse
from kafkaio.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from tests.sim.network import Wire

__all__ = ["Requests"]

_NAMES: Final[Mapping[int, str]] = {
    ApiKey.PRODUCE: "Produce",
    ApiKey.INIT_PRODUCER_ID: "InitProducerId",
    ApiKey.ADD_PARTITIONS_TO_TXN: "AddPartitionsToTxn",
    ApiKey.ADD_OFFSETS_TO_TXN: "AddOffsetsToTxn",
    ApiKey.TXN_OFFSET_COMMIT: "TxnOffsetCommit",
    ApiKey.END_TXN: "EndTxn",
}
_FENCED: Final = {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED}
#: Answers to a commit after which an abort may follow.
_REFUSED: Final = {
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.TRANSACTION_ABORTABLE,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    # Of an id that another life of the member has used up: nothing of it is open.
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
}
#: The first versions that mean the protocol with an epoch for each transaction.
_END_TV2: Final = 5
_PRODUCE_TV2: Final = 12
#: Seconds for which markers, and what keeps them, can make a request wait.
_LONGEST_WAIT: Final = 90.0

Identity = tuple[int, int]


@dataclass(slots=True)
class _Client:
    """What is known of one producer."""

    transactional_id: str = ""
    # Of the last request that belongs to a transaction.
    identity: Identity = (-1, -1)
    is_open: bool = False
    is_fenced: bool = False
    has_spoken_old: bool = False
    # Verdicts by identity: of TV2 for ever, of TV1 until answered.
    verdicts: dict[Identity, bool] = field(default_factory=dict)
    refused: set[Identity] = field(default_factory=set)
    ended: set[Identity] = field(default_factory=set)
    produced: dict[tuple[int, int], tuple[Wire, Identity]] = field(default_factory=dict)
    # Commits of offsets on the wire.
    offsets: dict[tuple[int, int], tuple[Wire, Identity]] = field(default_factory=dict)
    # Whether something was added; whether something was refused after that. (If all is
    # refused, the transaction ends without a request.)
    has_added: bool = False
    is_refused: bool = False
    # Of the older protocol: the partitions in the transaction, EndTxn without an
    # answer, and the identities under which no other transaction may begin.
    added: set[tuple[str, int]] = field(default_factory=set)
    ends: dict[tuple[int, int], Identity] = field(default_factory=dict)
    spent: set[Identity] = field(default_factory=set)
    # Batches without an answer, by partition and first sequence, and commits of
    # offsets; the identities of transactions of which something may still arrive; and
    # the one whose epoch the logs have to be told.
    unanswered: set[tuple[Identity, str, int, int]] = field(default_factory=set)
    lost: dict[tuple[int, int], Identity] = field(default_factory=dict)
    late: set[Identity] = field(default_factory=set)
    to_seal: Identity | None = None
    # InitProducerId without an answer.
    initialising: set[tuple[int, int]] = field(default_factory=set)
    # By API: when the first and the last of the answers came that say that another
    # transaction is being ended, and nothing else was said in between.
    busy: dict[str, tuple[float, float]] = field(default_factory=dict)

    def ends_now(self) -> None:
        """Note that its transaction has ended."""
        self.is_open = self.has_added = self.is_refused = False
        self.added.clear()
        # What the next one is told is of another transaction that is being ended.
        self.busy.clear()


class Requests:
    """Watches what producers send and receive.

    Args:
        clock: returns the time.
        violated: called with the name of a broken law, and the details.
        refused: called with a client when something may not be added to its
            transaction, which can only be aborted then.
        has_members: whether all offsets are those of members of groups.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        violated: Callable[[str, str], None],
        refused: Callable[[str], None],
        *,
        has_members: bool = True,
    ) -> None:
        self._clock = clock
        self._violated = violated
        self._refused = refused
        self._has_members = has_members
        self._clients: dict[str, _Client] = {}
        # Requests without an answer, by connection and correlation id.
        self._asked: dict[tuple[int, int], tuple[Request[Response], int]] = {}
        self._wires: dict[int, Wire] = {}

    def identity_of(self, client: str) -> tuple[str, Identity]:
        """Return a client's id, and the identity of what it has sent last."""
        found = self._clients.get(client, _Client())
        return found.transactional_id, found.identity

    def may_be_initialised_late(self, client: str) -> bool:
        """Whether an InitProducerId of a client's id has no answer.

        It may be served late, and fences whoever has the id by then.
        """
        found = self._clients.get(client, _Client())
        return any(
            one.initialising and one.transactional_id == found.transactional_id
            for one in self._clients.values()
        )

    def has_spoken_old(self, client: str) -> bool:
        """Whether a client has used the protocol in which a time-out fences."""
        found = self._clients.get(client)
        return found is not None and found.has_spoken_old

    def knows(self, transactional_id: str) -> bool:
        """Whether an id was used."""
        return any(
            one.transactional_id == transactional_id for one in self._clients.values()
        )

    # ---- requests ----------------------------------------------------------------

    def wrote(self, wire: Wire, frame: bytes) -> str:
        """Look at a request; return the name of its API, "" if it is not watched."""
        name = _NAMES.get(int.from_bytes(frame[:2], "big"), "")
        if not name:
            return ""
        header, request = decode_request(frame)
        self._clients.setdefault(wire.client, _Client())
        self._wires[id(wire)] = wire  # so that its id is not used again
        what = id(wire), header.correlation_id
        version = header.request_api_version
        if isinstance(request, ProduceRequest | InitProducerIdRequest) and (
            request.transactional_id is None
        ):
            return ""
        self._note(wire, what, request, version)
        self._asked[what] = request, version
        return name

    def _note(
        self,
        wire: Wire,
        what: tuple[int, int],
        request: Request[Response],
        version: int,
    ) -> None:
        client = self._clients[wire.client]
        match request:
            case ProduceRequest():
                client.is_open = True
                client.identity = _identity_of(request)
                if version < _PRODUCE_TV2:
                    client.has_spoken_old = True
                    self._check_added(wire.client, client, request)
                    self._check_sealed(wire.client, client)
                    client.unanswered.update(_batches_of(request))
                client.produced[what] = wire, client.identity
            case AddPartitionsToTxnRequest() | AddOffsetsToTxnRequest():
                self._check_spent(wire.client, client, request)
                client.is_open = True
                client.has_spoken_old = True
            case TxnOffsetCommitRequest():
                client.is_open = True
                client.identity = request.producer_id, request.producer_epoch
                client.offsets[what] = wire, client.identity
                client.lost[what] = client.identity
                is_member = (
                    request.member_id and request.generation_id_or_member_epoch >= 0
                )
                if self._has_members and not is_member:
                    self._violated("offsets without a member", wire.client)
            case EndTxnRequest():
                self._ends(wire.client, what, client, request, version)
            case InitProducerIdRequest():
                client.initialising.add(what)
                client.transactional_id = request.transactional_id or ""
                self._initialises(wire.client, client, request)
            case _:
                pass

    def _check_added(self, name: str, client: _Client, request: ProduceRequest) -> None:
        for topic in request.topic_data:
            for part in topic.partition_data:
                if (topic.name, part.index) not in client.added:
                    what = f"{name}: {topic.name}-{part.index}"
                    self._violated("produced before it was added", what)

    def _check_sealed(self, name: str, client: _Client) -> None:
        if client.identity == client.to_seal:
            self._violated("not sealed", f"{name}: {client.identity}")

    def _check_spent(
        self,
        name: str,
        client: _Client,
        request: AddPartitionsToTxnRequest | AddOffsetsToTxnRequest,
    ) -> None:
        if isinstance(request, AddOffsetsToTxnRequest):
            identity = request.producer_id, request.producer_epoch
        else:
            identity = (
                request.v3_and_below_producer_id,
                request.v3_and_below_producer_epoch,
            )
        client.identity = identity
        if not client.is_open and identity in client.spent:
            self._violated("no bump after a lost end", f"{name}: {identity}")

    def _ends(
        self,
        name: str,
        what: tuple[int, int],
        client: _Client,
        request: EndTxnRequest,
        version: int,
    ) -> None:
        identity = request.producer_id, request.producer_epoch
        if version < _END_TV2:
            client.has_spoken_old = True
            if identity in client.ends.values():
                client.spent.add(identity)
            client.ends[what] = identity
            has_late_write = not request.committed and any(
                batch[0] == identity for batch in client.unanswered
            )
            if has_late_write or identity in client.lost.values():
                client.late.add(identity)
        if _is_on_wire(client.produced, identity):
            self._violated("end with a batch on the wire", f"{name}: {identity}")
        if request.committed and _is_on_wire(client.offsets, identity):
            self._violated("end with offsets on the wire", f"{name}: {identity}")
        if request.committed and client.is_refused:
            self._violated("committed after a refusal", f"{name}: {identity}")
        before = client.verdicts.setdefault(identity, request.committed)
        if before is not request.committed:
            if not before or identity not in client.refused:
                self._violated("two verdicts", f"{name}: {identity}")
            client.verdicts[identity] = request.committed

    def _initialises(
        self, name: str, client: _Client, request: InitProducerIdRequest
    ) -> None:
        if request.producer_id < 0:
            return
        what = f"{name}: {request.producer_id}, {request.producer_epoch}"
        if client.is_open:
            self._violated("bump in a transaction", what)
        if client.is_fenced:
            self._violated("bump after a fence", what)

    # ---- answers -----------------------------------------------------------------

    def received(self, wire: Wire, frame: bytes) -> None:
        """Look at an answer."""
        what = id(wire), peek_correlation_id(frame)
        asked = self._asked.pop(what, None)
        if asked is None:
            return
        request, version = asked
        client = self._clients[wire.client]
        client.produced.pop(what, None)
        client.offsets.pop(what, None)
        client.lost.pop(what, None)
        client.initialising.discard(what)
        client.ends.pop(what, None)
        if isinstance(request, ProduceRequest) and version < _PRODUCE_TV2:
            client.unanswered.difference_update(_batches_of(request))
        kind = _RESPONSES[type(request).API_KEY]
        codes = _codes_of(decode_response(kind, version, frame))
        self._note_busy(client, _NAMES[ApiKey(type(request).API_KEY)], codes)
        is_probe = (
            isinstance(request, EndTxnRequest)
            and (request.producer_id, request.producer_epoch) in client.ended
        )
        # A probe has an old epoch, and the next transaction may have begun.
        if not is_probe and not isinstance(
            request, ProduceRequest | TxnOffsetCommitRequest
        ):
            client.is_fenced |= any(code in _FENCED for code in codes)
        if isinstance(request, AddPartitionsToTxnRequest) and not any(codes):
            client.added |= {
                (topic.name, index)
                for topic in request.v3_and_below_topics
                for index in topic.partitions
            }
        if isinstance(request, AddPartitionsToTxnRequest | AddOffsetsToTxnRequest):
            client.has_added |= not any(codes)
            if ErrorCode.TRANSACTION_ABORTABLE in codes:
                client.is_refused |= client.has_added
                self._refused(wire.client)
        if isinstance(request, InitProducerIdRequest) and not any(codes):
            answer = decode_response(InitProducerIdResponse, version, frame)
            _bumped(client, request, (answer.producer_id, answer.producer_epoch))
        if isinstance(request, EndTxnRequest):
            self._ended(client, request, version, codes[0])

    @staticmethod
    def _ended(
        client: _Client, request: EndTxnRequest, version: int, code: int
    ) -> None:
        identity = request.producer_id, request.producer_epoch
        if code in _REFUSED:
            client.refused.add(identity)
            # An abort of what never reached the coordinator ends it, too.
            if not request.committed:
                client.ends_now()
        if code:
            return
        if version >= _END_TV2:
            if identity in client.ended:
                return  # repeated, to see whether its markers are written
            client.ended.add(identity)
        else:
            client.verdicts.pop(identity, None)
            client.refused.discard(identity)
            if identity == client.to_seal:
                client.to_seal = None
        client.ends_now()

    def _note_busy(self, client: _Client, name: str, codes: Sequence[int]) -> None:
        if ErrorCode.CONCURRENT_TRANSACTIONS in codes:
            at = self._clock()
            client.busy[name] = client.busy.get(name, (at, at))[0], at
        else:
            client.busy.pop(name, None)

    def look(self) -> None:
        """Check that no request is repeated for too long."""
        for name, client in self._clients.items():
            if not any(w.client == name and w.is_open for w in self._wires.values()):
                client.busy.clear()
            for api, (first, last) in client.busy.items():
                if last - first > _LONGEST_WAIT:
                    self._violated("busy for too long", f"{name}: {api}")


_RESPONSES: Final[dict[int, type[Response]]] = {
    ApiKey.PRODUCE: ProduceResponse,
    ApiKey.INIT_PRODUCER_ID: InitProducerIdResponse,
    ApiKey.ADD_PARTITIONS_TO_TXN: AddPartitionsToTxnResponse,
    ApiKey.ADD_OFFSETS_TO_TXN: AddOffsetsToTxnResponse,
    ApiKey.TXN_OFFSET_COMMIT: TxnOffsetCommitResponse,
    ApiKey.END_TXN: EndTxnResponse,
}


def _is_on_wire(
    sent: dict[tuple[int, int], tuple[Wire, Identity]], identity: Identity
) -> bool:
    for key, (wire, _) in list(sent.items()):
        if not wire.is_open:
            del sent[key]
    return any(of == identity for _, of in sent.values())


def _bumped(
    client: _Client, request: InitProducerIdRequest, identity: Identity
) -> None:
    before = request.producer_id, request.producer_epoch
    is_due = before in client.late or before == client.to_seal
    # Under another producer id, nothing can be told of the one before.
    client.to_seal = identity if is_due and identity[0] == before[0] else None
    client.late.clear()
    client.unanswered.clear()
    client.lost.clear()


def _batches_of(request: ProduceRequest) -> list[tuple[Identity, str, int, int]]:
    found = []
    for topic in request.topic_data:
        for part in topic.partition_data:
            assert isinstance(part.records, bytes | bytearray | memoryview)
            first = int.from_bytes(bytes(part.records[53:57]), "big", signed=True)
            found.append((_identity_of(request), topic.name, part.index, first))
    return found


def _identity_of(request: ProduceRequest) -> Identity:
    for topic in request.topic_data:
        for part in topic.partition_data:
            assert isinstance(part.records, bytes | bytearray | memoryview)
            batch = bytes(part.records)
            return (
                int.from_bytes(batch[43:51], "big", signed=True),
                int.from_bytes(batch[51:53], "big", signed=True),
            )
    return (-1, -1)


def _codes_of(answer: Response) -> list[int]:
    match answer:
        case ProduceResponse():
            return [
                part.error_code
                for topic in answer.responses
                for part in topic.partition_responses
            ]
        case AddPartitionsToTxnResponse():
            return [
                part.partition_error_code
                for topic in answer.results_by_topic_v3_and_below
                for part in topic.results_by_partition
            ]
        case TxnOffsetCommitResponse():
            return [
                part.error_code for topic in answer.topics for part in topic.partitions
            ]
        case EndTxnResponse() | InitProducerIdResponse() | AddOffsetsToTxnResponse():
            return [answer.error_code]
        case _:
            return []
