"""The client of a schema registry: `Registry`."""

from __future__ import annotations

import asyncio
import json
import math
import ssl
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from types import MappingProxyType, TracebackType
from typing import Any, Final, Literal, NoReturn, Self, TypeVar, get_args
from urllib.parse import quote
from uuid import UUID
from weakref import WeakKeyDictionary

from kafkaio._arguments import count_of, seconds_of
from kafkaio._config import TokenProvider
from kafkaio._dataclass import dataclass
from kafkaio._public import public
from kafkaio._runtime.clock import now
from kafkaio._runtime.loop import running_loop
from kafkaio.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ConfigurationError,
    RegistryError,
    SchemaError,
)
from kafkaio.registry._address import (
    Address,
    addresses_of,
    basic_login,
    proxy_parts,
)
from kafkaio.registry._answers import (
    MAX_INT,
    Where,
    parsed,
    read_compatibility,
    read_level,
    read_names,
    read_numbers,
    read_registered,
    read_schema,
    read_version,
)
from kafkaio.registry._cache import AgingCache, IdentityCache, LruCache
from kafkaio.registry._flights import Flights
from kafkaio.registry._http import Call, Connections, Http, HttpSettings, load_httpcore
from kafkaio.registry._login import Login
from kafkaio.registry._schema import (
    Compatibility,
    CompatibilityLevel,
    RegisteredSchema,
    Schema,
    SchemaReference,
)
from kafkaio.registry._tls import RegistryTls, contexts_of

T = TypeVar("T")

#: The levels of compatibility that registries have.
LEVELS: Final[tuple[CompatibilityLevel, ...]] = get_args(CompatibilityLevel)
#: Schemas that one schema may use, directly or not.
_MOST_REFERENCES: Final = 1_000
#: How deep references may refer to others.
_DEEPEST: Final = 100
_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
_OK: Final = 200
#: Codes of "deleted already, but not permanently".
_ALREADY_DELETED: Final = frozenset((40401, 40402, 40404, 40406))


@public("kafkaio.registry")
@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryStatistics:
    """A snapshot of a `Registry`.

    Attributes:
        requests: requests that were sent, repeated ones included.
        retries: attempts that followed a failed one.
        errors: calls that failed.
        hits: how often a cache had what was asked for.
        misses: how often it had not.
        schemas: schemas that are cached by id or GUID.
        ids: ids that are cached by subject and schema.
        versions: versions of subjects that are cached, the latest ones included.
        unknown: ids and GUIDs that are known not to be there.
        in_flight: requests under way on the running event loop.
    """

    requests: int
    retries: int
    errors: int
    hits: int
    misses: int
    schemas: int
    ids: int
    versions: int
    unknown: int
    in_flight: int


class _Home:
    """What belongs to one event loop."""

    def __init__(self, settings: HttpSettings) -> None:
        self.connections = Connections(settings)
        self.flights = Flights()


