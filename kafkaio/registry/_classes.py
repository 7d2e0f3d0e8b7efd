"""The fields of dataclasses, TypedDicts, and classes of pydantic and msgspec."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias

from kafkaio._dataclass import dataclass
from kafkaio.errors import ConfigurationError

#: The libraries whose classes are known.
Family: TypeAlias = Literal["dataclass", "pydantic", "msgspec", "typeddict"]

#: A field without a default.
MISSING = dataclasses.MISSING
#: Factories whose result is the same each time.
_CONSTANT_FACTORIES = (list, dict, set, frozenset, tuple)


@dataclass(slots=True, frozen=True)
class ClassField:
    """A field of a class.

    Attributes:
        name: the attribute.
        key: its name in data: the alias, where the class has one.
        argument: its name for the constructor, or for what the library validates.
        type: its type, with what `Annotated` adds.
        default: its default; `MISSING` without one that is always the same.
        is_optional: whether a dict may leave it out.
        has_default: whether an instance can be made without it.
    """

    name: str
    key: str
    argument: str
    type: Any
    default: Any
    is_optional: bool = False
    has_default: bool = False

    @property
    def is_required(self) -> bool:
        """Whether data has to have it."""
        return not self.is_optional and not self.has_default


@dataclass(slots=True, frozen=True)
class Fault:
    """Where and why a value does not fit a type or schema.

    Attributes:
        path: names and indices that lead to the place.
        reason: what is wrong, without the value.
    """

    path: tuple[str | int, ...]
    reason: str


def family(kind: object) -> Family | None:
    """Return the library of a class; None if it is no class with fields."""
    if not isinstance(kind, type):
        return None
    if dataclasses.is_dataclass(kind):
        return "dataclass"
    if hasattr(kind, "__pydantic_validator__") and hasattr(kind, "model_validate"):
        return "pydantic"
    if hasattr(kind, "__struct_fields__") and hasattr(kind, "__struct_config__"):
        return "msgspec"
    # Of typing and of typing_extensions.
    if issubclass(kind, dict) and hasattr(kind, "__total__"):
        return "typeddict"
    return None


def fields_of(kind: type) -> list[ClassField]:
    """Return the fields of a class, in their order.

    Raises:
        ConfigurationError: it is no class with fields, or an annotation of it cannot be
            resolved.
    """
    found = family(kind)
    if found is None:
        raise ConfigurationError(
            f"{kind!r} must be a dataclass, a TypedDict, or a class of pydantic or "
            "msgspec"
        )
    try:
        return list(_READERS[found](kind))
    except (NameError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            f"the annotations of {kind.__name__} cannot be resolved: {error}"
        ) from error


def takes_positions(kind: Any) -> bool:
    """Whether a dataclass takes its fields by position, which is quicker.

    Its constructor has to be the one that was made for it.
    """
    return (
        kind.__dataclass_params__.init
        and not hasattr(kind, "__pydantic_validator__")
        and not any(field.kw_only for field in dataclasses.fields(kind))
    )


def _of_dataclass(kind: Any) -> Iterator[ClassField]:
    if hasattr(kind, "__pydantic_fields__"):
        config = getattr(kind, "__pydantic_config__", None) or {}
        yield from _of_pydantic_fields(kind.__pydantic_fields__, config)
        return
    hints = typing.get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        if not field.init:
            continue
        default = _default(field.default, field.default_factory)
        name = field.name
        has_default = not (
            field.default is MISSING and field.default_factory is MISSING
        )
        yield ClassField(
            name, name, name, hints[name], default, has_default=has_default
        )


def _default(default: Any, factory: Any) -> Any:
    if default is not MISSING:
        return default
    return factory() if factory in _CONSTANT_FACTORIES else MISSING


def _of_pydantic(kind: Any) -> Iterator[ClassField]:
    yield from _of_pydantic_fields(kind.model_fields, kind.model_config)


def _of_pydantic_fields(
    fields: Mapping[str, Any], config: Mapping[str, Any]
) -> Iterator[ClassField]:
    by_alias = config.get("validate_by_alias", True)
    for name, field in fields.items():
        if field.exclude or field.init is False:
            continue
        hint = field.annotation
        if field.metadata:
            hint = typing.Annotated[(hint, *field.metadata)]
        default = MISSING
        if not field.is_required():
            default = _default(
                MISSING if field.default_factory is not None else field.default,
                field.default_factory,
            )
        key = field.serialization_alias or field.alias or name
        argument = field.validation_alias if by_alias else None
        if not isinstance(argument, str):
            argument = field.alias if by_alias and field.alias else name
        yield ClassField(name, key, argument, hint, default)


def _of_msgspec(kind: Any) -> Iterator[ClassField]:
    import msgspec

    for field in msgspec.structs.fields(kind):
        default = field.default
        if default is msgspec.NODEFAULT:
            factory = field.default_factory
            default = MISSING
            if factory is not msgspec.NODEFAULT:
                default = _default(MISSING, factory)
        key = field.encode_name
        yield ClassField(field.name, key, key, field.type, default)


def _of_typeddict(kind: Any) -> Iterator[ClassField]:
    hints = typing.get_type_hints(kind, include_extras=True)
    for name, hint in hints.items():
        is_optional = name not in kind.__required_keys__
        marker = typing.get_origin(hint)
        # Where annotations are postponed, __required_keys__ has not seen the marks.
        if marker is typing.NotRequired or marker is typing.Required:
            is_optional = marker is typing.NotRequired
            hint = typing.get_args(hint)[0]
        yield ClassField(name, name, name, hint, MISSING, is_optional)


_READERS: Mapping[Family, Any] = {
    "dataclass": _of_dataclass,
    "pydantic": _of_pydantic,
    "msgspec": _of_msgspec,
    "typeddict": _of_typeddict,
}


def bare(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return a type without `Annotated`, `NewType` and aliases, and what they add."""
    extras: tuple[Any, ...] = ()
    while True:
        if typing.get_origin(hint) is typing.Annotated:
            hint, *more = typing.get_args(hint)
            extras = (*extras, *more)
        elif isinstance(hint, typing.NewType):
            hint = hint.__supertype__
        elif type(hint).__name__ == "TypeAliasType":
            hint = hint.__value__
        else:
            return hint, extras


def union_members(hint: Any) -> tuple[Any, ...] | None:
    """Return the members of a union; None if the type is none."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return typing.get_args(hint)
    return None
