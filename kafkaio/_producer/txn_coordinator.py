"""The requests of a producer to its transaction coordinator.

`TransactionMachine` decides which request is sent, one at a time. `TxnCoordinator`
sends it and gives the machine the answer. All requests take the same way (`Exchange`):
if the connection to the coordinator is open, the request is written in the same step,
and the answer arrives in a callback. That is the usual case and costs no task. If there
is no connection, or the answer is not final, a short-lived task repeats the request
until it is answered for good.

A request goes on by itself, so a caller that waits for its effect may be cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import field
from functools import partial
from math import inf
from typing import Final, Protocol, TypeVar

from kafkaio._client.cluster import Cluster
from kafkaio._client.coordination import CoordinatorRpc
from kafkaio._client.retry import Attempts
from kafkaio._config import ProducerConfig
from kafkaio._dataclass import dataclass
from kafkaio._generic import Generic
from kafkaio._machines.coordinators import CoordinatorKind
from kafkaio._machines.reactions import ReactionStep, is_foreign, reaction
from kafkaio._machines.sequence import IdAndEpoch
from kafkaio._machines.transaction import (
    ADDING,
    FENCING,
    FORGOTTEN,
    AddOffsets,
    AddPartitions,
    Effects,
    End,
    Initialise,
    Probe,
    Protocol as TxnProtocol,
    Request,
    TransactionMachine,
    TxnState,
)
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._producer.repeating import (
    MARKER_PACE,
    Busy,
    Doubts,
    EndAttempts,
    Pace,
    Unanswered,
)
from kafkaio._producer.turns import Run
from kafkaio._runtime.broadcast import Broadcast
from kafkaio._runtime.clock import now
from kafkaio._runtime.timer import Timer
from kafkaio.errors import (
    ClosedError,
    ConfigurationError,
    KafkaError,
    UnsupportedVersion,
)
from kafkaio.protocol import _api_numbers as apis
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Request as RequestMessage, Response
from kafkaio.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from kafkaio.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from kafkaio.protocol.messages.end_txn import EndTxnResponse
from kafkaio.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kafkaio.types import TopicPartition

ResponseT = TypeVar("ResponseT", bound=Response)

#: The level of ``transaction.version`` from which on transactions are of TV2 (KIP-890).
_TV2_LEVEL: Final = 2
#: From this version on, InitProducerId can ask for the next epoch (KIP-360).
_INIT_BUMP: Final = 3
#: Number of requests without a pause in between while the markers of the transaction
#: before are written. On an idle broker that takes less than the shortest sleep of an
#: event loop. A process that does not sleep also spends less CPU, because its caches
#: stay warm.
ASKED_AT_ONCE: Final = 8
#: Seconds after which a probe is given up: the leader of a partition waits as long.
_PROBE_LIMIT: Final = 0.1
#: The coordinator has forgotten the producer.
_FORGOTTEN: Final = frozenset({ErrorCode.UNKNOWN_PRODUCER_ID, FORGOTTEN})
#: The advice for a producer that is over though no other producer has its id.
REPLACE: Final = "this producer is over: close it, and make another one in its place"


class TxnOwnerPort(Protocol):
    """The transaction manager, as its parts need it.

    Attributes:
        changed: wakes when the machine's state, or what is on the wire, has changed.
    """

    changed: Broadcast

    @property
    def is_drained(self) -> bool:
        """Whether no record waits or is on the wire."""
        ...

    def perform(self, effects: Effects) -> None:
        """Perform effects of the machine."""

    def added(self, effects: Effects) -> None:
        """Perform the effects of an addition, and send the records that waited."""

    def not_added(self, error: KafkaError, *, is_lost: bool) -> None:
        """Note a failed addition; `is_lost` if it may take effect all the same."""

    def fail(self, error: KafkaError) -> None:
        """Note that the producer is over, and not fenced."""

    def why_over(self) -> KafkaError:
        """Return the error of a producer that is over."""
        ...

    def check_committable(self, run: Run) -> None:
        """Raise unless the run is open and can be committed."""

    def fail_run(
        self, run: Run, error: KafkaError, reason: str, *, has_harm: bool = False
    ) -> None:
        """Note that a run can only be aborted."""

    def flush(self) -> bool:
        """Send waiting records; return whether there are none."""
        ...

    def end_if_drained(self) -> None:
        """Send EndTxn if it was asked for and nothing is under way."""


@dataclass(slots=True, eq=False)
class Exchange(Generic[ResponseT]):
    """One request of the machine, until it is answered for good.

    A connection settles it like a future (`kafkaio._net.connection.Reply`).

    Attributes:
        coordinator: sends it.
        request: the machine's request. Once the machine has another one, the exchange
            is over, and its answer is dropped.
        message: the same for the coordinator.
        code: returns the error code of an answer, and notes that there is an answer.
        answered: called with the final answer.
        failed: called with the error of a request that gets no final answer.
        otherwise: called where the open connection gives no final answer; None to
            repeat the request in a task.
        unanswered: whether an attempt may take effect though no answer came.
        min_version: the lowest version of the request that can express it.
        max_version: the highest version to use; None for the highest known.
        deadline: the time at which it is given up.
        awaits_markers: whether the markers of the transaction before delay it.
        at_once: how often the open connection is asked again at once because of them.
    """

    coordinator: TxnCoordinator
    request: Request
    message: RequestMessage[ResponseT]
    code: Callable[[ResponseT], int]
    answered: Callable[[ResponseT], None]
    failed: Callable[[KafkaError], None]
    otherwise: Callable[[], None] | None = None
    unanswered: Unanswered = field(default_factory=Unanswered)
    min_version: int = 0
    max_version: int | None = None
    deadline: float = inf
    awaits_markers: bool = False
    at_once: int = ASKED_AT_ONCE - 1

    @property
    def name(self) -> str:
        """The name of the API, and how a transaction is to end."""
        if isinstance(self.request, End):
            return _name_of(self.request)
        return self.message.NAME.removesuffix("Request")

    def done(self) -> bool:
        """Return False: the answer is always needed."""
        return False

    def set_result(self, answer: ResponseT) -> None:
        """Take the answer."""
        self.coordinator.replied(self, answer)

    def set_exception(self, error: Exception) -> None:
        """Take the error because of which there is no answer."""
        self.coordinator.replied(self, error)


class TxnCoordinator:
    """Sends the requests of the machine, and gives it the answers.

    Args:
        cluster: finds the coordinator, and connects to it.
        config: the producer's options, with a ``transactional_id``.
        machine: decides which requests are sent.
        owner: performs the machine's decisions.

    Attributes:
        rpc: the coordinator.
    """

    def __init__(
        self,
        cluster: Cluster,
        config: ProducerConfig,
        machine: TransactionMachine,
        owner: TxnOwnerPort,
    ) -> None:
        assert config.transactional_id is not None
        self._transactional_id = config.transactional_id
        self._cluster = cluster
        self._config = config
        self._machine = machine
        self._owner = owner
        self.rpc: CoordinatorRpc = CoordinatorRpc(
            cluster, CoordinatorKind.TRANSACTION, config.transactional_id
        )
        self._request_timeout = config.request_timeout_ms / 1000
        self._transaction_timeout = config.transaction_timeout_ms / 1000
        self._max_block = config.max_block_ms / 1000
        # The loop's own clock, once that is known: each transaction asks it often.
        self._now: Callable[[], float] = now
        self._probe_timer = Timer(self._give_up_probe)
        # Why the first InitProducerId was refused.
        self._refusal: KafkaError | None = None

    # ---- one way for all requests ----------------------------------------------------

    def send(self, request: Request) -> None:
        """Send a request of the machine."""
        match request:
            case End():
                self._end(request)
            case AddPartitions():
                self._add(
                    request,
                    self._partitions_to_add(request),
                    partial(_code_of_additions, request.partitions),
                )
            case AddOffsets():
                self._add(request, self._group_to_add(request), _code_of_group)
            case Initialise(identity=identity):
                # An iteration of the loop later: the end of the transaction before was
                # answered just now, and its markers are to be written first.
                self._leave_to_task(self._initialisation(request, identity))
            case Probe():
                self._probe(request)

    def _submit(self, exchange: Exchange[ResponseT]) -> None:
        """Send a request at once if the connection is open, else leave it to a task."""
        if self._machine.request is not exchange.request:
            return  # it was given up
        connection = self.rpc.ready(ConnectionClass.SHARED)
        message, lowest = exchange.message, exchange.min_version
        if (
            connection is None
            or (connection.versions.max_version(message.API_KEY) or 0) < lowest
        ):
            self._leave_to_task(exchange)
            return
        exchange.unanswered.sent()
        timeout = self._request_timeout
        if exchange.awaits_markers:
            # Not only the time that is left: a connection is closed whose request gets
            # no answer in its time, and others use it, too.
            timeout = min(timeout, self._transaction_timeout)
        connection.submit_to(
            exchange, message, timeout=timeout, max_version=exchange.max_version
        )

    def replied(
        self, exchange: Exchange[ResponseT], answer: ResponseT | Exception
    ) -> None:
        """Take the answer to an attempt on the open connection, or its failure."""
        if self._machine.request is not exchange.request:
            return  # the producer is over, or the request was given up
        # The connection calls this: an exception would end there, and the transaction
        # would wait for its end forever. So a task crashes with it.
        try:
            if isinstance(answer, Exception):
                self._leave_to_task(exchange)
                return
            code = exchange.code(answer)
            if not code or not reaction(exchange.message.API_KEY, code).retry:
                exchange.answered(answer)
            elif (
                code == ErrorCode.CONCURRENT_TRANSACTIONS
                and exchange.awaits_markers
                and exchange.at_once
            ):
                exchange.at_once -= 1
                self._submit(exchange)
            else:
                self._leave_to_task(exchange)
        except Exception as failure:  # noqa: BLE001 - crashes the producer
            self._crash(failure)

    def _leave_to_task(self, exchange: Exchange[ResponseT]) -> None:
        if exchange.otherwise is not None:
            exchange.otherwise()
            return
        # Once the cluster is closed, the end of the producer follows.
        with suppress(ClosedError):
            self._cluster.start_soon(
                partial(self._repeat, exchange), f"transaction: {exchange.name}"
            )

    async def _repeat(self, exchange: Exchange[ResponseT]) -> None:
        left = exchange.deadline - self._now()
        request = exchange.request
        try:
            answer = await self.rpc.repeat(
                exchange.message,
                self._attempts(exchange.name, None if left == inf else max(0.0, left)),
                timeout=self._request_timeout,
                code=exchange.code,
                max_version=exchange.max_version,
                min_version=exchange.min_version,
                pace=Pace(0) if exchange.awaits_markers else self._busy(),
                on_sent=exchange.unanswered.sent,
                check=partial(self._check_asked, request),
            )
        except KafkaError as failure:
            if self._machine.request is request:
                exchange.failed(failure)
            return
        if self._machine.request is request:
            exchange.answered(answer)

    def _check_asked(self, request: Request) -> None:
        if self._machine.request is not request:
            raise ClosedError(f"{self.rpc.name}: the answer is not needed any more")

    def _crash(self, failure: Exception) -> None:
        async def crash() -> None:
            raise failure

        with suppress(ClosedError):
            self._cluster.start_soon(crash, "transaction: callback")

    def _busy(self) -> Busy:
        # As long as the coordinator may take, and then as long as the user waits.
        limit = self._transaction_timeout + self._max_block
        return Busy(self.rpc.name, limit, lambda: self.rpc.node_id)

    def _attempts(self, what: str, within: float | None) -> Attempts:
        what = f"{what} of transactional id {self._transactional_id!r}"
        return Attempts(what, self._cluster.retry_policy, within)

    def error(
        self, code: int, what: str, *, api: int = -1, group: str = ""
    ) -> KafkaError:
        """Make the error of a refused request."""
        why = ""
        if code == FORGOTTEN:
            why = (
                "; the coordinator does not know the producer's id any more: it was "
                "idle for longer than transactional.id.expiration.ms, or another "
                "producer with this transactional id was started"
            )
        if code in FENCING:
            why = "; another producer with this transactional id was started"
            if self._machine.protocol is TxnProtocol.TV1:
                why += (
                    ", or the coordinator aborted the transaction after "
                    f"transaction_timeout_ms={self._config.transaction_timeout_ms}"
                )
        return broker_error(
            code,
            f"{self.rpc.name}: {what}{why}",
            api=api,
            group=group,
            transactional_id=self._transactional_id,
        )

    # ---- InitProducerId --------------------------------------------------------------

    async def start(self, within: float) -> None:
        """Obtain the first identity, or raise within so many seconds."""
        self._now = asyncio.get_running_loop().time
        machine = self._machine
        machine.initialise()
        request = machine.request
        assert isinstance(request, Initialise)
        deadline = self._now() + within
        await self._repeat(self._initialisation(request, None, deadline))
        if machine.state is not TxnState.READY:
            raise self._refusal or self._owner.why_over()

    def _initialisation(
        self, request: Initialise, identity: IdAndEpoch | None, deadline: float = inf
    ) -> Exchange[InitProducerIdResponse]:
        machine = self._machine
        message = InitProducerIdRequest(
            transactional_id=self._transactional_id,
            transaction_timeout_ms=self._config.transaction_timeout_ms,
        )
        if identity is not None:
            message.producer_id = identity.producer_id
            message.producer_epoch = identity.epoch
        doubts = Doubts(apis.INIT_PRODUCER_ID)

        def answered(answer: InitProducerIdResponse) -> None:
            code = answer.error_code
            if not code:
                obtained = IdAndEpoch(answer.producer_id, answer.producer_epoch)
                self._owner.perform(machine.initialised(obtained, self.protocol()))
            elif code == FORGOTTEN and identity is not None:
                # Kafka gives a new id here; a coordinator that does not gives it to a
                # producer that names none.
                self._submit(self._initialisation(request, None))
            else:
                self._not_initialised(code)

        def failed(error: KafkaError) -> None:
            if identity is not None and isinstance(error, UnsupportedVersion):
                # Before KIP-360, only a new life changes the epoch.
                self._submit(self._initialisation(request, None))
            elif machine.state is TxnState.INITIALISING:
                self._refusal = error
                machine.not_initialised()
            else:
                self._owner.fail(error)

        return Exchange(
            self,
            request,
            message,
            lambda answer: doubts.code(answer.error_code),
            answered,
            failed,
            min_version=0 if identity is None else _INIT_BUMP,
            deadline=deadline,
        )

    def _not_initialised(self, code: int) -> None:
        machine, api = self._machine, apis.INIT_PRODUCER_ID
        error = self.error(code, "InitProducerId was refused", api=api)
        if code == ErrorCode.INVALID_TRANSACTION_TIMEOUT:
            refused = error
            error = ConfigurationError(
                f"transaction_timeout_ms={self._config.transaction_timeout_ms} is more "
                "than transaction.max.timeout.ms of the brokers"
            )
            error.__cause__ = refused
        if code in FENCING:
            self._owner.perform(machine.fence(error))
        elif machine.state is TxnState.INITIALISING and (
            is_foreign(api, code) or reaction(api, code).step is ReactionStep.ABORT
        ):
            self._refusal = error
            machine.not_initialised()
        else:
            self._owner.fail(error)

    def protocol(self) -> TxnProtocol:
        """Return the protocol of transactions that begin now (KIP-890)."""
        level = self._cluster.features.level("transaction.version")
        return TxnProtocol.TV2 if level >= _TV2_LEVEL else TxnProtocol.TV1

    # ---- AddPartitionsToTxn, AddOffsetsToTxn -----------------------------------------

    def _partitions_to_add(self, request: AddPartitions) -> AddPartitionsToTxnRequest:
        topics: dict[str, list[int]] = {}
        for tp in request.partitions:
            topics.setdefault(tp.topic, []).append(tp.partition)
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._transactional_id,
            v3_and_below_producer_id=request.identity.producer_id,
            v3_and_below_producer_epoch=request.identity.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=name, partitions=partitions)
                for name, partitions in topics.items()
            ],
        )

    def _group_to_add(self, request: AddOffsets) -> AddOffsetsToTxnRequest:
        return AddOffsetsToTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=request.identity.producer_id,
            producer_epoch=request.identity.epoch,
            group_id=request.group_id,
        )

    def _add(
        self,
        request: AddPartitions | AddOffsets,
        message: RequestMessage[ResponseT],
        code_of: Callable[[ResponseT], int],
    ) -> None:
        machine, unanswered = self._machine, Unanswered()
        is_seal = machine.state is TxnState.SEALING

        def code(answer: ResponseT) -> int:
            unanswered.answered()
            found = code_of(answer)
            if is_seal:
                is_final = found == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION  # deleted
            else:
                # If nothing is to be added any more, a refusal is final.
                is_final = machine.state not in ADDING
            return ErrorCode.OPERATION_NOT_ATTEMPTED if found and is_final else found

        def answered(answer: ResponseT) -> None:
            if found := code_of(answer):
                self._add_refused(message, found, answer, was_lost=unanswered.was_lost)
                return
            if unanswered.was_lost:
                machine.harmed()
            self._owner.added(machine.added(self._now()))

        def failed(error: KafkaError) -> None:
            if is_seal:
                self._owner.fail(error)
            else:
                self._owner.not_added(error, is_lost=unanswered.may_arrive)

        self._submit(
            Exchange(
                self,
                request,
                message,
                code,
                answered,
                failed,
                unanswered=unanswered,
                deadline=inf if is_seal else self._now() + self._transaction_timeout,
                awaits_markers=not is_seal,
            )
        )

    def _add_refused(
        self,
        message: RequestMessage[ResponseT],
        found: int,
        answer: ResponseT,
        *,
        was_lost: bool,
    ) -> None:
        machine, api = self._machine, message.API_KEY
        what = f"{message.NAME.removesuffix('Request')} was refused"
        error = self.error(found, what, api=api)
        is_seal = machine.state is TxnState.SEALING
        if found in FENCING:
            self._owner.perform(machine.fence(error))
        elif reaction(api, found).step is ReactionStep.FATAL or (
            is_seal and is_foreign(api, found)
        ):
            self._owner.fail(error)
        elif is_seal and found == FORGOTTEN:
            self._owner.perform(machine.forgotten_in_seal(error))
        elif is_seal:
            self._owner.perform(machine.not_sealed(_refused_partitions(answer)))
        else:
            # A forgotten producer needs another epoch, as after a lost request. After
            # an error that this API does not have, the addition may have been made.
            is_unclear = found in _FORGOTTEN or is_foreign(api, found)
            self._owner.not_added(error, is_lost=is_unclear or was_lost)

    # ---- EndTxn ----------------------------------------------------------------------

    def _end(self, request: End, *, is_first: bool = True) -> None:
        machine = self._machine
        attempts = EndAttempts(self._transactional_id, request, machine.end_lost)

        def failed(error: KafkaError) -> None:
            if attempts.unanswered.is_pending:
                machine.end_lost()
            if attempts.is_tv2 and isinstance(error, UnsupportedVersion):
                self._owner.perform(machine.end_unsupported(error))
            else:
                self._owner.fail(error)

        self._submit(
            Exchange(
                self,
                request,
                attempts.message,
                attempts.code,
                partial(self._end_answered, request, is_first=is_first),
                failed,
                unanswered=attempts.unanswered,
                min_version=attempts.min_version,
                max_version=attempts.max_version,
            )
        )

    def _end_answered(
        self, request: End, answer: EndTxnResponse, *, is_first: bool
    ) -> None:
        machine, found = self._machine, answer.error_code
        is_tv2 = request.protocol is TxnProtocol.TV2
        identity: IdAndEpoch | None = None
        refused: KafkaError | None = None
        if found:
            last = machine.last_end
            if is_first and found in FENCING and is_tv2 and last is not None:
                self._end_after_markers(request, last, answer)
                return
            what = f"{_name_of(request)} was refused"
            refused = self.error(found, what, api=apis.END_TXN)
        elif is_tv2 and answer.producer_id >= 0:
            identity = IdAndEpoch(answer.producer_id, answer.producer_epoch)
            if not identity.may_follow(request.identity):
                identity = None  # InitProducerId returns the right one
        effects = machine.end_answered(self._now(), identity, refused, found)
        if refused is not None and machine.state is TxnState.FAILED:
            refused.args = (f"{refused}; {REPLACE}",)
        self._owner.perform(effects)

    def _end_after_markers(
        self, request: End, last: End, refusal: EndTxnResponse
    ) -> None:
        """Send EndTxn once more, when the transaction before has come to its end.

        Until then, TV2's coordinator may refuse the new epoch as if it were fenced. A
        transaction of which no record was accepted meets that. If another producer has
        the transactional id, the end is never found to be complete, and the refusal
        counts.
        """

        def refuse(_: KafkaError | None = None) -> None:
            self._end_answered(request, refusal, is_first=False)

        def answered(answer: EndTxnResponse) -> None:
            if answer.error_code:
                refuse()
            else:
                self._end(request, is_first=False)

        attempts = EndAttempts(self._transactional_id, last)
        self._submit(
            Exchange(
                self,
                request,
                attempts.message,
                lambda answer: answer.error_code,
                answered,
                refuse,
                min_version=attempts.min_version,
            )
        )

    # ---- EndTxn again: probes, and whether the identity is current -------------------

    def _probe(self, request: Probe) -> None:
        # The transaction goes on after any answer: a probe can only save time. So a
        # coordinator that is silent, or not connected, must not delay it for longer.
        self._probe_timer.set(self._now() + _PROBE_LIMIT)
        asked = 1

        def answered(answer: EndTxnResponse) -> None:
            nonlocal asked
            if answer.error_code != ErrorCode.CONCURRENT_TRANSACTIONS:
                self._probed(request, is_at_once=asked == 1)
                return
            asked += 1
            if asked <= ASKED_AT_ONCE:
                self._submit(exchange)
            else:
                loop = asyncio.get_running_loop()
                loop.call_later(MARKER_PACE, self._submit, exchange)

        def give_up(_: KafkaError | None = None) -> None:
            self._probed(request, is_at_once=False)

        exchange = Exchange(
            self,
            request,
            EndAttempts(self._transactional_id, request.end).message,
            lambda _: ErrorCode.NONE,  # every answer is final here
            answered,
            give_up,
            otherwise=give_up,
        )
        self._submit(exchange)

    def _give_up_probe(self) -> None:
        request = self._machine.request
        if isinstance(request, Probe):
            self._probed(request, is_at_once=False)

    def _probed(self, request: Probe, *, is_at_once: bool) -> None:
        if self._machine.request is request:
            self._probe_timer.cancel()
            self._owner.added(self._machine.probed(self._now(), is_at_once=is_at_once))

    async def recheck(self, within: float) -> None:
        """Ask whether the producer still has its transactional id.

        If not, or if that is not known within so many seconds, the producer is over:
        the request could arrive late, and end the next transaction.
        """
        owner, request = self._owner, self._machine.recheck()
        try:
            answer = await self._ask_again(request, within)
        except KafkaError as error:
            owner.fail(error)
            return
        except BaseException:
            owner.fail(ClosedError(f"{self.rpc.name}: the check was cancelled"))
            raise
        code = answer.error_code
        identity = IdAndEpoch(answer.producer_id, answer.producer_epoch)
        if self._machine.rechecked(request, code, identity):
            return
        refused = self.error(code, f"{_name_of(request)} again", api=apis.END_TXN)
        if code in FENCING:
            owner.perform(self._machine.fence(refused))
        else:
            owner.fail(refused)

    async def _ask_again(self, request: End, within: float) -> EndTxnResponse:
        is_harmless = request is self._machine.last_end
        attempts = EndAttempts(self._transactional_id, request)
        unanswered = attempts.unanswered

        def code(answer: EndTxnResponse) -> int:
            unanswered.answered()
            return answer.error_code

        def check() -> None:
            if unanswered.is_pending and not is_harmless:
                raise ClosedError(f"{self.rpc.name}: {_name_of(request)} got no answer")

        return await self.rpc.repeat(
            attempts.message,
            self._attempts(_name_of(request), within),
            timeout=self._request_timeout,
            code=code,
            max_version=attempts.max_version,
            min_version=attempts.min_version,
            pace=Pace(ASKED_AT_ONCE),
            on_sent=unanswered.sent,
            check=check,
        )


def _name_of(request: End) -> str:
    return f"EndTxn ({'commit' if request.is_commit else 'abort'})"


def _code_of_group(answer: AddOffsetsToTxnResponse) -> int:
    return answer.error_code


def _code_of_additions(
    asked: Collection[TopicPartition], answer: AddPartitionsToTxnResponse
) -> int:
    # All or nothing: where one partition is refused, the others say "not attempted".
    answered = {
        TopicPartition(topic.name, result.partition_index): result.partition_error_code
        for topic in answer.results_by_topic_v3_and_below
        for result in topic.results_by_partition
    }
    # One that the answer leaves out is not known to be added. A record written to it
    # may stay open for good.
    unknown = ErrorCode.UNKNOWN_SERVER_ERROR
    codes = [code for tp in asked if (code := answered.get(tp, unknown))]
    causes = (c for c in codes if c != ErrorCode.OPERATION_NOT_ATTEMPTED)
    return next(causes, codes[0] if codes else 0)


def _refused_partitions(answer: Response) -> list[TopicPartition]:
    if not isinstance(answer, AddPartitionsToTxnResponse):
        return []
    fine = {ErrorCode.NONE, ErrorCode.OPERATION_NOT_ATTEMPTED}
    return [
        TopicPartition(topic.name, result.partition_index)
        for topic in answer.results_by_topic_v3_and_below
        for result in topic.results_by_partition
        if result.partition_error_code not in fine
    ]