@public("kafkaio.registry")
class Registry:
    """A client of a schema registry: Confluent's, or one with the same API.

    ::

        registry = Registry("http://localhost:8081", basic_auth=("user", "secret"))
        found = await registry.register("orders-value", Schema(text))
        schema = await registry.schema(found.id)

    Apicurio has this API at ``/apis/ccompat/v7``, and Karapace at its root. Nothing is
    sent, and no connection is made, before the first call.

    **Caches.** A schema never changes under its id, and is kept. Callers that ask for
    the same at once share one request. `known` and `known_id` never wait.

    **Failures.** A lost connection, a time-out and the statuses 408, 429, 500, 502, 503
    and 504 are tried again, at every URL in turn, then after growing pauses, within
    ``timeout``. ``Retry-After`` is obeyed if it ends within that time. All else fails
    at once. A deletion that may have been done is not sent again.

    **Life.** Connections are open while requests are under way. ``async with`` keeps
    them open for its block, which saves a few milliseconds for each request in it. A
    registry that nobody closes leaves nothing behind. It may be used on several event
    loops, also in several threads at once: its caches are shared, its connections are
    not. It cannot be pickled, because it has a login.

    **Cancellation.** Every method can be cancelled. A request ends with the last caller
    that waits for it.

    Args:
        url: where the registry is: ``http://`` or ``https://``; a list, or several with
            commas between them, for several nodes of it. May have a user and a
            password.
        basic_auth: user and password.
        bearer_token: a token, or an async callable that returns a `kafkaio.types.Token`
            such as `kafkaio.security.ClientCredentials`. Its tokens are used until
            shortly before they end, and given up when the registry refuses one.
        headers: more headers for each request, such as Confluent Cloud's
            ``target-sr-cluster`` and ``Confluent-Identity-Pool-Id``.
        tls: TLS settings for ``https``. Without them the system's authorities are
            trusted.
        proxy: the URL of a proxy, such as ``http://user:password@proxy:3128``. Without
            it, ``https`` goes through the proxy of the environment, if any.
        timeout: seconds for one call with all its attempts.
        retries: how many times all URLs are tried again; 0 or more.
        cache_size: how many schemas, ids and versions are kept of each.
        latest_ttl: seconds for which the latest version of a subject is kept; 0 to ask
            each time, ``math.inf`` for ever, as Confluent's clients do by default.
        unknown_ttl: seconds for which an id that is not there is not asked for again; 0
            to ask each time.
        max_schema_bytes: the largest schema that is sent, and the largest answer.

    Raises:
        ConfigurationError: an argument cannot be used.
        ImportError: httpx is not installed: ``pip install 'kafkaio[registry]'``.
    """

    def __init__(  # noqa: PLR0913 - options, each with a default
        self,
        url: str | Sequence[str],
        *,
        basic_auth: tuple[str, str] | None = None,
        bearer_token: str | TokenProvider | None = None,
        headers: Mapping[str, str] = _NO_HEADERS,
        tls: ssl.SSLContext | RegistryTls | None = None,
        proxy: str | None = None,
        timeout: float = 10.0,
        retries: int = 3,
        cache_size: int = 1000,
        latest_ttl: float = 60.0,
        unknown_ttl: float = 30.0,
        max_schema_bytes: int = 4 * 1024 * 1024,
    ) -> None:
        if find_spec("httpcore") is None:
            load_httpcore()
        addresses = addresses_of(url)
        limit = _time_limit(timeout)
        # Half of the time, so that a token that is about to end can be used still if no
        # other one comes.
        basic = _basic(basic_auth, addresses)
        login = Login(basic, bearer_token, headers, limit / 2)
        if bearer_token is not None and any(each.basic for each in addresses):
            raise ConfigurationError("give one of bearer_token and a user in the url")
        self._settings = HttpSettings(
            addresses=addresses,
            timeout=limit,
            retries=_retries(retries),
            max_bytes=count_of("max_schema_bytes", max_schema_bytes, 1),
            proxy=_proxy(proxy),
            context=contexts_of(tls, addresses),
        )
        self._login = login
        self._http = Http(self._settings, login)
        self._errors = 0
        size = count_of("cache_size", cache_size, 1)
        latest_life = seconds_of("latest_ttl", latest_ttl)
        unknown_life = seconds_of("unknown_ttl", unknown_ttl)
        # By id or GUID; by context and id for schemas of another context.
        self._schemas: LruCache[int | UUID | tuple[str, int], Schema] = LruCache(size)
        self._ids: LruCache[tuple[str, Schema], RegisteredSchema] = LruCache(size)
        # The same for the very same object.
        self._same: IdentityCache[Schema, RegisteredSchema] = IdentityCache(size)
        self._versions: LruCache[tuple[str, int], RegisteredSchema] = LruCache(size)
        self._latest: AgingCache[str, RegisteredSchema] = AgingCache(size, latest_life)
        self._unknown: AgingCache[int | UUID | tuple[str, int], SchemaError]
        self._unknown = AgingCache(size, unknown_life)
        self._homes: WeakKeyDictionary[asyncio.AbstractEventLoop, _Home]
        self._homes = WeakKeyDictionary()

    @classmethod
    def from_properties(cls, properties: Mapping[str, object]) -> Self:
        """Make a registry from the properties of Confluent's clients.

        Names are those of Java and Python, with ``schema.registry.`` before them or
        without: ``url``, ``basic.auth.user.info``, ``bearer.auth.token``,
        ``ssl.truststore.location``, ... Values may be of their own type or strings.

        Raises:
            ConfigurationError: a property is unknown or cannot be read. Those of
                serializers are options of `Avro`, `JsonSchema` and `Protobuf`.
        """
        from kafkaio.registry._properties import read_properties

        return cls(**read_properties(properties))

    def __repr__(self) -> str:
        urls = ", ".join(address.url for address in self._settings.addresses)
        kept = f"{len(self._schemas)} schemas, {len(self._ids)} ids"
        return f"<Registry {urls} login={self._login.kind} | {kept}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Registry cannot be pickled or copied: it has a login. Make one in each "
            "process"
        )

    async def __aenter__(self) -> Self:
        """Keep connections open until the end of the block."""
        self._home().connections.hold()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._home().connections.release()

    async def close(self) -> None:
        """Close the connections of this event loop that no request uses.

        The registry may be used afterwards. It never has to be closed.
        """
        await self._home().connections.release(every=True)

    def statistics(self) -> RegistryStatistics:
        """Return a snapshot. May be called without an event loop."""
        caches = (self._schemas, self._ids, self._versions, self._latest)
        try:
            home = self._homes.get(asyncio.get_running_loop())
        except RuntimeError:
            home = None
        return RegistryStatistics(
            requests=self._http.requests,
            retries=self._http.retries,
            errors=self._errors,
            hits=self._same.hits + sum(cache.hits for cache in caches),
            misses=sum(cache.misses for cache in caches),
            schemas=len(self._schemas),
            ids=len(self._ids),
            versions=len(self._versions) + len(self._latest),
            unknown=len(self._unknown),
            in_flight=len(home.flights) if home else 0,
        )

    # ---- what is cached --------------------------------------------------------------

    def known(self, schema_id: int | UUID) -> Schema | None:
        """Return a schema that is cached by its id or GUID, else None; never waits."""
        return self._schemas.get(schema_id)

    def known_id(self, subject: str, schema: Schema) -> RegisteredSchema | None:
        """Return what is cached of a registered schema, else None; never waits."""
        found = self._same.get(subject, schema)
        if found is None:
            found = self._ids.get((subject, schema))
            if found is not None:
                self._same.put(subject, schema, found)
        return found

    def known_latest(self, subject: str) -> RegisteredSchema | None:
        """Return the latest version of a subject, if it is cached; never waits.

        None also if it was cached more than ``latest_ttl`` seconds ago. Needs a running
        event loop.
        """
        return self._latest.get(subject, now())

    # ---- schemas by id ---------------------------------------------------------------

    async def schema(self, schema_id: int, *, subject: str = "") -> Schema:
        """Return the schema of an id; asks the registry once for each.

        An id that is not there is not asked for again for ``unknown_ttl`` seconds.

        Args:
            schema_id: the id.
            subject: a subject that has the schema, for ids of another context
                (``:.context:subject``).

        Raises:
            SchemaError: no schema has this id.
            RegistryError: the registry failed; ``retriable`` says whether that may
                pass.
        """
        if isinstance(schema_id, bool) or not isinstance(schema_id, int):
            raise ArgumentTypeError(f"schema_id must be an int, not {schema_id!r}")
        if not 0 <= schema_id <= MAX_INT:
            raise SchemaError("", f"{schema_id} is not the id of a schema")
        context = _context(subject)
        key = (context, schema_id) if context else schema_id
        query = (("subject", subject),) if subject else ()
        return await self._by_key(key, f"/schemas/ids/{schema_id}", query, schema_id)

    async def schema_by_guid(self, guid: UUID) -> Schema:
        """Return the schema of a GUID, as `schema`; Confluent's registry 8 has them.

        Raises:
            SchemaError: no schema has this GUID.
            RegistryError: as in `schema`; also from a registry without GUIDs.
        """
        if not isinstance(guid, UUID):
            raise ArgumentTypeError(f"guid must be a UUID, not {guid!r}")
        return await self._by_key(guid, f"/schemas/guids/{guid}", (), guid)

    async def _by_key(
        self,
        key: int | UUID | tuple[str, int],
        path: str,
        query: tuple[tuple[str, str], ...],
        asked: int | UUID,
    ) -> Schema:
        found = self._schemas.get(key)
        if found is not None:
            return found
        unknown = self._unknown.get(key, now())
        if unknown is not None:
            raise SchemaError(
                unknown.subject,
                unknown.reason,
                status=unknown.status,
                code=unknown.code,
            )

        async def ask() -> Schema:
            try:
                schema = await self._fetch(
                    Call("GET", path, query), partial(read_schema, asked=asked)
                )
            except SchemaError as error:
                self._unknown.put(key, error, now())
                raise
            self._schemas.put(key, schema)
            return schema

        return await self._join(("schema", key), ask)

    async def references(self, schema: Schema) -> Mapping[str, Schema]:
        """Return the schemas that a schema uses, directly or not, by their names.

        Each comes after those that it uses itself.

        Raises:
            SchemaError: one is not there, two of one name differ, they refer to each
                other in a circle, or there are 1,000 of them, or they are 100 deep.
            RegistryError: as in `schema`; the time limit is for all of them.
        """
        found: dict[str, RegisteredSchema] = {}
        limit = asyncio.timeout(self._settings.timeout)
        try:
            async with limit:
                await self._collect(schema, found, ())
        except TimeoutError:
            if not limit.expired():
                raise
        if limit.expired():
            raise RegistryError(
                f"the references of a schema did not come within "
                f"{self._settings.timeout:g} s: {len(found)} have",
                retriable=True,
            )
        return {name: each.schema for name, each in found.items()}

    async def _collect(
        self, schema: Schema, found: dict[str, RegisteredSchema], path: tuple[str, ...]
    ) -> None:
        for reference in schema.references:
            name, subject = reference.name, reference.subject
            if name in path:
                raise SchemaError(subject, f"references go in a circle by {name!r}")
            if len(path) >= _DEEPEST or len(found) >= _MOST_REFERENCES:
                raise SchemaError(
                    subject,
                    f"a schema has references {_DEEPEST} deep, or {_MOST_REFERENCES} "
                    "of them",
                )
            registered = await self.version(subject, reference.version)
            if (other := found.get(name)) is not None:
                _check_same(reference, registered, other)
                continue
            await self._collect(registered.schema, found, (*path, name))
            found[name] = registered

    # ---- subjects --------------------------------------------------------------------

    async def register(
        self, subject: str, schema: Schema, *, normalize: bool = False
    ) -> RegisteredSchema:
        """Register a schema under a subject; return it with its version and id.

        One that is registered already is found, and not registered again.

        Args:
            subject: the subject, such as ``orders-value``.
            schema: the schema, with its references.
            normalize: whether the registry compares and keeps its normal form.

        Raises:
            SchemaError: the schema is invalid, or not compatible with the versions
                before it (status 409).
            RegistryError: as in `schema`.
        """
        return await self._registered(subject, schema, "register", normalize=normalize)

    async def lookup(
        self, subject: str, schema: Schema, *, normalize: bool = False
    ) -> RegisteredSchema:
        """Return a schema with its version and id, if a subject has it.

        Args:
            subject: the subject.
            schema: the schema, with its references.
            normalize: whether the registry compares its normal form.

        Raises:
            SchemaError: the subject or the schema in it is not there.
            RegistryError: as in `schema`.
        """
        return await self._registered(subject, schema, "lookup", normalize=normalize)

    async def prepare(
        self, subject: str, schema: Schema, *, register: bool = True
    ) -> RegisteredSchema:
        """Register a schema or look it up, so that `known_id` and `known` have it.

        To be called at start: what the registry refuses fails here, before anything is
        sent to Kafka.

        Raises:
            SchemaError: as in `register` and `lookup`.
            RegistryError: as in `schema`.
        """
        if register:
            return await self.register(subject, schema)
        return await self.lookup(subject, schema)

    async def _registered(
        self,
        subject: str,
        schema: Schema,
        how: Literal["register", "lookup"],
        *,
        normalize: bool,
    ) -> RegisteredSchema:
        _check_schema(schema)
        name = _segment(subject)
        found = self.known_id(subject, schema)
        if found is not None:
            return found
        body = _body_of(schema)
        if len(body) > self._settings.max_bytes:
            raise SchemaError(
                subject,
                f"the schema has {len(body)} bytes, and "
                f"max_schema_bytes={self._settings.max_bytes} allows no more",
            )
        query = (("normalize", "true"),) if normalize else ()
        lookup = Call("POST", f"/subjects/{name}", query, body, subject)
        register = Call("POST", f"/subjects/{name}/versions", query, body, subject)

        async def ask() -> RegisteredSchema:
            read = partial(read_registered, schema=schema)
            if how == "lookup":
                registered = await self._fetch(lookup, read)
            else:
                registered = await self._fetch(register, read)
                self._latest.drop(subject)
                if not registered.version:
                    registered = await self._completed(registered, lookup, schema)
            self._ids.put((subject, schema), registered)
            self._learn(registered)
            return registered

        return await self._join((how, subject, schema, normalize), ask)

    async def _completed(
        self, registered: RegisteredSchema, lookup: Call, schema: Schema
    ) -> RegisteredSchema:
        """Ask for the version of a schema: older registries answer with the id alone.

        Where a login may register and not read, the id is enough to go on.
        """
        read = partial(read_registered, schema=schema, number=registered.id)
        try:
            return await self._fetch(lookup, read)
        except RegistryError as error:
            if error.retriable or error.status == _OK:
                raise
            return registered

    def _learn(self, found: RegisteredSchema) -> None:
        """Keep what an answer about a subject says about ids and versions."""
        context = _context(found.subject)
        key = (context, found.id) if context else found.id
        self._schemas.put(key, found.schema)
        self._unknown.drop(key)
        if found.guid is not None:
            self._schemas.put(found.guid, found.schema)
            self._unknown.drop(found.guid)
        if found.version:
            self._versions.put((found.subject, found.version), found)

    async def latest(self, subject: str) -> RegisteredSchema:
        """Return the latest version of a subject, at most ``latest_ttl`` seconds old.

        Raises:
            SchemaError: there is no such subject.
            RegistryError: as in `schema`.
        """
        name = _segment(subject)
        found = self._latest.get(subject, now())
        if found is not None:
            return found
        call = Call("GET", f"/subjects/{name}/versions/latest", subject=subject)

        async def ask() -> RegisteredSchema:
            found = await self._fetch(call, read_version)
            self._latest.put(subject, found, now())
            self._learn(found)
            return found

        return await self._join(("latest", subject), ask)

    async def version(self, subject: str, version: int) -> RegisteredSchema:
        """Return a version of a subject, which is cached.

        Raises:
            SchemaError: there is no such subject or version.
            RegistryError: as in `schema`.
        """
        number = _version(version)
        name = _segment(subject)
        found = self._versions.get((subject, number))
        if found is not None:
            return found
        call = Call("GET", f"/subjects/{name}/versions/{number}", subject=subject)

        async def ask() -> RegisteredSchema:
            read = partial(read_version, version=number)
            found = await self._fetch(call, read)
            self._learn(found)
            return found

        return await self._join(("version", subject, number), ask)

    async def versions(self, subject: str, *, deleted: bool = False) -> list[int]:
        """Return the versions of a subject; asks each time.

        Args:
            subject: the subject.
            deleted: whether to return those that are deleted, but not permanently, too.

        Raises:
            SchemaError: there is no such subject.
            RegistryError: as in `schema`.
        """
        path = f"/subjects/{_segment(subject)}/versions"
        call = Call("GET", path, _flags(deleted=deleted), subject=subject)
        return await self._fetch(call, read_numbers)

    async def subjects(self, prefix: str = "", *, deleted: bool = False) -> list[str]:
        """Return the subjects that begin with a text; asks each time.

        Args:
            prefix: the text; ``:*:`` for the subjects of all contexts.
            deleted: as in `versions`.

        Raises:
            RegistryError: as in `schema`.
        """
        if not isinstance(prefix, str):
            raise ArgumentTypeError(f"prefix must be a str, not {prefix!r}")
        query = _flags(deleted=deleted)
        if prefix:
            query = (("subjectPrefix", prefix), *query)
        names = await self._fetch(Call("GET", "/subjects", query), read_names)
        # Not every registry knows the parameter. A context has names of its own.
        if prefix.startswith(":"):
            return names
        return [name for name in names if name.startswith(prefix)]

    async def check(
        self,
        subject: str,
        schema: Schema,
        version: int | Literal["latest"] = "latest",
    ) -> Compatibility:
        """Return whether a schema is compatible with a version of a subject.

        Raises:
            SchemaError: the subject or version is not there, or the schema is invalid.
            RegistryError: as in `schema`.
        """
        _check_schema(schema)
        number = "latest" if version == "latest" else _version(version)
        path = f"/compatibility/subjects/{_segment(subject)}/versions/{number}"
        query = (("verbose", "true"),)
        call = Call("POST", path, query, _body_of(schema), subject)
        return await self._fetch(call, read_compatibility)

    async def delete(
        self, subject: str, version: int | None = None, *, permanent: bool = False
    ) -> list[int]:
        """Delete a version of a subject, or all; return those that were deleted.

        A deleted schema can still be read by its id. With ``permanent`` it cannot, and
        records that were written with it become unreadable.

        Args:
            subject: the subject.
            version: the version; None for all.
            permanent: whether to delete it for good, also what was deleted before.

        Raises:
            SchemaError: there is no such subject or version.
            RegistryError: as in `schema`. A deletion is not repeated where it may have
                been done.
        """
        path = f"/subjects/{_segment(subject)}"
        if version is not None:
            path = f"{path}/versions/{_version(version)}"
        try:
            gone = await self._delete(Call("DELETE", path, subject=subject))
        except SchemaError as error:
            # Registries delete permanently only what was deleted before.
            if not permanent or error.code not in _ALREADY_DELETED:
                raise
            gone = []
        if permanent:
            query = (("permanent", "true"),)
            gone = await self._delete(Call("DELETE", path, query, subject=subject))
        return gone

    async def _delete(self, call: Call) -> list[int]:
        try:
            return await self._fetch(call, read_numbers)
        finally:
            # Also if the answer was lost: it may have been done.
            subject = call.subject
            self._latest.drop(subject)
            self._same.clear()
            self._ids.drop_where(lambda key: key[0] == subject)
            self._versions.drop_where(lambda key: key[0] == subject)

    async def compatibility(self, subject: str | None = None) -> str:
        """Return the level of compatibility of a subject, or of the registry.

        Args:
            subject: the subject; one without a level of its own has the registry's.

        Raises:
            SchemaError: the subject is not there.
            RegistryError: as in `schema`.
        """
        query = () if subject is None else (("defaultToGlobal", "true"),)
        call = Call("GET", _config_path(subject), query, subject=subject or "")
        return await self._fetch(call, read_level)

    async def set_compatibility(
        self, level: CompatibilityLevel, subject: str | None = None
    ) -> None:
        """Set the level of compatibility of a subject, or of the registry.

        Args:
            level: ``BACKWARD``, ``FORWARD`` or ``FULL``, each also with ``_TRANSITIVE``
                for all versions in the place of the last one; ``NONE`` for no check.
            subject: the subject; None for the registry.

        Raises:
            ArgumentValueError: there is no such level.
            RegistryError: as in `schema`.
        """
        if level not in LEVELS:
            raise ArgumentValueError(
                f"level={level!r} is not one of {', '.join(LEVELS)}"
            )
        body = json.dumps({"compatibility": level}).encode()
        await self._fetch(
            Call("PUT", _config_path(subject), (), body, subject or ""), parsed
        )

    # ---- requests --------------------------------------------------------------------

    async def _fetch(self, call: Call, read: Callable[[bytes, Where], T]) -> T:
        home = self._home()
        try:
            body, where = await self._http.ask(call, home.connections, home.flights)
            return read(body, where)
        except RegistryError:
            self._errors += 1
            raise

    async def _join(
        self, key: tuple[object, ...], work: Callable[[], Coroutine[Any, Any, T]]
    ) -> T:
        return await self._home().flights.join(key, work)

    def _home(self) -> _Home:
        loop = running_loop()
        home = self._homes.get(loop)
        if home is None:
            home = self._homes[loop] = _Home(self._settings)
        return home


