"""The same requests to the embedded broker and to a real Kafka."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from kafkaio.protocol._headers import (
    decode_api_versions,
    decode_response,
    encode_request,
)
from kafkaio.protocol._message import Request, Response, ResponseT
from kafkaio.protocol.messages.api_versions import ApiVersionsRequest
from tests.integration.differential.plain import Names, Plain, differences

#: How long the two may take to come to the same.
PATIENCE: Final = 5.0
_TOLD: Final = 24
_ANYONE: Final = "anyone"
_LONGEST_LINE: Final = 1500

#: A request, or what makes it when a broker's own names must be inside bytes.
Ask = Request[Response] | Callable[[Names], Request[Response]]
#: What leaves out of an answer what is not compared.
Pick = Callable[[Plain], Plain]


class Difference(AssertionError):
    """The two brokers do not answer alike; the message shows where and after what."""


class Link(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self.frames: deque[bytes] = deque()
        self.is_lost = False
        self._data = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        while len(self._data) >= 4:
            end = 4 + int.from_bytes(self._data[:4])
            if len(self._data) < end:
                return
            self.frames.append(bytes(self._data[4:end]))
            del self._data[:end]

    def connection_lost(self, cause: Exception | None) -> None:
        del cause
        self.is_lost = True

    def send(self, frame: bytes) -> None:
        assert self._transport is not None
        self._transport.write(frame)

    def close(self) -> None:
        assert self._transport is not None
        self._transport.abort()


@dataclass(frozen=True, slots=True)
class Guarded:
    """A listener of one node that wants to know who comes.

    Attributes:
        server: its host and port.
        context: returns the TLS context of a user.
    """

    server: str
    context: Callable[[str], ssl.SSLContext]


class Side:
    """One of the brokers: its nodes, its connections and its own names.

    Args:
        servers: its nodes, for whoever asks.
        guarded: where users connect: all but ``anyone``.
    """

    def __init__(self, servers: str, guarded: Guarded | None = None) -> None:
        parts = [server.rpartition(":") for server in servers.split(",")]
        self._addresses = [(host, int(port)) for host, _, port in parts]
        self._guarded = guarded
        self.names = Names()
        self._links: dict[str, Link] = {}

    async def link(self, who: str) -> Link:
        """The connection of somebody; ``who@2`` is connected to the second node."""
        found = self._links.get(who)
        if found is None or found.is_lost:
            loop = asyncio.get_running_loop()
            address = self._addresses[int(who.partition("@")[2] or 1) - 1]
            context = None
            if self._guarded is not None and who != _ANYONE:
                host, _, port = self._guarded.server.rpartition(":")
                address, context = (host, int(port)), self._guarded.context(who)
            _, found = await loop.create_connection(Link, *address, ssl=context)
            self._links[who] = found
        return found

    async def ask(
        self, request: Request[ResponseT], version: int, who: str = "alone"
    ) -> ResponseT:
        """Ask this broker alone."""
        link = await self.link(who)
        link.send(encode_request(request, version, 7, who))
        async with asyncio.timeout(PATIENCE):
            while not link.frames:  # noqa: ASYNC110  (a link has no event to wait for)
                await asyncio.sleep(0.001)
        kind = request.response_type()
        return decode_response(kind, version, link.frames.popleft())

    def hang_up(self, who: str) -> None:
        link = self._links.pop(who, None)
        if link is not None and not link.is_lost:
            link.close()

    def close(self) -> None:
        for link in self._links.values():
            if not link.is_lost:
                link.close()


@dataclass(frozen=True, slots=True)
class Question:
    """What both are asked, and how.

    Attributes:
        ask: the request.
        version: in which version.
        who: on whose connection, with ``@`` and the number of a node.
        pick: leaves out of an answer what is not this script's.
        before: a request that is not answered, sent in front, and its version.
    """

    ask: Ask
    version: int
    who: str = _ANYONE
    pick: Pick | None = None
    before: tuple[Ask, int] | None = None


class Waiting:
    """A question that was put to both and may not have been answered yet."""

    def __init__(self, question: Question) -> None:
        ask = question.ask
        self.question = question
        self.request = ask if isinstance(ask, Request) else ask(Names())
        #: The answer, once both have given the same.
        self.answer: Plain = None
        self._links: list[Link] = []
        self._sides: list[Side] = []

    @property
    def label(self) -> str:
        """What was asked, on one line."""
        who, before = self.question.who, self.question.before
        told = f"{who} v{self.question.version} {_short(self.request)}"
        if before is None:
            return told
        ask, version = before
        first = ask if isinstance(ask, Request) else ask(Names())
        return f"{who} v{version} {_short(first)}, then {told}"

    def answered(self) -> list[bool]:
        """Say which of the two have answered, or hung up."""
        return [bool(one.frames) or one.is_lost for one in self._links]

    async def send(self, side: Side) -> None:
        question = self.question
        link = await side.link(question.who)
        asks = [(question.ask, question.version)]
        if question.before is not None:
            asks.insert(0, question.before)
        link.send(b"".join(self._frame(side.names, *one) for one in asks))
        self._links.append(link)
        self._sides.append(side)

    def _frame(self, names: Names, ask: Ask, version: int) -> bytes:
        request = deepcopy(ask) if isinstance(ask, Request) else ask(names)
        return encode_request(names.real(request), version, 7, self.question.who)

    def take(self) -> list[Plain]:
        """Return both answers; a broken connection is one, too."""
        return [
            self._read(side, link.frames.popleft()) if link.frames else "hung up"
            for side, link in zip(self._sides, self._links, strict=True)
        ]

    def _read(self, side: Side, frame: bytes) -> Plain:
        version = self.question.version
        if isinstance(self.request, ApiVersionsRequest):
            return side.names.plain(decode_api_versions(version, frame))
        kind = self.request.response_type()
        return side.names.plain(decode_response(kind, version, frame))


class Pair:
    """Both brokers. Whatever is asked must be answered alike, or it raises."""

    def __init__(self, embedded: Side, real: Side) -> None:
        self.sides = [embedded, real]
        #: The stand-ins of topic ids, by the names of topics.
        self.ids: dict[str, UUID] = {}
        self._waiting: list[Waiting] = []
        self._told: deque[str] = deque(maxlen=_TOLD)

    async def start(self, question: Question) -> Waiting:
        """Ask both something whose answer may take its time; then ``settle``."""
        waiting = Waiting(question)
        self._told.append(waiting.label)
        for side in self.sides:
            await waiting.send(side)
        self._waiting.append(waiting)
        return waiting

    async def ask(
        self, ask: Ask, version: int, who: str = _ANYONE, pick: Pick | None = None
    ) -> Plain:
        """Put a `Question` of these to both, as `answer` does."""
        return await self.answer(Question(ask, version, who, pick))

    async def answer(self, question: Question) -> Plain:
        """Ask both something that is answered at once.

        Raises:
            Difference: the answers are not the same.
        """
        waiting = await self.start(question)
        await self._until(lambda: all(waiting.answered()), waiting)
        self._compare(waiting)
        return waiting.answer

    async def agree(
        self, ask: Ask, version: int, who: str = _ANYONE, pick: Pick | None = None
    ) -> Plain:
        """Ask until both answer the same: of what takes its time to get round.

        Raises:
            Difference: the answers remain different.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE
        while True:
            kept = [side.names.copy() for side in self.sides]
            try:
                return await self.ask(ask, version, who, pick)
            except Difference:
                # What only one of them has shown must not get a stand-in.
                for side, names in zip(self.sides, kept, strict=True):
                    side.names = names
                if loop.time() > until:
                    raise
            await asyncio.sleep(0.02)

    async def settle(self) -> None:
        """Wait until the same requests are answered by both, and compare the answers.

        Raises:
            Difference: one answers what the other does not, or something else.
        """
        await asyncio.sleep(0.01)
        await self._until(
            lambda: all(len(set(one.answered())) == 1 for one in self._waiting),
            *self._waiting,
        )
        for waiting in list(self._waiting):
            if all(waiting.answered()):
                self._compare(waiting)

    @contextmanager
    def named(self, name: str) -> Iterator[None]:
        """Have a difference tell in which script it was found."""
        try:
            yield
        except Difference as found:
            raise Difference(f"{name}: {found}") from None

    def hang_up(self, who: str) -> None:
        """End somebody's connections, and wait for none of their answers any more."""
        self._waiting = [one for one in self._waiting if one.question.who != who]
        for side in self.sides:
            side.hang_up(who)

    def close(self) -> None:
        """End all connections."""
        for side in self.sides:
            side.close()

    async def _until(self, condition: Callable[[], bool], *asked: Waiting) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                while not condition():  # noqa: ASYNC110  (two connections may change)
                    await asyncio.sleep(0.001)
        except TimeoutError:
            open_ = [
                f"{one.label}\n    answered by embedded, real: {one.answered()}"
                for one in asked
                if not all(one.answered())
            ]
            raise self._difference(open_) from None

    def _compare(self, waiting: Waiting) -> None:
        self._waiting.remove(waiting)
        ours, real = waiting.take()
        pick = waiting.question.pick
        if pick is not None and "hung up" not in {str(ours), str(real)}:
            ours, real = pick(ours), pick(real)
        found = differences(ours, real, type(waiting.request).__name__)
        if found:
            raise self._difference([waiting.label, *found])
        waiting.answer = real
        self._told.append(f"    = {_short(real)}")

    def _difference(self, lines: list[str]) -> Difference:
        before = "\n".join(f"  {line}" for line in self._told)
        return Difference("\n".join([*lines, "after", before]))


def _short(answer: object) -> str:
    """Return an answer on one line, what is long in it cut."""
    return re.sub(r"(.)\1{40,}", r"\1...", repr(answer))[:_LONGEST_LINE]


@asynccontextmanager
async def paired(embedded: str | Side, real: str | Side) -> AsyncIterator[Pair]:
    """Connect to both for the time of a script; text is where their nodes are."""
    sides = [Side(one) if isinstance(one, str) else one for one in (embedded, real)]
    pair = Pair(*sides)
    try:
        yield pair
    finally:
        pair.close()
