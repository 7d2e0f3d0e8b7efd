"""A schema registry over HTTP, as small as a test needs it, with faults.

It speaks HTTP/1.1 by hand over asyncio, so that a test decides about each byte: what
is cut off, what hangs, what lies. It knows no compatibility rules; a test that wants a
refusal says so.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, unquote
from uuid import UUID, uuid5

#: The GUID of a schema is made from its text.
_NAMESPACE = UUID("00000000-0000-0000-0000-00000000cafe")
_JSON = "application/vnd.schemaregistry.v1+json"


@dataclass(frozen=True)
class Asked:
    """A request that came."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(self.target.partition("?")[2]))

    @property
    def parts(self) -> list[str]:
        return [unquote(part) for part in self.path.strip("/").split("/")]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Answer:
    """What goes back. `raw` replaces all of it, and is the last on its connection."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    stays_open: bool = False

    def encoded(self) -> bytes:
        if self.raw is not None:
            return self.raw
        headers = {
            "Content-Type": _JSON,
            "Content-Length": str(len(self.body)),
            **self.headers,
        }
        lines = [f"HTTP/1.1 {self.status} Status"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode() + self.body


def answer(value: object, status: int = 200, **headers: str) -> Answer:
    """An answer of JSON."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Answer(status, json.dumps(value).encode(), named)


def refusal(status: int, code: int | None = None, message: str = "no") -> Answer:
    """An error, as registries write it."""
    return answer({"error_code": code or status, "message": message}, status)


#: What a test may put in the place of an answer; None closes the connection.
Fault = Answer | None | Callable[[Asked], Awaitable[Answer | None]]


async def honest(asked: Asked) -> Answer | None:
    """What is no fault."""
    raise AssertionError(asked)