# ---- arguments -----------------------------------------------------------------------


def _basic(given: tuple[str, str] | None, addresses: tuple[Address, ...]) -> str:
    if given is None:
        return ""
    pair: object = given
    is_pair = isinstance(pair, tuple | list) and len(pair) == 2
    if not is_pair or not all(isinstance(each, str) for each in given):
        raise ConfigurationError("basic_auth must be a user and a password")
    if any(address.basic for address in addresses):
        raise ConfigurationError("give one of basic_auth and a user in the url")
    if ":" in given[0]:
        raise ConfigurationError("basic_auth: the user may not have a colon")
    return basic_login(*given)


def _time_limit(timeout: float) -> float:
    if seconds_of("timeout", timeout) in {0, math.inf}:
        raise ArgumentValueError("timeout must be more than 0 and finite")
    return float(timeout)


def _retries(retries: object) -> int:
    if isinstance(retries, bool) or not isinstance(retries, int):
        raise ArgumentTypeError(f"retries must be an int, not {retries!r}")
    if not 0 <= retries <= 1_000:
        raise ArgumentValueError(f"retries={retries} is not from 0 to 1000")
    return retries


def _proxy(proxy: object) -> str | None:
    if proxy is None:
        return None
    if not isinstance(proxy, str):
        raise ConfigurationError(f"proxy must be a str, not {type(proxy).__name__}")
    if "://" not in proxy:
        raise ConfigurationError(
            "proxy needs a scheme and a host, such as http://proxy:3128"
        )
    proxy_parts(proxy)
    return proxy


