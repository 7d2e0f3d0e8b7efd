"""Classes as schemas of Avro, and their instances as the values that fastavro takes.

A class is looked at once. Its schema follows from its annotations; two functions are
written for it, one that makes a dict of an instance, one that makes an instance of a
dict. What is the same in both, such as a list of numbers, is passed on as it is.
"""

from __future__ import annotations

import typing
from collections import abc
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial
from re import compile as pattern
from typing import Any
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio._public import public
from kafkaio.errors import ConfigurationError
from kafkaio.registry._avro_schema import AvroType, load, simple_name
from kafkaio.registry._classes import (
    MISSING,
    ClassField,
    Family,
    Fault,
    bare,
    family,
    fields_of,
    takes_positions,
    union_members,
)

_NAME = pattern(r"[A-Za-z_][A-Za-z0-9_]*")
_NONE = type(None)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SCALARS: Mapping[Any, AvroType] = {
    str: "string",
    int: "long",
    float: "double",
    bool: "boolean",
    bytes: "bytes",
    _NONE: "null",
    datetime: {"type": "long", "logicalType": "timestamp-micros"},
    date: {"type": "int", "logicalType": "date"},
    time: {"type": "long", "logicalType": "time-micros"},
    UUID: {"type": "string", "logicalType": "uuid"},
}
#: What makes a collection of a list; None for a list.
_ARRAYS: Mapping[Any, str | None] = {
    list: None,
    abc.Sequence: None,
    abc.MutableSequence: None,
    abc.Collection: None,
    abc.Iterable: None,
    tuple: "tuple",
    set: "set",
    abc.Set: "frozenset",
    abc.MutableSet: "set",
    frozenset: "frozenset",
}
_COLLECTIONS: Mapping[str, type] = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
}
_MAPS = (dict, abc.Mapping, abc.MutableMapping)


@public("kafkaio.registry")
@dataclass(slots=True, frozen=True)
class AvroAs:
    """The schema of a field, in the place of what its type would give.

    ::

        amount: Annotated[Decimal, AvroAs(decimal(precision=12, scale=2))]

    Attributes:
        schema: the schema, as JSON has it.
    """

    schema: str | Mapping[str, object]


@public("kafkaio.registry")
def decimal(*, precision: int, scale: int) -> Mapping[str, object]:
    """Return the schema of a decimal number.

    Args:
        precision: its digits, from 1 on.
        scale: how many of them stand behind the point.

    Raises:
        ConfigurationError: a number is out of range.
    """
    if precision < 1 or not 0 <= scale <= precision:
        raise ConfigurationError(
            f"a decimal number of {precision} digits cannot have {scale} of them "
            "behind the point"
        )
    return {
        "type": "bytes",
        "logicalType": "decimal",
        "precision": precision,
        "scale": scale,
    }


@dataclass(slots=True, eq=False)
class _Form:
    """How values of one type stand in Avro.

    Attributes:
        schema: the schema.
        raw: makes the default in a schema of a value.
        out: returns the expression that makes what fastavro takes of a value.
        back: returns the expression that makes the value of what fastavro gave. Each
            is None where the two are the same. They get the expression of a value,
            which may stand several times in the result.
        is_lax: whether pydantic and msgspec make the value of it themselves.
        kinds: the classes of values, to tell the members of a union apart.
        name: the name of the record or enumeration, if it is one.
    """

    schema: AvroType
    raw: Callable[[Any], Any]
    kinds: tuple[type, ...]
    out: Callable[[str], str] | None = None
    back: Callable[[str], str] | None = None
    is_lax: bool = True
    name: str = ""


class ClassCodec:
    """The schema of a class, and functions between its instances and dicts.

    Args:
        kind: the class.
        namespace: the namespace of the records' names; empty for none.

    Attributes:
        kind: the class.
        schema: its schema, as JSON has it.
        build: makes an instance of what fastavro read; None if the dict is the value.

    Raises:
        ConfigurationError: a field has no form in Avro; it is named.
    """

    __slots__ = ("_compiler", "_form", "build", "kind", "schema")

    def __init__(self, kind: type, namespace: str = "") -> None:
        own = getattr(kind, "__avro_schema__", None)
        if callable(own):
            own = own()
        self.kind = kind
        self._compiler = _Compiler(namespace, is_lenient=own is not None)
        self._form = self._compiler.record(kind, kind.__name__)
        self.schema: AvroType = self._form.schema if own is None else own
        if isinstance(own, str):
            self.schema = load(own)
        self.build = self._compiler.functions(self._form, {})[1]

    def extractor(self, names: Iterable[str]) -> Callable[[Any], Any] | None:
        """Return what makes a dict of an instance; None if it is one.

        Args:
            names: the full names of the records in the schema by which it is written.
        """
        full_names = {simple_name(name): name for name in names}
        return self._compiler.functions(self._form, full_names)[0]


