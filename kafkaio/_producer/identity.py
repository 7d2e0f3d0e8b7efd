"""Obtains the identity of an idempotent producer: its id and epoch.

An idempotent producer needs both before it can send (KIP-98), and asks any broker for
them by InitProducerId. After a gap in a sequence it bumps the epoch by itself. When the
epochs of an id are used up, it asks for a new id; see `kafkaio._machines.sequence`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kafkaio._client.destinations import ANY
from kafkaio._client.retry import Attempts, RetryPolicy
from kafkaio._machines.sequence import IdAndEpoch, ProducerIdentity
from kafkaio.errors import KafkaError
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol.messages.init_producer_id import InitProducerIdRequest

if TYPE_CHECKING:
    from kafkaio._client.ports import RequestPort

# Brokers ignore it without a transactional id; Java's producer sends the same.
_NO_TRANSACTION_TIMEOUT = 2**31 - 1


class IdentityRequester:
    """Obtains the identity of an idempotent producer.

    Args:
        cluster: sends the requests.
        identity: takes the identity.
        policy: the back-off between attempts, and the observer of retries.
        timeout: seconds that one attempt may take.
        on_failure: called with the error of each attempt that failed.
        is_needed: whether an identity is still needed; asked after each back-off.
    """

    def __init__(
        self,
        cluster: RequestPort,
        identity: ProducerIdentity,
        policy: RetryPolicy,
        *,
        timeout: float,
        on_failure: Callable[[KafkaError], None],
        is_needed: Callable[[], bool],
    ) -> None:
        self._cluster = cluster
        self._identity = identity
        self._policy = policy
        self._timeout = timeout
        self._on_failure = on_failure
        self._is_needed = is_needed

    async def obtain(self) -> None:
        """Ask until there is an identity, or none is needed any more.

        An error that is not retriable does not end it: ``on_failure`` can fail the
        waiting records, and the cause may be gone when later records come.
        """
        attempts = Attempts("get a producer id", self._policy)
        while (error := await self._request()) is not None:
            self._on_failure(error)
            await attempts.pause(error)
            if not self._is_needed():
                return

    async def _request(self) -> KafkaError | None:
        request = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=_NO_TRANSACTION_TIMEOUT
        )
        try:
            response = await self._cluster.request(request, ANY, timeout=self._timeout)
        except KafkaError as error:
            return error
        if response.error_code:
            return broker_error(
                response.error_code, "cannot get a producer id", api=request.API_KEY
            )
        self._identity.obtained(
            IdAndEpoch(response.producer_id, response.producer_epoch)
        )
        return None
