"""Dataclasses whose methods are made when one of them is first used.

The standard library compiles the methods of a dataclass when the class is defined. That
takes up to half a millisecond for each class, and most of the time that a module of
dataclasses takes to load; yet a program uses few of the classes that it loads. So
`dataclass` here defines the class with its slots alone. When one of the methods is
first used, the standard library makes them all, and from then on the class is the same
as the standard library's.

`constructor` is for those who make thousands of a frozen one at a time.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, slots, frozen=False, kw_only=False, eq=True):
        """Do the same as the standard library's decorator, with these options of it.

        The module must have ``from __future__ import annotations``. A mistake in the
        definition of a field raises when the class is first used.
        """
        if not slots:
            raise TypeError(
                "use the standard library's dataclass for one without slots"
            )

        def define(cls):
            return _define(cls, {"frozen": frozen, "kw_only": kw_only, "eq": eq})

        return define


#: Names that the standard library adds to a class.
_ADDED = [
    "__init__",
    "__repr__",
    "__match_args__",
    "__dataclass_fields__",
    "__dataclass_params__",
]
if sys.version_info >= (3, 13):
    _ADDED.append("__replace__")
_ADDED_FROZEN = ("__setattr__", "__delattr__", "__getstate__", "__setstate__")
#: Names that every class has in its own namespace.
_OWN = ("__dict__", "__weakref__")


class _Unmade:
    """Takes the place of a method or attribute that is not made yet."""

    __slots__ = ("_make", "_name")

    def __init__(self, name: str, make: _Maker) -> None:
        self._name = name
        self._make = make

    def __get__(self, instance: object, owner: type | None = None) -> object:
        made = self._make(self._name)
        get = getattr(type(made), "__get__", None)
        return made if get is None else get(made, instance, owner)


class _Maker:
    """Makes all methods and attributes that a class lacks, at once.

    Two threads may do so at the same time: both make the same.
    """

    __slots__ = ("_namespace", "_options", "target")

    def __init__(
        self, namespace: dict[str, object], options: dict[str, bool], target: type
    ) -> None:
        self._namespace = namespace
        self._options = options
        self.target = target

    def __call__(self, name: str) -> object:
        """Make everything, and return the one of this name."""
        target = self.target
        plain = type(target)(target.__name__, target.__bases__, dict(self._namespace))
        plain.__qualname__ = target.__qualname__
        made = vars(dataclasses.dataclass(slots=True, **self._options)(plain))
        there = dict(vars(target))
        for key, value in made.items():
            if key not in there or isinstance(there[key], _Unmade):
                setattr(target, key, value)
        return vars(target)[name]


def _define(cls: type, options: dict[str, bool]) -> type:
    own_fields = _own_fields(cls)
    namespace = {key: value for key, value in vars(cls).items() if key not in _OWN}
    inherited = {slot for base in cls.__mro__[1:-1] for slot in _slots(base)}
    body = {key: value for key, value in namespace.items() if key not in own_fields}
    body["__slots__"] = tuple(name for name in own_fields if name not in inherited)
    maker = _Maker(namespace, options, cls)
    for name in _missing(namespace, options):
        body[name] = _Unmade(name, maker)
    if options["eq"] and not options["frozen"]:
        body.setdefault("__hash__", None)
    maker.target = type(cls)(cls.__name__, cls.__bases__, body)
    maker.target.__qualname__ = cls.__qualname__
    return maker.target


def _missing(namespace: dict[str, object], options: dict[str, bool]) -> Iterable[str]:
    yield from (name for name in _ADDED if name not in namespace)
    if options["frozen"]:
        yield from (name for name in _ADDED_FROZEN if name not in namespace)
    if options["eq"]:
        if "__eq__" not in namespace:
            yield "__eq__"
        # A class with __eq__ and no __hash__ has None there.
        if options["frozen"] and namespace.get("__hash__") is None:
            yield "__hash__"


def _own_fields(cls: type) -> list[str]:
    found = []
    for name, annotation in cls.__annotations__.items():
        if not isinstance(annotation, str):
            raise TypeError(f"the annotations of {cls.__name__} must be postponed")
        if "InitVar" in annotation or "KW_ONLY" in annotation:
            raise TypeError(
                f"{cls.__name__}.{name}: use the standard library's dataclass for it"
            )
        if not annotation.startswith("ClassVar"):
            found.append(name)
    return found


def _slots(base: type) -> tuple[str, ...]:
    slots = vars(base).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


_CONSTRUCTORS: dict[object, Any] = {}


def constructor(cls: Callable[P, T]) -> Callable[P, T]:
    """Return a function that makes instances of a frozen dataclass with slots, faster.

    It takes what the class takes and makes the same, in half the time: ``__init__`` of
    a frozen class sets each field by way of ``object.__setattr__``, and this function
    by the slot.

    Raises:
        TypeError: the class has a ``__post_init__``, or a field whose default has to be
            made or that is not a parameter.
    """
    found: Callable[P, T] | None = _CONSTRUCTORS.get(cls)
    if found is None:
        assert isinstance(cls, type)
        found = _CONSTRUCTORS[cls] = _compile_constructor(cls)
    return found


def _compile_constructor(cls: type) -> Any:
    if hasattr(cls, "__post_init__"):
        raise TypeError(f"{cls.__name__} has a __post_init__")
    names: dict[str, object] = {"cls": cls, "new": object.__new__}
    parameters: dict[bool, list[str]] = {False: [], True: []}
    lines = []
    for field in dataclasses.fields(cls):
        if not field.init or field.default_factory is not dataclasses.MISSING:
            raise TypeError(f"{cls.__name__}.{field.name}: use the class itself")
        parameter = field.name
        if field.default is not dataclasses.MISSING:
            names[f"_default_{field.name}"] = field.default
            parameter += f"=_default_{field.name}"
        parameters[bool(field.kw_only)].append(parameter)
        names[f"_set_{field.name}"] = getattr(cls, field.name).__set__
        lines.append(f"    _set_{field.name}(_made, {field.name})")
    if parameters[True]:
        parameters[True].insert(0, "*")
    signature = ", ".join([*parameters[False], *parameters[True]])
    text = "\n".join(
        [
            f"def construct({signature}):",
            "    _made = new(cls)",
            *lines,
            "    return _made",
        ]
    )
    # The text consists of the names of fields.
    exec(compile(text, f"<constructor of {cls.__name__}>", "exec"), names)  # noqa: S102
    return names["construct"]