class _Compiler:
    """Looks at a class and all those inside, and writes their functions."""

    def __init__(self, namespace: str, *, is_lenient: bool) -> None:
        self._namespace = namespace
        self._is_lenient = is_lenient
        self._forms: dict[type, _Form] = {}
        self._by_name: dict[str, type] = {}
        self._lines: list[str] = []
        self._names: dict[str, Any] = {}

    def functions(
        self, form: _Form, full_names: Mapping[str, str]
    ) -> tuple[Callable[[Any], Any] | None, Callable[[Any], Any] | None]:
        """Compile the functions of all classes; return both of one form."""
        names = {**self._names, "full_names": full_names}
        text = "\n".join(self._lines)
        # Names of fields stand in it as literals, or are identifiers of a class.
        exec(compile(text, f"<Avro of {form.name}>", "exec"), names)  # noqa: S102
        return (
            names[f"extract_{form.name}"] if form.out is not None else None,
            names[f"build_{form.name}"] if form.back is not None else None,
        )

    # -- records -----------------------------------------------------------------------

    def record(self, kind: Any, where: str) -> _Form:
        """Return the form of a class with fields."""
        found = self._forms.get(kind)
        if found is not None:
            # What is inside itself, or comes again, is referred to by its name.
            return replace(found, schema=found.schema["name"])
        library = family(kind)
        if library is None:
            fields_of(kind)  # which says what is wrong
        assert library is not None
        name = self._claim(kind, where)
        is_dict = library == "typeddict"
        schema: AvroType = {"type": "record", "name": self._full(name), "fields": []}
        fields = fields_of(kind)
        forms: list[_Form] = []
        form = _Form(
            schema,
            lambda value: {
                field.key: each.raw(
                    value[field.name] if is_dict else getattr(value, field.name)
                )
                for field, each in zip(fields, forms, strict=True)
            },
            (dict,) if is_dict else (kind,),
            lambda v: f"extract_{name}({v})",
            lambda v: f"build_{name}({v})",
            is_lax=False,
            name=name,
        )
        self._forms[kind] = form
        self._names[f"kind_{name}"] = kind
        forms.extend(
            self._field(field, f"{where}.{field.name}", schema) for field in fields
        )
        parts = list(zip(fields, forms, strict=True))
        # One that is in itself was referred to before this was known.
        form.is_lax = all(
            field.argument == field.key
            and not field.is_optional
            and (each.back is None or each.is_lax)
            for field, each in parts
        )
        if is_dict:
            self._lines += _dict_functions(name, parts)
            self._pass_dicts_on(form, parts)
        else:
            self._lines += [
                *_extract_function(name, parts),
                *self._build_function(kind, name, library, parts),
            ]
        return form

    def _pass_dicts_on(
        self, form: _Form, parts: Sequence[tuple[ClassField, _Form]]
    ) -> None:
        if not any(field.is_optional or each.out for field, each in parts):
            form.out = None
        if not any(field.is_optional or each.back for field, each in parts):
            form.back = None

    def _full(self, name: str) -> str:
        return f"{self._namespace}.{name}" if self._namespace else name

    def _claim(self, kind: type, where: str) -> str:
        name = kind.__name__
        if not _NAME.fullmatch(name):
            raise ConfigurationError(
                f"{where}: {name!r} is not a name that Avro allows; give the class "
                "__avro_schema__"
            )
        other = self._by_name.setdefault(name, kind)
        if other is not kind:
            raise ConfigurationError(
                f"{where}: two classes are named {name}, in {other.__module__} and in "
                f"{kind.__module__}; Avro refers to both by this name"
            )
        return name

    def _field(self, field: ClassField, where: str, schema: AvroType) -> _Form:
        if not _NAME.fullmatch(field.key):
            raise ConfigurationError(
                f"{where}: {field.key!r} is not a name that Avro allows"
            )
        default = None if field.is_optional else field.default
        form = self.form(field.type, where, default)
        if field.is_optional and _NONE not in form.kinds:
            form = _optional(form, None)
        made: dict[str, Any] = {"name": field.key, "type": form.schema}
        if default is not MISSING:
            try:
                made["default"] = form.raw(default)
            except (TypeError, ValueError, LookupError, AttributeError) as error:
                raise ConfigurationError(
                    f"{where}: the default {default!r} does not fit its type"
                ) from error
        schema["fields"].append(made)
        return form

    def _build_function(
        self,
        kind: type,
        name: str,
        library: Family,
        parts: Sequence[tuple[ClassField, _Form]],
    ) -> list[str]:
        is_lax = library != "dataclass"
        entries = {}
        is_same = is_lax
        for field, form in parts:
            value = f"v[{field.key!r}]"
            if form.back is not None and not (is_lax and form.is_lax):
                value = form.back(value)
                is_same = False
            is_same &= field.argument == field.key
            entries[field.argument] = value
        lines = [f"def build_{name}(v):"]
        if not is_lax:
            if takes_positions(kind):
                arguments = ", ".join(entries.values())
            else:
                # As a dict, since an alias need not be an identifier.
                items = ", ".join(
                    f"{each!r}: {value}" for each, value in entries.items()
                )
                arguments = f"**{{{items}}}"
            return [*lines, f"    return kind_{name}({arguments})"]
        self._names[f"validate_{name}"] = _validator(kind, library)
        items = ", ".join(f"{each!r}: {value}" for each, value in entries.items())
        tree = "v" if is_same else f"{{{items}}}"
        return [*lines, f"    return validate_{name}({tree})"]

    # -- types -------------------------------------------------------------------------

    def form(self, hint: Any, where: str, default: Any = MISSING) -> _Form:
        """Return the form of a type.

        Args:
            hint: the type.
            where: the field, for errors.
            default: the default of the field: Avro wants its member of a union first.
        """
        kind, extras = bare(hint)
        given = next((each for each in extras if isinstance(each, AvroAs)), None)
        if given is not None:
            return self._given(kind, given, where)
        members = union_members(kind)
        if members is not None:
            return self._union(members, extras, where, default)
        if kind is None or kind in _SCALARS:
            return _scalar(kind)
        if family(kind) is not None:
            return self.record(kind, where)
        if isinstance(kind, type) and issubclass(kind, Enum):
            return self._enum(kind, where)
        if kind is Decimal:
            return self._decimal(extras, where)
        return self._generic(kind, where)

    def _generic(self, kind: Any, where: str) -> _Form:
        origin = typing.get_origin(kind) or kind
        arguments = typing.get_args(kind)
        if origin is typing.Literal:
            return self._literal(arguments, where)
        if origin in _MAPS:
            return self._map(arguments, where)
        is_pair = origin is tuple and (len(arguments) != 2 or arguments[1] is not ...)
        if origin in _ARRAYS and arguments and not is_pair:
            return self._array(origin, arguments[0], where)
        if self._is_lenient:
            return _Form("string", _same, (object,))
        shown = str(kind) if arguments else getattr(kind, "__name__", str(kind))
        raise ConfigurationError(
            f"{where}: {shown} has no type in Avro; annotate it with "
            "Annotated[..., AvroAs(schema)], or give the class __avro_schema__"
        )

    def _given(self, kind: Any, given: AvroAs, where: str) -> _Form:
        schema: AvroType = given.schema
        if isinstance(schema, str) and schema[:1] in ("{", "["):
            schema = load(schema)
        is_lenient, self._is_lenient = self._is_lenient, True
        try:
            form = self.form(kind, where)
        finally:
            self._is_lenient = is_lenient
        found = next((each for each in _branches(schema) if each != "null"), schema)
        if isinstance(found, Mapping) and found.get("logicalType") == "decimal":
            raw = partial(_raw_decimal, found.get("scale", 0))
            return replace(form, schema=schema, raw=raw)
        return replace(form, schema=schema)

    def _decimal(self, extras: Sequence[Any], where: str) -> _Form:
        digits = places = None
        for extra in (
            *extras,
            *(e for x in extras for e in getattr(x, "metadata", ())),
        ):
            digits = getattr(extra, "max_digits", None) or digits
            found = getattr(extra, "decimal_places", None)
            places = places if found is None else found
        if digits is not None and places is not None:
            schema = decimal(precision=digits, scale=places)
            return _Form(schema, partial(_raw_decimal, places), (Decimal,))
        if self._is_lenient:
            return _Form("bytes", _same, (Decimal,))
        raise ConfigurationError(
            f"{where}: Avro needs to know how many digits a Decimal has: annotate it "
            "with Annotated[Decimal, AvroAs(decimal(precision=12, scale=2))]"
        )

    def _array(self, origin: Any, item: Any, where: str) -> _Form:
        inner = self.form(item, f"{where}[]")
        make = _ARRAYS[origin]
        if make:
            self._names[make] = _COLLECTIONS[make]
        raw, out, back = inner.raw, inner.out, inner.back

        def write(v: str) -> str:
            return f"list({v})" if out is None else f"[{out('e')} for e in {v}]"

        def read(v: str) -> str:
            items = v if back is None else f"[{back('e')} for e in {v}]"
            return f"{make}({items})" if make else items

        return _Form(
            {"type": "array", "items": inner.schema},
            lambda value: [raw(each) for each in value],
            (_COLLECTIONS[make] if make else list,),
            write if out or make else None,
            read if back or make else None,
            is_lax=inner.is_lax,
        )

    def _map(self, arguments: Sequence[Any], where: str) -> _Form:
        if not arguments or bare(arguments[0])[0] is not str:
            raise ConfigurationError(
                f"{where}: keys of a map must be str in Avro: annotate dict[str, ...]"
            )
        inner = self.form(arguments[1], f"{where}[]")
        raw, out, back = inner.raw, inner.out, inner.back

        def each(convert: Callable[[str], str] | None) -> Callable[[str], str] | None:
            if convert is None:
                return None
            return lambda v: f"{{k: {convert('e')} for k, e in {v}.items()}}"

        return _Form(
            {"type": "map", "values": inner.schema},
            lambda value: {key: raw(item) for key, item in value.items()},
            (dict,),
            each(out),
            each(back),
            is_lax=inner.is_lax,
        )

    def _enum(self, kind: type[Enum], where: str) -> _Form:
        values = [member.value for member in kind]
        by_value = all(
            isinstance(value, str) and _NAME.fullmatch(value) for value in values
        )
        symbols = values if by_value else [member.name for member in kind]
        if not symbols:
            raise ConfigurationError(f"{where}: {kind.__name__} has no members")
        is_first = kind.__name__ not in self._by_name
        name = self._claim(kind, where)
        full = self._full(name)
        schema = (
            {"type": "enum", "name": full, "symbols": symbols} if is_first else full
        )
        self._names[f"kind_{name}"] = kind
        attribute = "value" if by_value else "name"
        return _Form(
            schema,
            lambda value: getattr(kind(value), attribute),
            (kind,),
            lambda v: f"{v}.{attribute}",
            lambda v: f"kind_{name}({v})" if by_value else f"kind_{name}[{v}]",
            is_lax=False,
            name=name,
        )

    def _literal(self, values: Sequence[Any], where: str) -> _Form:
        kinds = {type(value) for value in values}
        if len(kinds) == 1 and kinds <= {str, int, bool}:
            return _scalar(kinds.pop())
        raise ConfigurationError(
            f"{where}: the values of a Literal must be of one type, str, int or bool"
        )

    # -- unions ------------------------------------------------------------------------

    def _union(
        self,
        members: Sequence[Any],
        extras: Sequence[Any],
        where: str,
        default: Any,
    ) -> _Form:
        others = [each for each in members if each is not _NONE]
        has_none = len(others) < len(members)
        if len(others) == 1:
            hint = others[0]
            if extras:
                hint = typing.Annotated[(hint, *extras)]
            return _optional(self.form(hint, where), default)
        forms = [self.form(each, where) for each in others]
        if default is not None and default is not MISSING:
            forms.sort(key=lambda form: type(default) not in form.kinds)
        _check_members(forms, where)
        first = forms[0].raw
        form = _Form(
            [each.schema for each in forms],
            first,
            tuple(kind for each in forms for kind in each.kinds),
        )
        if any(each.out or each.back for each in forms):
            self._choose(form, forms)
        return _optional(form, default) if has_none else form

    def _choose(self, form: _Form, forms: Sequence[_Form]) -> None:
        """Write the functions that tell the members of a union apart."""
        number = len(self._lines)
        out, back = f"out_union_{number}", f"back_union_{number}"
        kinds = f"kinds_{number}"
        self._names[kinds] = [each.kinds for each in forms]
        self._names["simple_name"] = simple_name
        lines = [f"def {out}(v):"]
        for place, each in enumerate(forms):
            value = each.out("v") if each.out else "v"
            if each.name and dict not in each.kinds:
                value = f"(full_names.get({each.name!r}, {each.name!r}), {value})"
            if value != "v":
                lines.append(f"    if isinstance(v, {kinds}[{place}]): return {value}")
        lines += ["    return v", f"def {back}(v):"]
        records = [each for each in forms if _is_record(each)]
        if len(records) > 1:
            # Of several records fastavro says which one it is.
            lines += ["    if type(v) is tuple:", "        name, v = v"]
            lines.append("        name = simple_name(name)")
            lines += [
                f"        if name == {each.name!r}: return "
                f"{each.back('v') if each.back else 'v'}"
                for each in records
            ]
        for each in forms:
            lines += _told_apart(each, is_tagged=len(records) > 1)
        self._lines += [*lines, "    return v"]
        form.out = lambda v: f"{out}({v})"
        form.back = lambda v: f"{back}({v})"
        form.is_lax = False


