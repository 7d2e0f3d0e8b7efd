"""How an option is declared, once, beside its field.

`option` stands where a dataclass field has its default value. The declaration holds
everything that is known of the option, and everything else is derived from it:

- the field of the configuration class, with its default and its checks;
- the names and the text values that ``from_properties`` reads;
- the docstring of the configuration class (`documented`);
- the signatures of ``Client``, ``Producer`` and ``Consumer`` (`signature`);
- the keyword types in ``kafkaio/_config/options.py`` and the table in
  ``docs/reference/options.md``, which ``python -m codegen.options`` writes.

The options of the data source for Spark are declared in the same way
(`kafkaio.spark._declaration`).
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import Field, field
from functools import partial
from inspect import getattr_static, iscoroutinefunction, isfunction
from types import MappingProxyType, NoneType
from typing import TYPE_CHECKING, Any, TypeVar

from kafkaio._dataclass import fields_of
from kafkaio.errors import ConfigurationError

if TYPE_CHECKING:
    # A protocol of typeshed, which does not exist at run time.
    from _typeshed import DataclassInstance

T = TypeVar("T")

#: The types that a value may have, by the annotation of the field without ``| None``.
#: Options of other types have checks of their own.
_TYPES: Mapping[str, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "str": (str,),
    "tuple[tuple[str, int], ...]": (tuple, list),
}
#: librdkafka takes one letter or digit, too.
_FLAGS = {
    **dict.fromkeys(("true", "t", "1"), True),
    **dict.fromkeys(("false", "f", "0"), False),
}


#: Why a text is not of a type; the first type that an option can have.
_NOT_OF_TYPE = (
    (bool, "is neither true nor false"),
    (float, "is not a number"),
    (int, "is not an integer"),
)


class Option:
    """The declaration of one option, apart from its name, its type and its default.

    Only `option` makes one.

    Attributes:
        doc: what the option means: one or more sentences.
        bounds: the least and the greatest value.
        choices: the values that the option can have.
        function: what a function must do to be a value of this option.
        method: a method by which an object can be a value in the place of a function,
            which then is no coroutine function; empty for none.
        kafka_name: the name that Java's client has for it, if that is another one.
        aliases: names that librdkafka has for it, of the same unit.
        synonyms: words that Java or librdkafka have for values, in lower case.
        is_own: whether Kafka's Java client has no such option.
        is_secret: whether no message and no ``repr`` may show the value.
        keyword_type: type of the keyword argument where it is not the field's.
    """

    __slots__ = (
        "aliases",
        "bounds",
        "choices",
        "doc",
        "function",
        "is_own",
        "is_secret",
        "kafka_name",
        "keyword_type",
        "method",
        "synonyms",
    )

    doc: str
    bounds: tuple[float, float] | None
    choices: tuple[str | int | None, ...]
    function: str
    method: str
    kafka_name: str
    aliases: tuple[str, ...]
    is_own: bool
    is_secret: bool
    keyword_type: str
    synonyms: Mapping[str, str | None]

    @property
    def other_names(self) -> tuple[str, ...]:
        """The names beside its own that ``from_properties`` takes for it."""
        return (self.kafka_name, *self.aliases) if self.kafka_name else self.aliases


def option(  # noqa: PLR0913 - one for each fact
    default: T,
    doc: str,
    *,
    bounds: tuple[float, float] | None = None,
    choices: tuple[str | int | None, ...] = (),
    function: str = "",
    method: str = "",
    kafka_name: str = "",
    aliases: tuple[str, ...] = (),
    is_own: bool = False,
    is_secret: bool = False,
    keyword_type: str = "",
    synonyms: Mapping[str, str | None] = MappingProxyType({}),
    more: Mapping[str, object] = MappingProxyType({}),
) -> T:
    """Declare an option, where the field of a dataclass has its default.

    Args:
        default: the default value.
        doc: see `Option`, as for the others.
        bounds: likewise.
        choices: likewise.
        function: likewise.
        method: likewise.
        kafka_name: likewise.
        aliases: likewise.
        is_own: likewise.
        is_secret: likewise.
        keyword_type: likewise.
        synonyms: likewise.
        more: further metadata of the field, for a package above this one.
    """
    declared = Option()
    declared.doc = doc
    declared.bounds = bounds
    declared.choices = choices
    declared.function = function
    declared.method = method
    declared.kafka_name = kafka_name
    declared.aliases = aliases
    declared.is_own = is_own
    declared.is_secret = is_secret
    declared.keyword_type = keyword_type
    declared.synonyms = synonyms
    metadata = {"option": declared, **more}
    return field(default=default, repr=not is_secret, metadata=metadata)


def option_of(declared: Field[Any]) -> Option:
    """Return the declaration of a field."""
    found: Option = declared.metadata["option"]
    return found


def documented(config: type[T]) -> type[T]:
    """Add the options to the docstring of a configuration class.

    The docstring is put together when it is read: most programs never do that.
    """
    # The type of `__doc__` is str; a descriptor there gives one.
    config.__doc__ = _Documentation(config.__doc__ or "")  # type: ignore[assignment]
    return config


class _Documentation:
    __slots__ = ("_summary",)

    def __init__(self, summary: str) -> None:
        self._summary = summary

    def __get__(self, instance: object, owner: type[DataclassInstance]) -> str:
        lines = [self._summary.rstrip(), "", "    Attributes:"]
        for declared in fields_of(owner):
            is_own = declared.name in owner.__annotations__  # not inherited
            if is_own and "option" in declared.metadata:
                text = f"{declared.name}: {option_of(declared).doc}"
                indent = " " * 8
                lines += textwrap.wrap(
                    text, 88, initial_indent=indent, subsequent_indent=indent + "    "
                )
        return "\n".join([*lines, "    "])


def given(config: DataclassInstance, prefix: str) -> list[str]:
    """Return the options whose names begin so and that differ from their defaults."""
    return [
        declared.name
        for declared in fields_of(type(config))
        if declared.name.startswith(prefix)
        and getattr(config, declared.name) != declared.default
    ]


def check_value(declared: Field[Any], value: object, name: str = "") -> None:
    """Check the value of one option: its type, its bounds, its choices.

    Args:
        declared: the field of the option.
        value: its value.
        name: the option in messages; the name of the field by default.

    Raises:
        ConfigurationError: the value breaks one of them.
    """
    facts, name = option_of(declared), name or declared.name
    if facts.keyword_type:
        return  # has a check of its own
    if facts.choices:
        _check_choice(name, value, facts.choices)
    elif facts.function:
        _check_function(name, value, facts)
    else:
        _check_type(name, value, types_of(declared))
        _check_bounds(name, value, facts.bounds)


def types_of(declared: Field[Any]) -> tuple[type, ...]:
    """Return the types that a value may have; none where other checks decide."""
    kind, _, rest = str(declared.type).partition(" | ")
    found = _TYPES.get(kind, ())
    if not rest:
        return found
    return (*found, NoneType) if found and rest == "None" else ()


def wrong_value(name: str, value: object, reason: str) -> ConfigurationError:
    """Return the error for a value, which is shown only if it can be no secret."""
    # Loaded for mistakes alone.
    from kafkaio._config.shown import shown

    return ConfigurationError(f"{shown(name, value)} {reason}")


def _check_type(name: str, value: object, wanted: tuple[type, ...]) -> None:
    if not wanted:
        return
    is_flag = isinstance(value, bool) and bool not in wanted
    if is_flag or not isinstance(value, wanted):
        names = ("None" if kind is NoneType else kind.__name__ for kind in wanted)
        raise wrong_value(
            name, value, f"has the wrong type: {' or '.join(names)} is needed"
        )


def _check_function(name: str, value: object, facts: Option) -> None:
    method = facts.method
    if isinstance(value, type) and isfunction(getattr_static(value, method, None)):
        raise wrong_value(
            name, value, f"is a class: pass an object, {value.__name__}()"
        )
    if value is None or (method and callable(getattr(value, method, None))):
        return
    if not callable(value):
        rest = f" or an object with the method {method}" if method else ""
        raise wrong_value(name, value, f"is not a {facts.function}{rest}")
    if method and _is_coroutine_function(value):
        raise wrong_value(
            name,
            value,
            "is a coroutine function: a function has to return the result itself. "
            f"Pass an object with `async def {method}`, which is awaited",
        )


def _is_coroutine_function(function: object) -> bool:
    while isinstance(function, partial):
        function = function.func
    return iscoroutinefunction(function) or iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - of its class
    )


def _check_bounds(name: str, value: object, bounds: tuple[float, float] | None) -> None:
    if bounds is None or not isinstance(value, int | float):
        return
    low, high = bounds
    if not value >= low:  # nor is a NaN
        raise ConfigurationError(f"{name}={value} is less than {low}")
    if value > high:
        raise ConfigurationError(f"{name}={value} is more than {high}")


def _check_choice(
    name: str, value: object, choices: tuple[str | int | None, ...]
) -> None:
    if value in choices:
        return
    # Loaded for mistakes alone.
    from kafkaio._config.unknown import wrong_choice

    raise wrong_choice(name, value, choices)


def read_property(declared: Field[Any], value: object) -> object:
    """Read the text of a property as the type of its option.

    Words that stand for a value are taken in any case, as Java and librdkafka do, and
    by the names that those have.

    Returns:
        The value, or the text itself where it is none of that type: `check_value`
        refuses it then.
    """
    facts = option_of(declared)
    if facts.synonyms or facts.choices:
        return _read_words(value, facts)
    if not isinstance(value, str):
        return value
    text, types = value.strip(), types_of(declared)
    if bool in types:
        return _FLAGS.get(text.lower(), value)
    if int in types:
        try:
            return float(text) if "." in text else int(text)
        except ValueError:
            return value
    return value


def read_text(declared: Field[Any], name: str, text: str) -> object:
    """Read the text of an option whose users can give nothing but text.

    Args:
        declared: the field of the option.
        name: the option in messages.
        text: its text.

    Raises:
        ConfigurationError: the text is empty or of another type, or `check_value`
            refuses its value.
    """
    if not text.strip():
        raise ConfigurationError(f"{name} is empty")
    value = read_property(declared, text.strip())
    types = types_of(declared)
    if types and not isinstance(value, types):
        reason = next(why for kind, why in _NOT_OF_TYPE if kind in types)
        raise wrong_value(name, text, reason)
    check_value(declared, value, name)
    return value


def _read_words(value: object, facts: Option) -> object:
    """Read one word, or several: a text with commas, or a list."""
    if isinstance(value, list | tuple):
        return [_read_words(each, facts) for each in value]
    if not isinstance(value, str):
        return value
    if "," in value:
        return ",".join(str(_read_word(each, facts)) for each in value.split(","))
    return _read_word(value, facts)


def _read_word(text: str, facts: Option) -> str | None:
    word, colon, rest = text.strip().partition(":")
    folded = word.lower()
    if colon and folded in facts.synonyms:
        # A duration of ISO 8601, which Java takes in any case.
        return f"{facts.synonyms[folded]}:{rest.upper()}"
    for name in (folded, folded.rpartition(".")[2]):  # perhaps a class of Java
        if name in facts.synonyms:
            return facts.synonyms[name]
    choices = {str(each).lower(): each for each in facts.choices if each is not None}
    return str(choices.get(folded, text))
