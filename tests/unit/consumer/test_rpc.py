"""Whether a coordinator lives, as seen by who asks it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kafkaio._consumer.group.rpc import GroupRpc
from kafkaio._machines.coordinators import CoordinatorKind
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._runtime.clock import now
from kafkaio.errors import (
    AuthenticationError,
    BrokerNotAvailable,
    ClosedError,
    ConnectionLost,
    KafkaError,
    RequestTimeout,
)
from tests.unit.consumer.group_fakes import virtual


class OneBroker:
    """A client that finds node 7, and a connection to it that does as it is told."""

    def __init__(self) -> None:
        self.connecting: KafkaError | None = None
        self.answer: KafkaError | None = None
        self.hangs = False
        self.hung_up: list[int] = []
        self.forgotten: list[int] = []
        self.versions: Any = None

    async def coordinator(self, kind: CoordinatorKind, key: str, **_: object) -> int:
        del kind, key
        return 7

    def ready_coordinator(self, *_: object) -> None:
        """Nothing is ever open."""

    def forget_coordinator(self, kind: CoordinatorKind, key: str, node_id: int) -> None:
        del kind, key
        self.forgotten.append(node_id)

    def prepare(self, *_: object) -> None:
        pass

    def close_connections(self, node_id: int, cause: KafkaError) -> None:
        assert "silent" in str(cause)
        self.hung_up.append(node_id)

    async def connection(self, node_id: int, connection_class: ConnectionClass) -> Any:
        assert node_id == 7
        if self.connecting is not None and connection_class == ConnectionClass.SHARED:
            raise self.connecting
        return self

    async def call(self, request: object, **_: object) -> object:
        if self.hangs:
            await asyncio.sleep(1000)
        if self.answer is not None:
            raise self.answer
        return request


def timed_out() -> KafkaError:
    error = BrokerNotAvailable("connect: no answer")
    error.__cause__ = TimeoutError()
    return error


@virtual
async def test_nobody_knows_whom_to_ask() -> None:
    client: Any = OneBroker()
    assert await GroupRpc(client, "g").probe(1.0)
    assert not client.hung_up


@virtual
@pytest.mark.parametrize(
    ("error", "lives"),
    [
        (None, True),
        # Whoever refuses us is there.
        (BrokerNotAvailable("refused"), True),
        (AuthenticationError("refused"), True),
        (ConnectionLost("hung up"), True),
        (ClosedError("we are closing"), True),
        (timed_out(), False),
        (RequestTimeout("no answer"), False),
    ],
    ids=repr,
)
@pytest.mark.parametrize("step", ["connecting", "answer"])
async def test_signs_of_life(
    error: KafkaError | None, *, lives: bool, step: str
) -> None:
    client: Any = OneBroker()
    rpc = GroupRpc(client, "g")
    await rpc.coordinator.connection(ConnectionClass.COORDINATOR, now() + 1)
    setattr(client, step, error)
    assert await rpc.probe(1.0) is lives
    assert client.hung_up == client.forgotten == ([] if lives else [7])
    assert rpc.coordinator.node_id == (7 if lives else None)


@virtual
async def test_silence() -> None:
    client: Any = OneBroker()
    client.hangs = True
    rpc = GroupRpc(client, "g")
    await rpc.coordinator.connection(ConnectionClass.COORDINATOR, now() + 1)
    begun = now()
    assert not await rpc.probe(5.0)
    assert now() - begun == pytest.approx(5.0)
    assert client.hung_up == [7]