class FakeRegistry:
    """A registry on a port of its own.

    Attributes:
        asked: every request, in the order in which they came.
        faults: what the next requests get in the place of an answer, one each.
        always: what every request gets, once there are no more faults.
        connections: how many were accepted.
        open: how many are open.
        has_guids: whether answers have GUIDs, and versions, as of Confluent's 8.
        level: the compatibility of the registry.
    """

    def __init__(
        self, *, has_guids: bool = False, context: ssl.SSLContext | None = None
    ) -> None:
        self.asked: list[Asked] = []
        self.faults: deque[Fault] = deque()
        self.always: Fault = honest
        self.connections = 0
        self.open = 0
        self.has_guids = has_guids
        self.level = "BACKWARD"
        self.levels: dict[str, str] = {}
        self.schemas: list[dict[str, Any]] = []
        self.subjects: dict[str, list[int]] = {}
        self.changed = asyncio.Condition()
        self._context = context
        self._server: asyncio.Server
        self._writers: set[asyncio.StreamWriter] = set()
        self._gone = asyncio.Event()
        self.port = 0

    @property
    def url(self) -> str:
        scheme = "https" if self._context else "http"
        return f"{scheme}://localhost:{self.port}"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen, at the same port as before."""
        self._gone.clear()
        self._server = await asyncio.start_server(
            self._serve, "localhost", self.port, ssl=self._context
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close the port and every connection."""
        self._server.close()
        self._gone.set()
        for writer in [*self._writers]:
            writer.transport.abort()
        await self.until(lambda: not self.open)
        await self._server.wait_closed()

    async def hang(self, asked: Asked) -> None:
        """A fault: no answer, until the registry is stopped."""
        del asked
        await self._gone.wait()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition, which a request or the end of a connection changes."""
        async with self.changed:
            await self.changed.wait_for(condition)

    def add(self, subject: str, text: str, **more: Any) -> int:
        """Register a schema; return its id."""
        schema = {"schema": text, **more}
        if schema not in self.schemas:
            self.schemas.append(schema)
        found = self.schemas.index(schema) + 1
        versions = self.subjects.setdefault(subject, [])
        if found not in versions:
            versions.append(found)
        return found

    async def _note(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.connections += 1
        self.open += 1
        self._writers.add(writer)
        try:
            while asked := await _read(reader):
                self.asked.append(asked)
                await self._note()
                given = await self._answer(asked)
                if given is None:
                    return
                writer.write(given.encoded())
                await writer.drain()
                if given.stays_open:
                    await self._gone.wait()
                if given.raw is not None:
                    return
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open -= 1
            self._writers.discard(writer)
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
            await self._note()

    async def _answer(self, asked: Asked) -> Answer | None:
        fault = self.faults.popleft() if self.faults else self.always
        if fault is honest:
            return self._honest(asked)
        if fault is None or isinstance(fault, Answer):
            return fault
        return await fault(asked)

    def _honest(self, asked: Asked) -> Answer:
        first, *rest = asked.parts
        if asked.method == "GET" and first == "schemas" and len(rest) == 2:
            return self._by_id(*rest)
        if first == "subjects":
            return self._of_subjects(asked, rest)
        if asked.method == "POST" and first == "compatibility":
            if rest[1] not in self.subjects:
                return refusal(404, 40401, "Subject not found.")
            return answer({"is_compatible": True})
        if first == "config":
            return self._config(asked.method, "".join(rest), asked)
        return refusal(404, 404, "HTTP 404 Not Found")

    def _of_subjects(self, asked: Asked, rest: list[str]) -> Answer:
        if not rest:
            return answer([*self.subjects])
        subject, *version = rest
        if asked.method == "DELETE":
            return self._delete(subject, version)
        if asked.method == "POST" and not version:
            return self._look_up(subject, asked.json)
        return self._versions(asked.method, subject, version[1:], asked)

    def guid(self, number: int) -> UUID:
        """The GUID of a schema."""
        return uuid5(_NAMESPACE, json.dumps(self.schemas[number - 1]))

    def _by_id(self, kind: str, given: str) -> Answer:
        if kind == "guids" and not self.has_guids:
            return refusal(404, 404, "HTTP 404 Not Found")
        for number, schema in enumerate(self.schemas, 1):
            if given in {str(number), str(self.guid(number))}:
                more = {"guid": str(self.guid(number))} if self.has_guids else {}
                return answer({**schema, **more})
        return refusal(404, 40403, f"Schema {given} not found")

    def _registered(self, subject: str, number: int) -> Answer:
        more = {"guid": str(self.guid(number))} if self.has_guids else {}
        return answer(
            {
                "subject": subject,
                "version": self.subjects[subject].index(number) + 1,
                "id": number,
                **self.schemas[number - 1],
                **more,
            }
        )

    def _look_up(self, subject: str, schema: Any) -> Answer:
        if subject not in self.subjects:
            return refusal(404, 40401, f"Subject '{subject}' not found.")
        if schema in self.schemas:
            number = self.schemas.index(schema) + 1
            if number in self.subjects[subject]:
                return self._registered(subject, number)
        return refusal(404, 40403, "Schema not found")

    def _versions(
        self, method: str, subject: str, version: list[str], asked: Asked
    ) -> Answer:
        if method == "POST":
            given = asked.json
            number = self.add(subject, given.pop("schema"), **given)
            if self.has_guids:
                return self._registered(subject, number)
            return answer({"id": number})
        if subject not in self.subjects:
            return refusal(404, 40401, f"Subject '{subject}' not found.")
        numbers = self.subjects[subject]
        if not version:
            return answer([*range(1, len(numbers) + 1)])
        if version == ["latest"]:
            return self._registered(subject, numbers[-1])
        if not 0 < int(version[0]) <= len(numbers):
            return refusal(404, 40402, f"Version {version[0]} not found.")
        return self._registered(subject, numbers[int(version[0]) - 1])

    def _delete(self, subject: str, version: list[str]) -> Answer:
        if subject not in self.subjects:
            return refusal(404, 40401, f"Subject '{subject}' not found.")
        if version:
            del self.subjects[subject][int(version[1]) - 1]
            return answer(int(version[1]))
        return answer([*range(1, len(self.subjects.pop(subject)) + 1)])

    def _config(self, method: str, subject: str, asked: Asked) -> Answer:
        if method == "PUT":
            if subject:
                self.levels[subject] = asked.json["compatibility"]
            else:
                self.level = asked.json["compatibility"]
            return answer(asked.json)
        return answer({"compatibilityLevel": self.levels.get(subject, self.level)})


async def _read(reader: asyncio.StreamReader) -> Asked | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")[:-2]
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines)
    }
    method, target, _ = first.split(" ")
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Asked(method, target, headers, body)
