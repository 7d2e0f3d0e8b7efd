"""A proxy before one broker that changes answers for a while, and then is honest.

What the n-th answer of an API says depends on the seed, the API and n alone, so a seed
that found something finds it again, as far as the client asks for the same.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter, deque
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Self

from kafkaio.errors import KafkaError
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._framing import FrameBuffer
from kafkaio.protocol._headers import decode_response, encode_response
from kafkaio.protocol._requests import request_type
from tests.meaning.changes import Lie, lie_about

__all__ = ["Liar", "Told"]

_HOST: Final = "127.0.0.1"
_READ_BYTES: Final = 65_536
_MAX_FRAME: Final = 100_000_000
_NAMES_BROKERS: Final[dict[int, tuple[str, ...]]] = {
    ApiKey.METADATA: ("brokers",),
    ApiKey.FIND_COORDINATOR: ("coordinators",),
    ApiKey.DESCRIBE_CLUSTER: ("brokers",),
    ApiKey.PRODUCE: ("node_endpoints",),
    ApiKey.FETCH: ("node_endpoints",),
    ApiKey.SHARE_FETCH: ("node_endpoints",),
}


@dataclass(frozen=True, slots=True)
class Told:
    """An answer that was changed.

    Attributes:
        api: name of the API.
        version: of the answer.
        lies: what was changed.
    """

    api: str
    version: int
    lies: list[Lie]

    def __str__(self) -> str:
        return f"{self.api} v{self.version}: " + "; ".join(map(str, self.lies))


class Liar:
    """The proxy.

    Args:
        servers: ``host:port`` of the broker.
        seed: decides what is changed.
        apis: the APIs whose answers are changed; None for all.
        without: names of fields that are not changed.

    Attributes:
        is_lying: whether answers are changed now.
        told: the answers that were changed.
    """

    def __init__(
        self,
        servers: str,
        seed: int,
        apis: set[int] | None,
        without: Collection[str] = (),
    ) -> None:
        host, port = servers.split(",")[0].rsplit(":", 1)
        self._broker = (host, int(port))
        self._seed = seed
        self._apis = apis
        self._without = without
        self._counts: Counter[int] = Counter()
        dice = random.Random(f"{seed} how")
        self._share = dice.choice((0.3, 1.0))
        # Whether an API always tells the same lie, so that asking again does not help.
        self._is_stubborn = dice.random() < 0.5
        self.is_lying = False
        self.told: list[Told] = []
        self.port = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def servers(self) -> str:
        """Bootstrap servers, by way of the proxy."""
        return f"{_HOST}:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, _HOST, 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *error: object) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.set_name("proxy")
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            above, below = await asyncio.open_connection(*self._broker)
            self._writers.add(below)
            asked: deque[tuple[int, int, int]] = deque()
            with suppress(OSError, asyncio.IncompleteReadError):
                async with asyncio.TaskGroup() as group:
                    group.create_task(
                        self._requests(reader, below, writer, asked), name="proxy"
                    )
                    group.create_task(
                        self._answers(above, writer, below, asked), name="proxy"
                    )
        except (OSError, ExceptionGroup):
            pass
        finally:
            writer.transport.abort()
            self._tasks.discard(task)
            self._writers.discard(writer)

    async def _requests(
        self,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        other: asyncio.StreamWriter,
        asked: deque[tuple[int, int, int]],
    ) -> None:
        frames = FrameBuffer(_MAX_FRAME)
        while data := await source.read(_READ_BYTES):
            for frame in frames.feed(data):
                head = bytes(frame[:8])
                key, version = (
                    int.from_bytes(head[0:2], "big"),
                    int.from_bytes(head[2:4], "big"),
                )
                asked.append((key, version, int.from_bytes(head[4:8], "big")))
                sink.write(len(frame).to_bytes(4, "big") + bytes(frame))
            await sink.drain()
        sink.transport.abort()
        other.transport.abort()

    async def _answers(
        self,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        other: asyncio.StreamWriter,
        asked: deque[tuple[int, int, int]],
    ) -> None:
        frames = FrameBuffer(_MAX_FRAME)
        while data := await source.read(_READ_BYTES):
            for frame in frames.feed(data):
                sink.write(self._rewritten(*asked.popleft(), bytes(frame)))
            await sink.drain()
        sink.transport.abort()
        other.transport.abort()

    def _rewritten(self, key: int, version: int, number: int, frame: bytes) -> bytes:
        plain = len(frame).to_bytes(4, "big") + frame
        is_target = self.is_lying and (self._apis is None or key in self._apis)
        if key == ApiKey.API_VERSIONS:
            is_target = is_target and self._apis is not None
        if not (is_target or key in _NAMES_BROKERS):
            return plain
        answer: Any = decode_response(request_type(key).response_type(), version, frame)
        for name in _NAMES_BROKERS.get(key, ()):
            for each in (answer, *(getattr(answer, name, None) or ())):
                if getattr(each, "port", 0) > 0:
                    each.host, each.port = _HOST, self.port
        lies: list[Lie] = []
        honest = encode_response(answer, version, number)
        if is_target:
            at = self._counts[key]
            self._counts[key] += 1
            dice = random.Random(f"{self._seed} {key} {0 if self._is_stubborn else at}")
            if random.Random(f"{self._seed} {key} {at} if").random() < self._share:
                lies = lie_about(answer, version, dice, self._without)
        if not lies:
            return honest
        try:
            changed = encode_response(answer, version, number)
        except (KafkaError, ValueError, OverflowError):
            return honest  # this cannot be said in that version
        self.told.append(Told(ApiKey(key).name, version, lies))
        return changed