def _told_apart(form: _Form, *, is_tagged: bool) -> list[str]:
    """Return lines that make the value of one member of a union, if it is that one."""
    if form.back is None or (_is_record(form) and is_tagged):
        return []
    kind = form.schema if isinstance(form.schema, str) else form.schema["type"]
    if kind == "array":
        return [f"    if type(v) is list: return {form.back('v')}"]
    if _is_enum(form):
        return [f"    if type(v) is str: return {form.back('v')}"]
    return [f"    if type(v) is dict: return {form.back('v')}"]


def _is_enum(form: _Form) -> bool:
    return any(issubclass(kind, Enum) for kind in form.kinds)


def _is_record(form: _Form) -> bool:
    return bool(form.name) and not _is_enum(form)


def _check_members(forms: Sequence[_Form], where: str) -> None:
    seen: set[str] = set()
    for form in forms:
        for schema in _branches(form.schema):
            kind = schema if isinstance(schema, str) else schema["type"]
            key = form.name or kind
            if key in seen:
                raise ConfigurationError(
                    f"{where}: two members of the union are {key!r} in Avro"
                )
            seen.add(key)
    # What fastavro reads them as: it does not say which member a str or dict is of.
    read_as = [
        str if _is_enum(form) else dict if _is_record(form) else kind
        for form in forms
        for kind in form.kinds
    ]
    records = sum(_is_record(form) for form in forms)
    if read_as.count(str) > 1 or (records and read_as.count(dict) > records):
        raise ConfigurationError(
            f"{where}: the members of the union cannot be told apart: in Avro's data "
            "two are a str, or a dict"
        )
    if records > 1 and any(_is_record(form) and dict in form.kinds for form in forms):
        raise ConfigurationError(
            f"{where}: a TypedDict cannot be told apart from other records of the union"
        )


