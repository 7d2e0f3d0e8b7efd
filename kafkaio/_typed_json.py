"""Values of Python types as JSON, and back.

`forms` compiles a type into two functions once: one turns a value into what ``json``
writes, the other makes the value from what ``json`` read. Both check, and say where in
the value something does not fit. No library is needed for that. Classes of pydantic and
msgspec bring their own reading and writing, and their libraries are imported for them
alone.
"""

from __future__ import annotations

import base64
import dataclasses
import math
import re
import sys
import types
import typing
from collections import abc
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from enum import Enum
from json import JSONDecodeError, JSONDecoder, JSONEncoder
from typing import Any, NoReturn, TypeAlias
from uuid import UUID

from kafkaio.errors import ArgumentTypeError

#: Turns a value into another, or raises `Misfit`.
Convert: TypeAlias = Callable[[Any], Any]

_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_JSON_NAMES: dict[type, str] = {
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    list: "an array",
    dict: "an object",
    type(None): "null",
}


class Misfit(Exception):
    """A value does not fit its type.

    Attributes:
        reason: what is wrong with it, without the value itself.
        path: names and indices that lead to it, the innermost first.
        rest: the path from there on, as a library gave it.
    """

    def __init__(self, reason: str, rest: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.path: list[str | int] = []
        self.rest = rest

    @property
    def field(self) -> str:
        """The path in one string, such as ``lines[2].amount``."""
        return _join(reversed(self.path), self.rest)


def _join(path: Iterable[str | int], rest: str = "") -> str:
    """Return names and indices, the outermost first, as one string."""
    text = ""
    for part in path:
        if isinstance(part, str) and _IDENTIFIER.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{part!r}]"
    return f"{text}.{rest}" if text and rest and rest[0] != "[" else text + rest


class Engine(typing.NamedTuple):
    """How the values of one type become bytes, and bytes become values.

    Attributes:
        write: returns the bytes of a value.
        read: returns the value of bytes.
        faults: the exceptions of both that mean that something does not fit.
        explain: returns the reason in such an exception, and the field.
        instance: the class that a value must be an instance of.
    """

    write: Callable[[Any], bytes]
    read: Callable[[bytes], Any]
    faults: tuple[type[Exception], ...]
    explain: Callable[[Any], tuple[str, str]]
    instance: type


def engine(kind: Any) -> Engine:
    """Return how values of a type are written and read.

    Raises:
        ArgumentTypeError: the type, or one inside it, has no form in JSON.
    """
    libraries = {_library(part) for part in _parts(kind)} - {""}
    if len(libraries) > 1:
        raise ArgumentTypeError(
            f"{_name(kind)} joins classes of pydantic and of msgspec: "
            "neither library reads those of the other"
        )
    if "pydantic" in libraries:
        return _pydantic_engine(kind)
    if "msgspec" in libraries:
        return _msgspec_engine(kind)
    return _own_engine(kind)


def _parts(kind: Any) -> Iterable[Any]:
    """Return a type, and those that it is written with, such as those of a union."""
    yield kind
    if typing.get_origin(kind) is not typing.Literal:
        for argument in typing.get_args(kind):
            yield from _parts(argument)


def _library(kind: Any) -> str:
    """Return the library that reads and writes instances of a class, or ``""``."""
    if not isinstance(kind, type):
        return ""
    if hasattr(kind, "__pydantic_validator__"):
        return "pydantic"
    msgspec = sys.modules.get("msgspec")
    if msgspec is not None and isinstance(kind, type(msgspec.Struct)):
        return "msgspec"
    return ""


def _instance(kind: Any) -> type:
    """Return the class of which values of this type are instances, if it is one."""
    origin = typing.get_origin(kind)
    if dataclasses.is_dataclass(origin):
        return typing.get_origin(kind) or object
    if isinstance(kind, type) and origin is None and not typing.is_typeddict(kind):
        is_own = dataclasses.is_dataclass(kind) or _library(kind)
        return kind if is_own else object
    return object