def _segment(subject: object) -> str:
    """Return a subject as a part of a path."""
    if not isinstance(subject, str):
        raise ArgumentTypeError(f"subject must be a str, not {subject!r}")
    if not subject:
        raise ArgumentValueError("subject may not be empty")
    try:
        text = quote(subject, safe="")
    except UnicodeEncodeError:
        raise ArgumentValueError(
            f"subject={subject!r} cannot be encoded in UTF-8"
        ) from None
    # Otherwise "." and ".." would be steps in the path.
    return text if text.strip(".") else text.replace(".", "%2E")


def _config_path(subject: str | None) -> str:
    return "/config" if subject is None else f"/config/{_segment(subject)}"


def _version(version: object) -> int:
    if isinstance(version, bool) or not isinstance(version, int):
        raise ArgumentTypeError(f"version must be an int, not {version!r}")
    if not 1 <= version <= MAX_INT:
        raise ArgumentValueError(f"version={version} is not from 1 to {MAX_INT}")
    return version


def _flags(**flags: bool) -> tuple[tuple[str, str], ...]:
    return tuple((name, "true") for name, is_set in flags.items() if is_set)


def _context(subject: str) -> str:
    """Return the context of a subject; empty for the one without a name."""
    if not subject.startswith(":."):
        return ""
    context, colon, _ = subject[1:].partition(":")
    return context if colon and context != "." else ""


def _check_schema(schema: object) -> None:
    if not isinstance(schema, Schema):
        raise ArgumentTypeError(f"schema must be a Schema, not {type(schema).__name__}")


def _check_same(
    reference: SchemaReference, one: RegisteredSchema, other: RegisteredSchema
) -> None:
    if one.schema != other.schema:
        raise SchemaError(
            reference.subject,
            f"two references have the name {reference.name!r} and differ: "
            f"{one.subject!r} version {one.version}, and {other.subject!r} version "
            f"{other.version}",
        )


def _body_of(schema: Schema) -> bytes:
    """Return a schema as a request has it."""
    given: dict[str, object] = {"schema": schema.text}
    # The oldest registries have Avro alone, and do not know these fields.
    if schema.type != "AVRO":
        given["schemaType"] = schema.type
    if schema.references:
        given["references"] = [
            {"name": each.name, "subject": each.subject, "version": each.version}
            for each in schema.references
        ]
    return json.dumps(given).encode()