def _branches(schema: AvroType) -> list[AvroType]:
    return schema if isinstance(schema, list) else [schema]


def _optional(form: _Form, default: Any) -> _Form:
    is_first = default is None or default is MISSING
    rest = [each for each in _branches(form.schema) if each != "null"]
    raw, out, back = form.raw, form.out, form.back

    def wrap(inner: Callable[[str], str] | None) -> Callable[[str], str] | None:
        if inner is None:
            return None
        return lambda v: f"(None if {v} is None else {inner(v)})"

    return replace(
        form,
        schema=["null", *rest] if is_first else [*rest, "null"],
        raw=lambda value: None if value is None else raw(value),
        kinds=(*form.kinds, _NONE),
        out=wrap(out),
        back=wrap(back),
    )


# -- the functions of classes ----------------------------------------------------------


def _extract_function(
    name: str, parts: Sequence[tuple[ClassField, _Form]]
) -> list[str]:
    entries = []
    for field, form in parts:
        value = f"v.{field.name}"
        entries.append(f"{field.key!r}: {form.out(value) if form.out else value}")
    return [f"def extract_{name}(v):", f"    return {{{', '.join(entries)}}}"]


def _dict_functions(name: str, parts: Sequence[tuple[ClassField, _Form]]) -> list[str]:
    """Return the functions of a TypedDict, whose keys may be left out."""
    extract = [f"def extract_{name}(v):", "    made = {}"]
    build = [f"def build_{name}(v):", "    made = {}"]
    for field, form in parts:
        key = repr(field.key)
        value = f"v[{key}]"
        written = form.out(value) if form.out else value
        read = form.back(value) if form.back else value
        is_there = f"if {key} in v: " if field.is_optional else ""
        is_set = f"if {value} is not None: " if field.is_optional else ""
        extract.append(f"    {is_there}made[{key}] = {written}")
        build.append(f"    {is_set}made[{key}] = {read}")
    return [*extract, "    return made", *build, "    return made"]


