"""How the key and the value of a record are deserialized, by its topic.

A topic that was subscribed to as a `kafkaio.Topic` has serdes of its own; the records
of all others are deserialized by the options. Nothing here waits: where a deserializer
returns a coroutine, the record is `Pending`, and its caller decides who awaits it.

An exception of a deserializer becomes a `DeserializationError`, because the record is
the reason. A `KafkaError` that is retriable passes as it is, and so does a
`RegistryError` that is not about a schema: a registry that is down, or refuses the
login, says nothing about the record.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from inspect import CORO_CREATED, getcoroutinestate
from types import CoroutineType
from typing import TYPE_CHECKING, Any, TypeAlias

from kafkaio._config import ConsumerConfig, ShareConsumerConfig
from kafkaio._consumer.batch import ToArrow, ToColumns
from kafkaio._records.batch import converted
from kafkaio._runtime.scopes import move_on_after
from kafkaio._topic import DeserializationContext, Topic
from kafkaio.errors import (
    ClosedError,
    DeserializationError,
    KafkaError,
    RegistryError,
    RequestTimeout,
    SchemaError,
)
from kafkaio.types import Record

if TYPE_CHECKING:
    from kafkaio._config.serdes import Call

#: Deserializes a record, or begins to.
Deserialize: TypeAlias = "Callable[[Record], Record | Pending]"
#: Awaits the coroutine of a deserializer, where it is to run.
Awaits: TypeAlias = Callable[[Callable[[], Awaitable[object]]], Awaitable[object]]


class Rule:
    """How the records of a topic are deserialized.

    Args:
        key: the deserializer of keys; None to leave them as bytes.
        value: the deserializer of values; likewise.
        option: the text that follows ``key`` and ``value`` where an error names them.

    Attributes:
        key: how the deserializer of keys is called.
        value: how that of values is called.
        to_columns: how whole batches become columns; None if no deserializer does that.
    """

    __slots__ = ("_option", "_plain", "key", "to_columns", "value")

    key: Call | None
    value: Call | None

    def __init__(self, key: object, value: object, option: str = "") -> None:
        self.key, self.value = _call_of(key), _call_of(value)
        self._option = option
        # Of values and of keys, the last type that was found not to be awaitable: most
        # have one type, and to look for `__await__` costs half as much as all the rest.
        self._plain: list[type] = [bytes, bytes]
        of_key, of_value = _to_arrow(key), _to_arrow(value)
        self.to_columns: ToColumns | None = (
            None if of_key is None and of_value is None else ToColumns(of_key, of_value)
        )

    def begin(self, record: Record, *, is_key: bool) -> object:
        """Return a key or a value deserialized, or a coroutine that returns it.

        Raises:
            DeserializationError: the deserializer raised.
            KafkaError: it raised this, which says nothing about the record.
            ConfigurationError: it is a function and returned a coroutine.
        """
        call = self.key if is_key else self.value
        data = record.key if is_key else record.value
        if call is None or (data is None and not call.takes_none):
            return data
        try:
            if call.takes_context:
                context = DeserializationContext(record.topic, record.headers, is_key)
                found = call.function(data, context)
            else:
                found = call.function(data)
        except Exception as error:
            failure = failure_of(record, error, is_key=is_key)
            if failure is error:
                raise
            raise failure from error
        kind = type(found)
        if kind is CoroutineType:
            if not call.is_method:
                raise self.refuse(found, is_key=is_key)
        elif kind is not self._plain[is_key] and call.is_method:
            # Futures, and the coroutines of compiled code, have types of their own.
            if hasattr(kind, "__await__"):
                return _result_of(found)
            self._plain[is_key] = kind
        return found

    def refuse(
        self, coroutine: Coroutine[Any, Any, Any], *, is_key: bool
    ) -> KafkaError:
        """Close a coroutine that a function has returned; return the error to raise."""
        from kafkaio._config.serdes import returned_coroutine

        coroutine.close()
        part = "key" if is_key else "value"
        return returned_coroutine(part + self._option, "deserialize")


async def _result_of(awaitable: Awaitable[object]) -> object:
    return await awaitable


class Pending:
    """A record that waits for a coroutine of its deserializer.

    Args:
        owner: the deserializers.
        record: the record.
        rule: how it is deserialized.
        key: its key, if that is deserialized already.
        coroutine: returns the key or the value.
        is_key: whether it is the key.
    """

    __slots__ = ("_coroutine", "_is_key", "_key", "_owner", "_rule", "record")

    def __init__(
        self,
        owner: Deserializers,
        record: Record,
        rule: Rule,
        key: object,
        coroutine: Coroutine[Any, Any, Any],
        *,
        is_key: bool,
    ) -> None:
        self._owner = owner
        self.record: Record = record
        self._rule = rule
        self._key = key
        self._coroutine = coroutine
        self._is_key = is_key

    async def result(self) -> Record:
        """Wait until the record is deserialized, for a limited time.

        Raises:
            DeserializationError: a deserializer raised.
            RequestTimeout: it took longer than ``default_api_timeout_ms``.
            KafkaError: a deserializer raised this; it says nothing about the record.
        """
        with move_on_after(self._owner.timeout):
            return await self.unlimited()
        raise self.too_late()

    def too_late(self) -> RequestTimeout:
        """Return the error of a record that has waited for too long."""
        return RequestTimeout(
            f"a deserializer took longer than default_api_timeout_ms="
            f"{self._owner.timeout * 1000:.0f} for {_place(self.record)}"
        )

    async def unlimited(self) -> Record:
        """Wait until the record is deserialized; the caller has to set a limit.

        Either this or `result` is called, and once.

        Raises:
            DeserializationError: a deserializer raised.
            KafkaError: a deserializer raised this; it says nothing about the record.
        """
        try:
            return await self._result()
        finally:
            self.close()

    async def _result(self) -> Record:
        key = self._key
        if self._is_key:
            key = await self._awaited(self._coroutine, is_key=True)
            value = self._rule.begin(self.record, is_key=False)
            if type(value) is not CoroutineType:
                return converted(self.record, key, value)
            self._coroutine = value
        value = await self._awaited(self._coroutine, is_key=False)
        return converted(self.record, key, value)

    async def _awaited(
        self, coroutine: Coroutine[Any, Any, Any], *, is_key: bool
    ) -> object:
        awaits = self._owner.awaits
        try:
            if awaits is not None:
                return await awaits(lambda: coroutine)
            return await coroutine
        except Exception as error:
            if awaits is not None and isinstance(error, ClosedError):
                # It was cancelled where it ran, which says nothing about the record.
                raise ClosedError(
                    f"the deserializer of {_place(self.record)} was cancelled"
                ) from error
            failure = failure_of(self.record, error, is_key=is_key)
            if failure is error:
                raise
            raise failure from error

    def close(self) -> None:
        """Let go of the coroutine, if nobody has begun to await it."""
        if getcoroutinestate(self._coroutine) == CORO_CREATED:
            self._coroutine.close()


def _call_of(deserializer: object) -> Call | None:
    if deserializer is None:
        return None
    from kafkaio._config.serdes import call_of

    return call_of(deserializer, "deserialize")


class Deserializers:
    """The deserializers of a consumer, by topic.

    Args:
        config: the consumer's options.

    Attributes:
        timeout: seconds that a record may wait.
        awaits: awaits coroutines elsewhere; it takes a function that returns one.
        topics: the topics that have serdes of their own.
        deserialize: deserializes a record, or begins to; None if the records of all
            topics stay as they are.
    """

    def __init__(self, config: ConsumerConfig | ShareConsumerConfig) -> None:
        self.timeout: float = config.default_api_timeout_ms / 1000
        self.awaits: Awaits | None = None
        of_key, of_value = config.key_deserializer, config.value_deserializer
        self._default = Rule(of_key, of_value, "_deserializer")
        self._typed: dict[str, Rule] = {}
        self.topics: Mapping[str, Topic[Any, Any]] = {}
        self.deserialize: Deserialize | None = self._function()

    def use(self, topics: Mapping[str, Topic[Any, Any]]) -> bool:
        """Take the serdes of these topics; return whether anything has changed."""
        if self.topics == topics:
            return False
        self.topics = dict(topics)
        self._typed = {
            name: Rule(topic.key, topic.value) for name, topic in topics.items()
        }
        self.deserialize = self._function()
        return True

    def rule(self, topic: str) -> Rule:
        """Return how the records of a topic are deserialized."""
        return self._typed.get(topic, self._default)

    def without_waiting(
        self, on_failure: Callable[[Record, Exception], None]
    ) -> Callable[[Record], Record | None] | None:
        """Return a function that deserializes where no deserializer ever waits.

        It calls ``on_failure`` with a record and the exception to raise, and returns
        None then.

        Returns:
            None if a deserializer may wait, or takes a context.
        """
        calls = [self._default.key, self._default.value]
        if self._typed or any(call and call.takes_context for call in calls):
            return None
        return _of_functions(self._default, on_failure)

    def _function(self) -> Deserialize | None:
        rules = [self._default, *self._typed.values()]
        if all(rule.key is None and rule.value is None for rule in rules):
            return None
        return self.without_waiting(_raise) or self._by_topic  # type: ignore[return-value]  # it raises

    def _by_topic(self, record: Record) -> Record | Pending:
        rule = self._typed.get(record.topic, self._default)
        key: object = record.key
        value: object = record.value
        if rule.key is not None and (key is not None or rule.key.takes_none):
            key = rule.begin(record, is_key=True)
            if type(key) is CoroutineType:
                return Pending(self, record, rule, None, key, is_key=True)
        if rule.value is not None and (value is not None or rule.value.takes_none):
            value = rule.begin(record, is_key=False)
            if type(value) is CoroutineType:
                return Pending(self, record, rule, key, value, is_key=False)
        return converted(record, key, value)


def _of_functions(
    rule: Rule, on_failure: Callable[[Record, Exception], None]
) -> Callable[[Record], Record | None]:
    # The usual case, functions of the bytes alone, with as few calls as possible.
    of_key = None if rule.key is None else rule.key.function
    of_value = None if rule.value is None else rule.value.function
    of_coroutine = CoroutineType
    of_no_key = rule.key is not None and rule.key.takes_none
    of_no_value = rule.value is not None and rule.value.takes_none

    def deserialize(record: Record) -> Record | None:
        key: object = record.key
        value: object = record.value
        is_key = True
        try:
            if of_key is not None and (key is not None or of_no_key):
                key = of_key(key)
            is_key = False
            if of_value is not None and (value is not None or of_no_value):
                value = of_value(value)
        except Exception as error:  # noqa: BLE001  (raised when it is its turn)
            failure = failure_of(record, error, is_key=is_key)
            if failure is not error:
                failure.__cause__ = error
            on_failure(record, failure)
            return None
        if type(value) is of_coroutine:
            on_failure(record, rule.refuse(value, is_key=False))
            return None
        if of_key is not None and type(key) is of_coroutine:
            on_failure(record, rule.refuse(key, is_key=True))
            return None
        return converted(record, key, value)

    return deserialize


def _raise(record: Record, error: Exception) -> None:
    raise error


def _to_arrow(deserializer: object) -> ToArrow | None:
    method: ToArrow | None = getattr(deserializer, "to_arrow", None)
    return method if callable(method) else None


def is_passing(error: BaseException) -> bool:
    """Whether an error says nothing about the record: a later attempt may succeed."""
    # A registry that refuses the login refuses it for good records: a password that has
    # expired must not send them to a dead letter. A schema is the record's own.
    if isinstance(error, RegistryError) and not isinstance(error, SchemaError):
        return True
    return isinstance(error, KafkaError) and error.retriable


def failure_of(record: Record, error: Exception, *, is_key: bool) -> Exception:
    """Return what reading raises for an exception of a deserializer."""
    if is_passing(error):
        return error
    part = "key" if is_key else "value"
    return DeserializationError(
        f"deserializing the {part} of {_place(record)} failed: {error!r}",
        is_key=is_key,
        record=record,
    )


def _place(record: Record) -> str:
    return f"{record.topic}-{record.partition} at offset {record.offset}"