# -- the engines -----------------------------------------------------------------------


#: What pydantic expected, and the field, but for those around it; it shows the value.
_PYDANTIC_WARNING = re.compile(r"Expected `(.+?)`.*?\[field_name='(.*?)'", re.DOTALL)


def _pydantic_engine(kind: Any) -> Engine:
    from pydantic import TypeAdapter, ValidationError
    from pydantic_core import PydanticSerializationError

    adapter = TypeAdapter(kind)
    dump = adapter.dump_json

    def write(value: object) -> bytes:
        return dump(value, by_alias=True, warnings="error")

    def explain(error: Exception) -> tuple[str, str]:
        if not isinstance(error, ValidationError):
            found = _PYDANTIC_WARNING.search(str(error))
            if found is None:
                return str(error).partition("\n")[0], ""
            return f"must be {found[1]}", found[2]
        first = error.errors(include_url=False, include_input=False)[0]
        return first["msg"], _join(first["loc"])

    faults = (ValidationError, PydanticSerializationError)
    return Engine(write, adapter.validate_json, faults, explain, _instance(kind))


_MSGSPEC_PATH = re.compile(r"(.*) - at `(?:key in )?\$\.?(.*)`", re.DOTALL)


def _msgspec_engine(kind: Any) -> Engine:
    import msgspec

    try:
        decoder = msgspec.json.Decoder(kind)
    except TypeError as error:
        raise ArgumentTypeError(f"{_name(kind)}: {error}") from error

    def explain(error: Exception) -> tuple[str, str]:
        found = _MSGSPEC_PATH.fullmatch(str(error))
        return (str(error), "") if found is None else (found[1], found[2])

    faults = (msgspec.MsgspecError, TypeError, ValueError, RecursionError)
    write = msgspec.json.Encoder().encode
    return Engine(write, decoder.decode, faults, explain, _instance(kind))


def _own_engine(kind: Any) -> Engine:
    compiler = _Compiler()
    try:
        form = compiler.form(kind)
    except RecursionError:
        raise ArgumentTypeError(
            f"{_name(kind)} refers to itself: only a class may do so"
        ) from None
    encode, decode = form.encode, form.decode
    decoder = _DECODER_OF_DECIMALS if compiler.has_decimals else _DECODER
    dump = _ENCODE
    if form is compiler.any:
        # In C this is quicker than to sort the keys before.
        encode, dump = _same, _ENCODE_SORTED

    def write(value: object) -> bytes:
        try:
            return _write(encode(value), dump)
        except RecursionError:
            raise Misfit("is nested too deeply, or contains itself") from None

    def read(data: bytes) -> object:
        tree = _parse(data, decoder)
        try:
            return decode(tree)
        except RecursionError:
            raise Misfit("is nested too deeply") from None

    def explain(error: Misfit) -> tuple[str, str]:
        return error.reason, error.field

    return Engine(write, read, (Misfit,), explain, _instance(kind))


# -- the text --------------------------------------------------------------------------

_ENCODE = JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


#: Without a class nothing gives the keys an order: equal values are written alike.
_ENCODE_SORTED = JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True
).encode


def _write(tree: object, dump: Callable[[object], str] = _ENCODE) -> bytes:
    try:
        return dump(tree).encode()
    except (TypeError, ValueError) as error:
        _find(tree)
        raise Misfit(f"is not JSON: {error}") from None


def _find(tree: object) -> None:
    """Raise a `Misfit` that names the part of a value that has no form in JSON."""
    if isinstance(tree, Mapping):
        for name, value in tree.items():
            if not isinstance(name, str | int | float | None):
                raise Misfit(f"has a key of the type {type(name).__name__}")
            with _Inside(str(name)):
                _find(value)
    elif isinstance(tree, list | tuple):
        for index, value in enumerate(tree):
            with _Inside(index):
                _find(value)
    elif isinstance(tree, str):
        if not _is_utf8(tree):
            raise Misfit("has a surrogate, which UTF-8 cannot write")
    elif isinstance(tree, float):
        _check_finite(tree)
    elif not isinstance(tree, int | None):
        raise Misfit(f"has the type {type(tree).__name__}, which JSON has not")