def _validator(kind: Any, library: Family) -> Callable[[Any], Any]:
    """Return what makes and validates an instance of a dict of its fields."""
    if library == "pydantic":
        validate: Callable[[Any], Any] = kind.model_validate
        return validate
    import msgspec

    return partial(msgspec.convert, type=kind)


# -- defaults --------------------------------------------------------------------------


def _same(value: Any) -> Any:
    return value


def _scalar(kind: Any) -> _Form:
    kind = _NONE if kind is None else kind
    schema = _SCALARS[kind]
    copied = schema if isinstance(schema, str) else dict(schema)

    def raw(value: Any) -> Any:
        if kind is float and type(value) is int:
            value = float(value)
        if not isinstance(value, kind):
            raise TypeError
        return _RAW.get(kind, _same)(value)

    return _Form(copied, raw, (kind,))


def _raw_datetime(value: datetime) -> int:
    if value.tzinfo is None:
        raise ValueError("has no time zone")
    return (value - _EPOCH) // timedelta(microseconds=1)


def _raw_time(value: time) -> int:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1_000_000 + value.microsecond


def _raw_decimal(scale: int, value: Decimal) -> str:
    unscaled = int(value.scaleb(scale))
    size = (unscaled + (unscaled < 0)).bit_length() // 8 + 1
    return unscaled.to_bytes(size, "big", signed=True).decode("latin-1")


