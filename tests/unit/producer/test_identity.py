"""Obtaining the producer's identity, with scripted answers in place of a cluster."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kafkaio._client.destinations import ANY
from kafkaio._client.retry import RetryPolicy
from kafkaio._machines.backoff import Backoff
from kafkaio._machines.sequence import IdAndEpoch, ProducerIdentity
from kafkaio._producer.identity import IdentityRequester
from kafkaio._runtime.observer import guarded
from kafkaio.errors import AuthorizationError, KafkaError, NetworkError
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.init_producer_id import InitProducerIdResponse
from tests.virtual_loop import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]

OBTAINED = InitProducerIdResponse(producer_id=7, producer_epoch=2)
LOADING = InitProducerIdResponse(
    error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, producer_id=-1
)
FORBIDDEN = InitProducerIdResponse(
    error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, producer_id=-1
)


class Bench:
    """What a requester works with; it is needed for ``patience`` failures."""

    def __init__(self, *answers: Any, patience: int = 100) -> None:
        self.answers = list(answers)
        self.timeouts: list[float] = []
        self.failures: list[KafkaError] = []
        self.retries: list[tuple[str, int]] = []
        self.identity = ProducerIdentity()
        self.requester = IdentityRequester(
            self,
            self.identity,
            RetryPolicy(Backoff(100, 1000), guarded(self)),
            timeout=30.0,
            on_failure=self.failures.append,
            is_needed=lambda: len(self.failures) < patience,
        )

    async def request(
        self,
        request: Any,
        to: Any,
        *,
        timeout: float,
    ) -> Any:
        assert (request.transactional_id, to) == (None, ANY)
        self.timeouts.append(timeout)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def retrying(
        self, what: str, attempt: int, delay: float, error: BaseException
    ) -> None:
        self.retries.append((what, attempt))


async def test_an_identity_is_obtained_at_once() -> None:
    bench = Bench(OBTAINED)
    await bench.requester.obtain()
    assert bench.identity.current == IdAndEpoch(7, 2)
    assert (bench.timeouts, bench.failures, bench.retries) == ([30.0], [], [])


async def test_failures_are_reported_and_followed_by_another_attempt() -> None:
    lost = NetworkError("the connection was lost")
    bench = Bench(lost, LOADING, OBTAINED)
    start = asyncio.get_running_loop().time()
    await bench.requester.obtain()
    assert bench.identity.current == IdAndEpoch(7, 2)
    assert bench.failures[0] is lost
    assert "cannot get a producer id" in str(bench.failures[1])
    assert bench.retries == [("get a producer id", 1), ("get a producer id", 2)]
    assert asyncio.get_running_loop().time() - start > 0.2


@pytest.mark.parametrize("patience", [1, 2])
async def test_it_ends_when_no_identity_is_needed_any_more(patience: int) -> None:
    bench = Bench(FORBIDDEN, FORBIDDEN, FORBIDDEN, patience=patience)
    await bench.requester.obtain()
    assert bench.identity.current is None
    assert len(bench.failures) == patience
    assert all(isinstance(error, AuthorizationError) for error in bench.failures)