class _Inside:
    """Adds where a `Misfit` is, for what is seldom done: each use costs an object."""

    __slots__ = ("_where",)

    def __init__(self, where: str | int) -> None:
        self._where = where

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: object, _traceback: object) -> None:
        if isinstance(error, Misfit):
            error.path.append(self._where)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class _Number(float):
    """A number with a fraction, and its text: a Decimal keeps every digit of it."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> _Number:
        made = super().__new__(cls, text)
        made.text = text
        return made


def _refuse_constant(name: str) -> NoReturn:
    raise Misfit(f"contains {name}, which JSON has not")


def _parse(data: bytes, decoder: JSONDecoder) -> object:
    try:
        return decoder.decode(str(data, "utf-8"))
    except UnicodeDecodeError:
        raise Misfit("is not UTF-8") from None
    except JSONDecodeError as error:
        reason = f"is not JSON: {error.msg}, at character {error.pos}"
        raise Misfit(reason) from None
    except ValueError:  # Python limits the digits
        raise Misfit("contains an integer of too many digits") from None
    except RecursionError:
        raise Misfit("is nested too deeply") from None


_DECODER = JSONDecoder(parse_constant=_refuse_constant)
_DECODER_OF_DECIMALS = JSONDecoder(parse_constant=_refuse_constant, parse_float=_Number)


# -- the forms of types ----------------------------------------------------------------


@dataclasses.dataclass(slots=True, eq=False)
class _Form:
    """How values of one type stand in JSON.

    Attributes:
        encode: returns what ``json`` writes for a value.
        decode: returns the value for what ``json`` read.
        shapes: the types that ``json`` reads for values.
        instance: the classes of values.
        values: what ``json`` reads, if that is one of a few; else empty.
        tags: for a class, the values of each field that is a `Literal`.
    """

    encode: Convert
    decode: Convert
    shapes: frozenset[type]
    instance: tuple[type, ...]
    values: frozenset[object] = frozenset()
    tags: Mapping[str, frozenset[object]] = dataclasses.field(default_factory=dict)


_NONE = type(None)
_ALL_SHAPES = frozenset(_JSON_NAMES)


def _name(kind: Any) -> str:
    is_class = isinstance(kind, type) and not typing.get_args(kind)
    return kind.__name__ if is_class else str(kind)


def _wrong(noun: str, value: object) -> Misfit:
    found = _JSON_NAMES.get(type(value)) or type(value).__name__
    return Misfit(f"must be {noun}, not {found}")


def _same(value: Any) -> Any:
    return value


def _scalar(kind: type) -> _Form:
    noun = _JSON_NAMES[kind]

    def convert(value: Any) -> Any:
        if type(value) is kind:
            return value
        # True is an int for Python, and no integer for JSON.
        if isinstance(value, kind) and not isinstance(value, bool):
            return value
        raise _wrong(noun, value)

    return _Form(convert, convert, frozenset((kind,)), (kind,))


def _check_finite(value: float) -> float:
    if not math.isfinite(value):
        raise Misfit("must be finite, for JSON has neither NaN nor infinity")
    return value


def _to_float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, float | int):
        raise _wrong("a number", value)
    try:
        return _check_finite(float(value))
    except OverflowError:
        raise Misfit("is too large for a float") from None


def _written(
    kind: type, noun: str, write: Callable[[Any], str], read: Callable[[str], Any]
) -> _Form:
    """Return the form of a class whose values are written as strings."""

    def encode(value: Any) -> str:
        # A datetime is a date for Python, and would be read as another value.
        if not isinstance(value, kind) or (kind is date and type(value) is datetime):
            raise _wrong(noun, value)
        return write(value)

    def decode(value: Any) -> Any:
        if not isinstance(value, str):
            raise _wrong(noun, value)
        try:
            return read(value)
        except ValueError:
            raise Misfit(f"must be {noun}") from None

    return _Form(encode, decode, frozenset((str,)), (kind,))


def _write_decimal(value: Decimal) -> str:
    if not value.is_finite():
        raise Misfit("must be finite")
    return str(value)


def _decimal() -> _Form:
    noun = "a decimal number"
    form = _written(Decimal, noun, _write_decimal, Decimal)

    def decode(value: Any) -> Decimal:
        text = value.text if type(value) is _Number else value
        if type(text) is not str and type(text) is not int:
            raise _wrong(noun, value)
        try:
            made = Decimal(text)
        except InvalidOperation:
            raise Misfit(f"must be {noun}") from None
        if not made.is_finite():
            raise Misfit("must be finite")
        return made

    form.decode = decode
    # A number is what Java writes.
    form.shapes = frozenset((str, int, float))
    return form


def _read_base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _write_base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


_FLOATS = frozenset((float, int))


def _sorted(value: Any) -> Any:
    """Return any value of JSON with the keys of its dicts in order."""
    if isinstance(value, dict):
        try:
            return {name: _sorted(value[name]) for name in sorted(value)}
        except TypeError:
            return value  # of several types; what JSON has not is found later
    return [_sorted(each) for each in value] if isinstance(value, list) else value


def _plain_numbers(value: Any) -> Any:
    """Return any value of JSON without `_Number`, which is for decimals alone."""
    if type(value) is _Number:
        return float(value)
    if type(value) is dict:
        return {name: _plain_numbers(each) for name, each in value.items()}
    return [_plain_numbers(each) for each in value] if type(value) is list else value


_SIMPLE: dict[object, Callable[[], _Form]] = {
    str: lambda: _scalar(str),
    bool: lambda: _scalar(bool),
    int: lambda: _scalar(int),
    _NONE: lambda: _scalar(_NONE),
    float: lambda: _Form(_to_float, _to_float, _FLOATS, (float, int)),
    Decimal: _decimal,
    bytes: lambda: _written(bytes, "base64", _write_base64, _read_base64),
    UUID: lambda: _written(UUID, "a UUID", str, UUID),
    datetime: lambda: _written(
        datetime, "a time of ISO 8601", datetime.isoformat, datetime.fromisoformat
    ),
    date: lambda: _written(
        date, "a date of ISO 8601", date.isoformat, date.fromisoformat
    ),
    time: lambda: _written(
        time, "a time of day of ISO 8601", time.isoformat, time.fromisoformat
    ),
}

#: What makes a collection of a list, and the classes that are written as it.
_ARRAYS: dict[object, tuple[Callable[[list[Any]], Any], tuple[type, ...]]] = {
    list: (_same, (list, tuple)),
    abc.Sequence: (_same, (list, tuple)),
    abc.MutableSequence: (_same, (list,)),
    tuple: (tuple, (tuple, list)),
    set: (set, (set, frozenset)),
    frozenset: (frozenset, (set, frozenset)),
    abc.Set: (frozenset, (set, frozenset)),
}
_OBJECTS = (dict, abc.Mapping, abc.MutableMapping)


def _each(convert: Convert, values: Iterable[Any]) -> list[Any]:
    made: list[Any] = []
    try:
        for value in values:
            made.append(convert(value))  # noqa: PERF401 - its length is the place
    except Misfit as fault:
        fault.path.append(len(made))
        raise
    return made


def _bare(kind: Any) -> Any:
    """Return a type without what only has a meaning for type checkers."""
    while True:
        if kind is None:
            return _NONE
        if typing.get_origin(kind) in _MARKS:
            kind = typing.get_args(kind)[0]
        elif isinstance(kind, typing.NewType):
            kind = kind.__supertype__
        elif isinstance(kind, typing.TypeVar):
            kind = kind.__bound__ or object
        elif hasattr(kind, "__value__"):  # a statement `type X = ...`
            kind = kind.__value__
        else:
            return kind


_MARKS = (
    *(typing.Annotated, typing.Required, typing.NotRequired),
    *filter(None, [getattr(typing, "ReadOnly", None)]),  # from Python 3.13
)


def _hints(kind: Any) -> dict[str, Any]:
    """Return the types of the fields of a class, its type variables filled in."""
    origin = typing.get_origin(kind) or kind
    try:
        hints = typing.get_type_hints(origin, include_extras=True)
    except NameError as error:
        raise ArgumentTypeError(
            f"the annotations of {_name(origin)} cannot be resolved: {error}"
        ) from error
    arguments = typing.get_args(kind)
    known = dict(zip(getattr(origin, "__parameters__", ()), arguments, strict=False))
    return {name: _filled(hint, known) for name, hint in hints.items()}


def _filled(hint: Any, known: Mapping[Any, Any]) -> Any:
    if isinstance(hint, typing.TypeVar):
        return known.get(hint, hint)
    parameters = getattr(hint, "__parameters__", ())
    if isinstance(hint, type) or not parameters:
        return hint
    return hint[tuple(known.get(each, each) for each in parameters)]


def _tags(hints: Mapping[str, Any]) -> dict[str, frozenset[object]]:
    return {
        name: frozenset(typing.get_args(_bare(hint)))
        for name, hint in hints.items()
        if typing.get_origin(_bare(hint)) is typing.Literal
    }


def _can_be_told_apart(one: _Form, other: _Form) -> bool:
    """Whether what is read shows which of two members of a union it is."""
    common = one.shapes & other.shapes
    if not common or (one.values and other.values):
        return not common or one.values.isdisjoint(other.values)
    if one.values or other.values or {*one.instance, *other.instance} == _FLOATS:
        return True
    return any(
        values.isdisjoint(other.tags[name])
        for name, values in one.tags.items()
        if name in other.tags
    )


class _Compiler:
    """Makes the forms of a type, and of those inside it, each once.

    Attributes:
        has_decimals: whether one of them is Decimal.
        any: the form of any value of JSON.
    """

    def __init__(self) -> None:
        self.has_decimals = False
        self.any = _Form(_sorted, self._read_any, _ALL_SHAPES, (object,))
        self._classes: dict[Any, _Form] = {}

    def form(self, kind: Any) -> _Form:
        """Return the form of a type.

        Raises:
            ArgumentTypeError: it has no form in JSON.
        """
        kind = _bare(kind)
        origin = typing.get_origin(kind) or kind
        if origin in (typing.Union, types.UnionType):
            return self._union(kind)
        if origin is typing.Literal:
            return self._literal(typing.get_args(kind))
        if origin in (Any, object):
            return self.any
        if origin in _SIMPLE:
            self.has_decimals |= origin is Decimal
            return _SIMPLE[origin]()
        if origin in _ARRAYS or origin in _OBJECTS:
            return self._collection(kind, origin)
        if isinstance(origin, type):
            return self._class(kind, origin)
        raise _no_form(kind)

    def _read_any(self, value: Any) -> Any:
        return _plain_numbers(value) if self.has_decimals else value

    def _class(self, kind: Any, origin: type) -> _Form:
        if _library(origin):
            return _foreign(kind)
        if issubclass(origin, Enum):
            return self._enum(origin)
        is_dict = typing.is_typeddict(origin)
        if not is_dict and not dataclasses.is_dataclass(origin):
            raise _no_form(kind)
        if (found := self._classes.get(kind)) is not None:
            return found
        hints = _hints(kind)

        # A class that contains itself finds these two, which call what is made below.
        def encode(value: Any) -> Any:
            return form.encode(value)

        def decode(value: Any) -> Any:
            return form.decode(value)

        instance = dict if is_dict else origin
        form = _Form(encode, decode, frozenset((dict,)), (instance,))
        form.tags = _tags(hints)
        self._classes[kind] = form
        if is_dict:
            form.encode, form.decode = self._typed_dict(origin, hints)
        else:
            form.encode, form.decode = self._dataclass(origin, hints)
        return form

    def _dataclass(
        self, kind: Any, hints: Mapping[str, Any]
    ) -> tuple[Convert, Convert]:
        fields = dataclasses.fields(kind)
        forms = {field.name: self.form(hints[field.name]) for field in fields}
        encoders = [(name, form.encode) for name, form in forms.items()]
        decoders = [
            (field.name, forms[field.name].decode, _is_required(field))
            for field in fields
            if field.init
        ]
        noun = f"{_name(kind)}"

        def encode(value: Any) -> dict[str, Any]:
            if not isinstance(value, kind):
                raise _wrong(noun, value)
            made = {}
            name = ""
            try:
                for name, convert in encoders:
                    made[name] = convert(getattr(value, name))
            except Misfit as fault:
                fault.path.append(name)
                raise
            except AttributeError:
                raise Misfit(f"{name} is not set") from None
            return made

        def decode(value: Any) -> Any:
            arguments = _read_fields(value, decoders)
            try:
                return kind(**arguments)
            except (TypeError, ValueError) as error:
                raise Misfit(f"is refused by {noun}: {error}") from error

        return encode, decode

    def _typed_dict(
        self, kind: Any, hints: Mapping[str, Any]
    ) -> tuple[Convert, Convert]:
        forms = {name: self.form(hint) for name, hint in hints.items()}
        required = _required_keys(kind, hints)
        encoders = [
            (name, form.encode, name in required) for name, form in forms.items()
        ]
        decoders = [
            (name, form.decode, name in required) for name, form in forms.items()
        ]

        def encode(value: Any) -> dict[str, Any]:
            made = _read_fields(value, encoders)
            if len(made) != len(value):
                unknown = next(name for name in value if name not in made)
                raise Misfit(f"has the unknown key {unknown!r}")
            return made

        def decode(value: Any) -> dict[str, Any]:
            return _read_fields(value, decoders)

        return encode, decode

    def _collection(self, kind: Any, origin: Any) -> _Form:
        arguments = typing.get_args(kind)
        if origin in _OBJECTS:
            return self._mapping(*(arguments or (str, object)))
        if origin is tuple and arguments and arguments[-1] is not Ellipsis:
            return self._tuple([self.form(each) for each in arguments])
        build, instance = _ARRAYS[origin]
        noun = f"a {instance[0].__name__}"
        item = self.form(arguments[0] if arguments else object)
        item_encode, item_decode = item.encode, item.decode
        is_set = set in instance

        def encode(value: Any) -> list[Any]:
            if not isinstance(value, instance):
                raise _wrong(noun, value)
            values: Any = value
            made = _each(item_encode, values)
            # Sets have no order: equal ones are written alike.
            return sorted(made, key=_write) if is_set else made

        def decode(value: Any) -> Any:
            if type(value) is not list:
                raise _wrong("an array", value)
            try:
                return build(_each(item_decode, value))
            except TypeError as error:
                raise Misfit(f"cannot be in a set: {error}") from None

        return _Form(encode, decode, frozenset((list,)), instance)

    def _tuple(self, items: list[_Form]) -> _Form:
        length = len(items)

        def convert(converts: list[Convert], value: Any) -> list[Any]:
            if not isinstance(value, list | tuple) or len(value) != length:
                raise Misfit(f"must be an array of {length}")
            rest = iter(converts)
            return _each(lambda each: next(rest)(each), value)

        encoders = [item.encode for item in items]
        decoders = [item.decode for item in items]
        return _Form(
            lambda value: convert(encoders, value),
            lambda value: tuple(convert(decoders, value)),
            frozenset((list,)),
            (tuple,),
        )

    def _mapping(self, key: Any, value: Any) -> _Form:
        write_key, read_key = self._key(key)
        form = self.form(value)

        def convert(keys: Convert, values: Convert, value: Any) -> dict[Any, Any]:
            if not isinstance(value, Mapping):
                raise _wrong("an object", value)
            made = {}
            name: Any = ""
            try:
                for name, each in value.items():
                    made[keys(name)] = values(each)
            except Misfit as fault:
                fault.path.append(name if type(name) is int else str(name))
                raise
            return made

        encode_value, decode_value = form.encode, form.decode

        def encode(value: Any) -> dict[str, Any]:
            made = convert(write_key, encode_value, value)
            return {name: made[name] for name in sorted(made)}

        return _Form(
            encode,
            lambda value: convert(read_key, decode_value, value),
            frozenset((dict,)),
            (abc.Mapping,),
        )

    def _key(self, kind: Any) -> tuple[Convert, Convert]:
        """Return the form of keys, which stand in JSON as strings."""
        kind = _bare(kind)
        if kind is int:
            return _write_int_key, _read_int_key
        if kind in (Any, object):
            kind = str
        form = self.form(kind)
        if str not in form.shapes or (len(form.shapes) > 1 and kind is not Decimal):
            raise ArgumentTypeError(f"keys of the type {_name(kind)} are no strings")
        return form.encode, form.decode

    def _enum(self, kind: type[Enum]) -> _Form:
        values = [member.value for member in kind]
        shapes = frozenset(type(value) for value in values)
        if not shapes <= {str, int}:
            raise ArgumentTypeError(
                f"{_name(kind)} has values that are neither str nor int"
            )
        noun = f"a value of {_name(kind)}"

        def encode(value: Any) -> Any:
            if not isinstance(value, kind):
                raise _wrong(noun, value)
            return value.value

        def decode(value: Any) -> Any:
            if type(value) not in shapes:
                raise _wrong(noun, value)
            try:
                return kind(value)
            except ValueError:
                raise Misfit(f"must be {noun}") from None

        return _Form(encode, decode, shapes, (kind,), frozenset(values))

    def _literal(self, values: tuple[Any, ...]) -> _Form:
        known = {(type(value), value) for value in values}
        shapes = frozenset(type(value) for value in values)
        if not shapes <= {str, int, bool, _NONE}:
            raise ArgumentTypeError("a Literal has values that JSON has not")
        noun = " or ".join(repr(value) for value in values)

        def convert(value: Any) -> Any:
            if type(value) not in shapes or (type(value), value) not in known:
                raise Misfit(f"must be {noun}")
            return value

        return _Form(convert, convert, shapes, tuple(shapes), frozenset(values))

    def _union(self, kind: Any) -> _Form:
        kinds = [_bare(each) for each in typing.get_args(kind)]
        if not {Any, object}.isdisjoint(kinds):
            return self.any
        forms = [self.form(each) for each in kinds if each is not _NONE]
        for place, one in enumerate(forms):
            for number, other in enumerate(forms[:place]):
                if not _can_be_told_apart(one, other):
                    pair = f"{_name(kinds[number])} and {_name(kinds[place])}"
                    raise ArgumentTypeError(
                        f"{_name(kind)}: JSON does not show which of {pair} a value "
                        "is. Give both classes a field that is a Literal"
                    )
        form = forms[0] if len(forms) == 1 else _one_of(forms, _name(kind))
        return _optional(form) if _NONE in kinds else form


def _no_form(kind: Any) -> ArgumentTypeError:
    return ArgumentTypeError(
        f"{_name(kind)} has no form in JSON here. Pass a dataclass, a TypedDict, a "
        "class of pydantic or msgspec, or make a serde of two functions: "
        "kafkaio.serde.of"
    )


def _is_required(field: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return field.default is missing and field.default_factory is missing


def _required_keys(kind: Any, hints: Mapping[str, Any]) -> set[str]:
    # Where annotations are postponed, __required_keys__ has not seen the marks.
    required = set(kind.__required_keys__)
    for name, hint in hints.items():
        if typing.get_origin(hint) is typing.NotRequired:
            required.discard(name)
        elif typing.get_origin(hint) is typing.Required:
            required.add(name)
    return required


def _read_fields(
    value: Any, converts: list[tuple[str, Convert, bool]]
) -> dict[str, Any]:
    """Convert the fields of an object; others are left out."""
    if not isinstance(value, dict):
        raise _wrong("an object", value)
    made = {}
    name = ""
    try:
        for name, convert, is_required in converts:
            if name in value:
                made[name] = convert(value[name])
            elif is_required:
                raise Misfit("is missing")  # noqa: TRY301 - with the name, below
    except Misfit as fault:
        fault.path.append(name)
        raise
    return made


def _write_int_key(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong("an integer", value)
    return str(int(value))


def _read_int_key(value: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,4000}", value):
        raise Misfit("must be an integer")
    return int(value)


def _optional(form: _Form) -> _Form:
    inner_encode, inner_decode = form.encode, form.decode
    return dataclasses.replace(
        form,
        encode=lambda value: None if value is None else inner_encode(value),
        decode=lambda value: None if value is None else inner_decode(value),
        shapes=form.shapes | {_NONE},
        instance=(*form.instance, _NONE),
    )


def _one_of(forms: list[_Form], noun: str) -> _Form:
    """Return the form of a union whose members can be told apart."""
    # Those of a few values first, and an int before a float that takes it, too.
    ordered = sorted(
        forms, key=lambda form: (not form.values, form.instance == (float, int))
    )

    def encode(value: Any) -> Any:
        faults = []
        for form in ordered:
            if isinstance(value, form.instance):
                try:
                    return form.encode(value)
                except Misfit as fault:
                    faults.append(fault)
        raise faults[0] if faults else _wrong(noun, value)

    by_shape = {
        shape: [form for form in ordered if shape in form.shapes]
        for shape in _ALL_SHAPES
    }

    def decode(value: Any) -> Any:
        found = by_shape[float if type(value) is _Number else type(value)]
        if type(value) is dict:
            found = [form for form in found if _has_tags(value, form.tags)]
        return _first_that_fits(found, value, noun)

    return _Form(
        encode,
        decode,
        frozenset().union(*(form.shapes for form in forms)),
        tuple(kind for form in forms for kind in form.instance),
    )


def _first_that_fits(forms: list[_Form], value: Any, noun: str) -> Any:
    if len(forms) == 1:
        return forms[0].decode(value)
    for form in forms:
        try:
            return form.decode(value)
        except Misfit:
            continue
    raise Misfit(f"fits none of {noun}")


def _has_tags(value: dict[str, Any], tags: Mapping[str, frozenset[object]]) -> bool:
    return all(
        isinstance(value.get(name), str | int | None) and value.get(name) in values
        for name, values in tags.items()
        if name in value
    )


def _foreign(kind: Any) -> _Form:
    """Return the form of a class of pydantic or msgspec inside a dataclass."""
    made = engine(kind)
    instance = made.instance

    def encode(value: Any) -> Any:
        if not isinstance(value, instance):
            raise _wrong(_name(kind), value)
        try:
            return _parse(made.write(value), _DECODER)
        except made.faults as error:
            raise Misfit(*made.explain(error)) from error

    def decode(value: Any) -> Any:
        try:
            return made.read(_write(value))
        except made.faults as error:
            raise Misfit(*made.explain(error)) from error

    return _Form(encode, decode, frozenset((dict,)), (instance,))