_RAW: Mapping[Any, Callable[[Any], Any]] = {
    bytes: lambda value: value.decode("latin-1"),
    datetime: _raw_datetime,
    date: lambda value: value.toordinal() - _EPOCH.toordinal(),
    time: _raw_time,
    UUID: str,
}


# -- instances that do not fit ---------------------------------------------------------


def locate(hint: Any, value: Any) -> Fault | None:
    """Return where an instance is not what its annotations say; None if it is.

    Scalars are not looked at: the schema knows more of them.

    Args:
        hint: the class, or another type.
        value: the instance.
    """
    try:
        return _locate(hint, value)
    except RecursionError:
        return Fault((), "is nested too deeply, or contains itself")


def _locate(hint: Any, value: Any) -> Fault | None:
    kind, _ = bare(hint)
    members = union_members(kind)
    if members is not None:
        return _locate_member(members, value)
    if family(kind) is not None:
        return _locate_field(kind, value)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return None if isinstance(value, kind) else _not_a(kind.__name__, value)
    origin = typing.get_origin(kind)
    arguments = typing.get_args(kind)
    if origin in _MAPS and len(arguments) == 2:
        if not isinstance(value, Mapping):
            return _not_a("dict", value)
        return _locate_each(arguments[1], value.items())
    if origin in _ARRAYS and arguments:
        if not isinstance(value, abc.Collection) or isinstance(value, str | bytes):
            return _not_a("list", value)
        return _locate_each(arguments[0], enumerate(value))
    return None


def _locate_member(members: Sequence[Any], value: Any) -> Fault | None:
    if value is None and _NONE in members:
        return None
    faults = [_locate(each, value) for each in members if each is not _NONE]
    if None in faults:
        return None
    return next((fault for fault in faults if fault and fault.path), faults[0])


def _locate_field(kind: Any, value: Any) -> Fault | None:
    is_dict = family(kind) == "typeddict"
    if not isinstance(value, Mapping if is_dict else kind):
        return _not_a(kind.__name__, value)
    for field in fields_of(kind):
        if is_dict and field.is_optional and field.name not in value:
            continue
        try:
            inner = value[field.name] if is_dict else getattr(value, field.name)
        except (KeyError, AttributeError):
            return Fault((field.name,), "is missing")
        fault = _locate(field.type, inner)
        if fault is not None:
            return Fault((field.name, *fault.path), fault.reason)
    return None


def _locate_each(hint: Any, places: Iterable[tuple[Any, Any]]) -> Fault | None:
    for place, value in places:
        fault = _locate(hint, value)
        if fault is not None:
            return Fault((place, *fault.path), fault.reason)
    return None


def _not_a(name: str, value: object) -> Fault:
    return Fault((), f"must be of the type {name}, not {type(value).__name__}")
