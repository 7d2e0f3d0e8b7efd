"""Ends a transaction in another process than the one that wrote it.

`detach` waits until all of a transaction is acknowledged, and leaves it open. Its
result goes to the process that decides, which calls `end_detached`. A Spark driver ends
the transactions of its tasks in this way (`kafkaio.spark`).

A detached transaction is not a prepared one (KIP-939): the coordinator aborts it after
``transaction_timeout_ms``, and a new producer with its transactional id aborts it at
once. The process that commits it must expect that.
"""

from __future__ import annotations

from math import inf

from kafkaio._arguments import seconds_of
from kafkaio._client.client import Client, cluster_of
from kafkaio._client.coordination import CoordinatorRpc
from kafkaio._client.retry import Attempts
from kafkaio._machines.coordinators import CoordinatorKind
from kafkaio._machines.detached import (
    DetachedEnd,
    DetachedTransaction as DetachedTransaction,
    end_of,
)
from kafkaio._machines.transaction import End, Protocol, TransactionOutcome
from kafkaio._producer.repeating import Busy, EndAttempts
from kafkaio._producer.transaction import Transaction
from kafkaio.errors import (
    KafkaError,
    OutcomeUnknown,
    RequestTimeout,
    TransactionAborted,
    UnsupportedVersion,
)
from kafkaio.protocol import _api_numbers as apis
from kafkaio.protocol._broker_errors import broker_error


async def detach(transaction: Transaction) -> DetachedTransaction:
    """Write what was enqueued in a transaction, and leave its end to `end_detached`.

    This is not a method of `Transaction`, because few users need it.

    When the call returns, every record and offset is acknowledged, and the transaction
    is open at the broker: any process may commit or abort it. Its producer sends
    nothing any more and can only be closed, which leaves the transaction alone. It
    stays open until it is ended, until a producer with the same transactional id
    starts, which aborts it, or until ``transaction_timeout_ms`` after its first record,
    when the coordinator aborts it. Readers with ``read_committed`` wait at its first
    record as long.

    The call waits no longer than a commit does. If it is cancelled, the transaction is
    aborted.

    Raises:
        TransactionAborted: a record or an offset of it failed, which is the cause; or
            it was open for longer than ``transaction_timeout_ms``.
        Fenced: a newer producer has the transactional id; this one is over.
        UsageError: the transaction is not open, or works on the records of a consumer,
            whose partitions only this process can give back.
    """
    return await transaction._detach()


async def end_detached(
    client: Client,
    detached: DetachedTransaction,
    *,
    commit: bool,
    timeout: float | None = None,
) -> TransactionOutcome:
    """Commit or abort a transaction that was detached, in this process or another.

    The request is repeated until the coordinator has decided or the time is over,
    wherever the coordinator moves. The call may be repeated with the same verdict, by
    any process: it changes nothing then and returns the same. When it returns, the end
    is decided; readers see it some milliseconds later. If it is cancelled, the request
    may take effect all the same.

    Args:
        client: a started client, whose principal may write with the transactional id.
        detached: the transaction.
        commit: whether to commit it, or to abort it.
        timeout: seconds for all attempts; ``default_api_timeout_ms`` by default.

    Returns:
        How the transaction has ended. That is ABORTED or, if it had been committed
        before, COMMITTED in spite of the abort.

    Raises:
        TransactionAborted: it was to be committed, and was aborted before: by its
            time-out, or by `end_detached`.
        Fenced: a newer producer has the transactional id, or (before
            ``transaction.version=2``) its time was over. It is not open any more.
        OutcomeUnknown: a commit was sent and not answered, and it is not known whether
            it was taken. If no newer producer has the transactional id, to call again
            finds out.
        RequestTimeout: it was not decided in time; call again.
        AuthorizationError: the principal may not write with the transactional id.
        UnsupportedVersion: the coordinator cannot commit a transaction of
            ``transaction.version=2`` (before Kafka 4.0). It can be aborted.
        BrokerError: the coordinator refused for another reason.
        ClosedError: the client is not started, or closed.
    """
    if timeout is None:
        timeout = client.config.default_api_timeout_ms / 1000
    seconds_of("timeout", timeout)
    if detached.is_empty:  # the coordinator does not know it, and would refuse EndTxn
        return TransactionOutcome.COMMITTED if commit else TransactionOutcome.ABORTED
    end = _End(client, detached.transactional_id, timeout)
    request = detached.end(commit=commit)
    try:
        return await end.ask(request)
    except UnsupportedVersion:
        if commit:
            raise
        # A coordinator before 4.0 can abort the transaction by its own protocol.
        older = End(request.identity, Protocol.TV1, is_commit=False)
        return await end.ask(older)


class _End:
    """One call of `end_detached`."""

    def __init__(self, client: Client, transactional_id: str, timeout: float) -> None:
        self._client = client
        self._transactional_id = transactional_id
        self._timeout = timeout
        cluster = cluster_of(client)
        self._rpc = CoordinatorRpc(
            cluster, CoordinatorKind.TRANSACTION, transactional_id
        )
        self._attempts = Attempts(
            f"EndTxn of {self._rpc.name}", cluster.retry_policy, timeout
        )

    async def ask(self, request: End) -> TransactionOutcome:
        """Send EndTxn until the answer is final, and return the outcome."""
        attempts = EndAttempts(self._transactional_id, request)
        unanswered = attempts.unanswered
        try:
            answer = await self._rpc.repeat(
                attempts.message,
                self._attempts,
                timeout=self._client.config.request_timeout_ms / 1000,
                code=attempts.code,
                max_version=attempts.max_version,
                min_version=attempts.min_version,
                # Without a limit of its own: the attempts have a deadline.
                pace=Busy(self._rpc.name, inf, lambda: self._rpc.node_id),
                on_sent=unanswered.sent,
            )
        except RequestTimeout as failure:
            if request.is_commit and unanswered.may_arrive:
                raise self._unknown(failure) from failure
            raise
        return self._outcome(request, answer.error_code, unanswered.was_lost)

    def _outcome(self, request: End, code: int, was_lost: bool) -> TransactionOutcome:  # noqa: FBT001
        found = end_of(code, is_commit=request.is_commit, was_lost=was_lost)
        if found is DetachedEnd.DONE and request.is_commit:
            return TransactionOutcome.COMMITTED
        if found is DetachedEnd.DONE:
            return TransactionOutcome.ABORTED
        if found is DetachedEnd.OTHERWISE and not request.is_commit:
            return TransactionOutcome.COMMITTED
        refused = self._refused(code, found)
        if found is DetachedEnd.OTHERWISE:
            raise TransactionAborted(
                f"{self._rpc.name}: its detached transaction was aborted before it was "
                "to be committed",
                reason="timed out or aborted",
            ) from refused
        if found is DetachedEnd.UNKNOWN:
            raise self._unknown(refused) from refused
        raise refused

    def _refused(self, code: int, found: DetachedEnd) -> KafkaError:
        why = ""
        if found is DetachedEnd.FENCED:
            why = (
                "; another producer with this transactional id was started, or the "
                "coordinator aborted the transaction after transaction_timeout_ms"
            )
        return broker_error(
            code,
            f"{self._attempts.what} was refused{why}",
            api=apis.END_TXN,
            transactional_id=self._transactional_id,
        )

    def _unknown(self, failure: KafkaError) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"{self._attempts.what}: a commit was sent and not answered; whether it "
            f"was taken is not known after {self._timeout:g} s ({failure})"
        )
