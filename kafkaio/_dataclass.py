"""Dataclasses whose methods are made one by one, each when it is first used.

The standard library compiles the methods of a dataclass when the class is defined. That
takes up to half a millisecond for each class, and most of the time that a module of
dataclasses takes to load; yet a program uses few of the classes that it loads, and of
most of these the constructor alone. So `dataclass` here defines the class with its
slots alone. ``__init__`` is compiled when the first object is made, ``__eq__`` and
``__hash__`` when they are first used. The other methods need no compiler, and are made
when they are first used, too. What tools ask for
(``__dataclass_fields__``, ``__replace__``) comes from the standard library.

`replace` does the same as the standard library's and needs none of that. `constructor`
is for those who make thousands of a frozen one at a time.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError
from functools import partial
from reprlib import recursive_repr
from types import FunctionType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

P = ParamSpec("P")
T = TypeVar("T")

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass, replace as replace

    #: A field of an object that is made: its name, its default, what makes its default,
    #: whether it is a parameter, and whether only by its name.
    _Step: TypeAlias = tuple[str, object, Any, bool, bool]
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

    def replace(one, /, **changes):
        """Do the same as the standard library's function."""
        maker = _MAKERS.get(type(one))
        if maker is None:
            return dataclasses.replace(one, **changes)
        for field in maker.fields():
            if field.init and field.name not in changes:
                changes[field.name] = getattr(one, field.name)
        return type(one)(**changes)


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
        # A class that shares this one asks again.
        made = vars(self._make.target)[self._name]
        if made is self:
            made = self._make(self._name)
        get = getattr(type(made), "__get__", None)
        return made if get is None else get(made, instance, owner)


#: Calls of a method before it is compiled, which costs as much as so many of them.
_SLOW_CALLS = 16


class _Uncompiled(_Unmade):
    """Takes the place of a method that is compiled when it has been called often."""

    __slots__ = ("_left",)

    def __init__(self, name: str, make: _Maker) -> None:
        # Without `super()`: there are three of them in most classes.
        self._name = name
        self._make = make
        self._left = _SLOW_CALLS

    def __get__(self, instance: object, owner: type | None = None) -> object:
        # Of the class, it is the method itself: its signature may be asked for, where
        # `inspect` passes the class as an instance of `type`. Threads that count at the
        # same time may go below zero.
        if self._left <= 0 or not isinstance(instance, self._make.target):
            return super().__get__(instance, owner)
        self._left -= 1
        return partial(_SLOWLY[self._name], self._make, instance)


class _Maker:
    """Makes the methods and attributes that a class lacks.

    Two threads may do so at the same time: both make the same.
    """

    __slots__ = ("_fields", "_namespace", "_own", "_steps", "options", "target")

    def __init__(
        self,
        namespace: dict[str, object],
        own: Sequence[str],
        options: dict[str, bool],
        target: type,
    ) -> None:
        self._namespace = namespace
        self._own = own
        self.options = options
        self.target = target
        self._fields: list[Field[Any]] | None = None
        self._steps: tuple[list[str], list[_Step]] | None = None

    def __call__(self, name: str) -> object:
        """Make the one of this name and return it."""
        target = self.target
        if name == "__dataclass_fields__":
            # A class that derives from a frozen one has to be frozen.
            is_derived = any(base in _MAKERS for base in target.__mro__[1:])
            options = {**self.options, "frozen": self.options["frozen"] and is_derived}
            options |= {"init": False, "repr": False, "eq": False}
            setattr(target, name, self._by_library(options)[name])
        elif (make := _BY_NAME.get(name)) is not None:
            method = make(self)
            if isinstance(method, FunctionType):
                method.__qualname__ = f"{target.__qualname__}.{name}"
                method.__module__ = target.__module__
            setattr(target, name, method)
        else:
            there = dict(vars(target))
            for key, value in self._by_library(self.options).items():
                if key not in there or isinstance(there[key], _Unmade):
                    setattr(target, key, value)
        return vars(target)[name]

    def _by_library(self, options: dict[str, bool]) -> dict[str, object]:
        target = self.target
        plain = type(target)(target.__name__, target.__bases__, dict(self._namespace))
        plain.__qualname__ = target.__qualname__
        return dict(vars(dataclasses.dataclass(slots=True, **options)(plain)))

    def fields(self) -> list[Field[Any]]:
        """Return the fields of the class, those of its bases first."""
        if self._fields is None:
            found: dict[str, Field[Any]] = {}
            for base in reversed(self.target.__mro__[1:-1]):
                maker = _MAKERS.get(base)
                if maker is not None:
                    found |= {field.name: field for field in maker.fields()}
                elif "__dataclass_fields__" in vars(base):
                    found |= {field.name: field for field in dataclasses.fields(base)}
            annotations: Any = self._namespace["__annotations__"]
            for name in self._own:
                found[name] = self._field(name, annotations[name])
            self._fields = list(found.values())
        return self._fields

    def _field(self, name: str, annotation: Any) -> Field[Any]:
        # As the standard library completes it.
        said: Any = self._namespace.get(name, MISSING)
        field: Field[Any] = (
            said if isinstance(said, Field) else dataclasses.field(default=said)
        )
        field.name = name
        field.type = annotation
        if field.kw_only is MISSING:
            field.kw_only = self.options["kw_only"]
        return field

    def steps(self) -> tuple[list[str], list[_Step]]:
        """Return the positional parameters of ``__init__``, and what it sets."""
        if self._steps is None:
            found = self._found_steps()
            self._steps = (
                [step[0] for step in found if step[3] and not step[4]],
                found,
            )
        return self._steps

    def _found_steps(self) -> list[_Step]:
        # As `fields`, without an object for each field: most are never asked for.
        found: dict[str, _Step] = {}
        for base in reversed(self.target.__mro__[1:-1]):
            maker = _MAKERS.get(base)
            if maker is not None:
                found |= {step[0]: step for step in maker.steps()[1]}
            elif "__dataclass_fields__" in vars(base):
                found |= {one.name: _step(one) for one in dataclasses.fields(base)}
        is_keyword = self.options["kw_only"]
        for name in self._own:
            said: Any = self._namespace.get(name, MISSING)
            if isinstance(said, Field):
                annotations: Any = self._namespace["__annotations__"]
                found[name] = _step(self._field(name, annotations[name]))
            else:
                found[name] = (name, said, MISSING, True, is_keyword)
        return list(found.values())


def _step(field: Field[Any]) -> _Step:
    kind = (field.init, bool(field.kw_only))
    return (field.name, field.default, field.default_factory, *kind)


#: The maker of each class that was defined here.
_MAKERS: WeakKeyDictionary[type, _Maker] = WeakKeyDictionary()


def fields_of(cls: type) -> Sequence[Field[Any]]:
    """Return what `dataclasses.fields` returns, without what else that has made."""
    maker = _MAKERS.get(cls)
    return dataclasses.fields(cls) if maker is None else maker.fields()


class _FromFactory:
    """Stands for a default that is made for each object."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<factory>"


_FROM_FACTORY = _FromFactory()


def _init(maker: _Maker) -> object:
    target = maker.target
    names: dict[str, object] = {"_FROM_FACTORY": _FROM_FACTORY}
    parameters: dict[bool, list[str]] = {False: ["self"], True: []}
    lines: list[str] = []
    for field in maker.fields():
        name, value = field.name, field.name
        default = field.default
        if field.default_factory is not MISSING:
            names[f"_make_{name}"] = field.default_factory
            value = f"_make_{name}()"
            if field.init:
                value += f" if {name} is _FROM_FACTORY else {name}"
            default = _FROM_FACTORY
        elif not field.init:
            if default is MISSING:
                continue
            value = f"_default_{name}"
        names[f"_default_{name}"] = default
        if field.init:
            has_none = default is MISSING
            parameters[bool(field.kw_only)].append(
                name if has_none else f"{name}=_default_{name}"
            )
        if maker.options["frozen"]:
            names[f"_set_{name}"] = getattr(target, name).__set__
            lines.append(f"_set_{name}(self, {value})")
        else:
            lines.append(f"self.{name} = {value}")
    if hasattr(target, "__post_init__"):
        lines.append("self.__post_init__()")
    made = _compiled("__init__", parameters, lines, names, target)
    made.__annotations__ = {
        field.name: _annotation(target, field.name)
        for field in maker.fields()
        if field.init
    }
    made.__annotations__["return"] = None
    return made


def _init_slowly(
    maker: _Maker, made: object, /, *args: object, **given: object
) -> None:
    positional, steps = maker.steps()
    values = dict(zip(positional, args, strict=False))
    if len(args) > len(positional) or values.keys() & given.keys():
        return _init_wrongly(maker, made, *args, **given)
    values |= given
    write = object.__setattr__ if maker.options["frozen"] else setattr
    left = len(values)
    for name, default, factory, is_parameter, _ in steps:
        if is_parameter and name in values:
            left -= 1
            write(made, name, values[name])
        elif default is not MISSING:
            write(made, name, default)
        elif factory is not MISSING:
            write(made, name, factory())
        elif is_parameter:
            return _init_wrongly(maker, made, *args, **given)
    if left:
        return _init_wrongly(maker, made, *args, **given)
    if hasattr(made, "__post_init__"):
        made.__post_init__()
    return None


def _init_wrongly(
    maker: _Maker, made: object, /, *args: object, **given: object
) -> None:
    """Have the compiled one say what is wrong with the arguments."""
    compiled: Any = maker("__init__")
    compiled(made, *args, **given)


def _annotation(target: type, name: str) -> object:
    return next(
        found[name]
        for base in target.__mro__
        if name in (found := vars(base).get("__annotations__", {}))
    )


def _compiled(
    name: str,
    parameters: dict[bool, list[str]],
    lines: Iterable[str],
    names: Mapping[str, object],
    target: type,
) -> Any:
    keywords = ["*", *parameters[True]] if parameters.get(True) else []
    signature = ", ".join([*parameters[False], *keywords])
    body = "\n  ".join(lines) or "pass"
    text = (
        f"def make({', '.join(names)}):\n"
        f" def {name}({signature}):\n"
        f"  {body}\n"
        f" return {name}"
    )
    # The text consists of the names of fields. The globals are those of the class, for
    # those who read its annotations.
    scope: dict[str, Any] = {}
    there = vars(sys.modules[target.__module__])
    exec(compile(text, f"<{name} of {target.__name__}>", "exec"), there, scope)  # noqa: S102
    return scope["make"](**names)


def _repr(maker: _Maker) -> object:
    shown = tuple(field.name for field in maker.fields() if field.repr)

    @recursive_repr()
    def __repr__(self: object) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{type(self).__qualname__}({values})"

    return __repr__


def _tuple_of(owner: str, names: Iterable[str]) -> str:
    return "(" + "".join(f"{owner}.{name}, " for name in names) + ")"


def _eq(maker: _Maker) -> object:
    names = _compared(maker)
    lines = [
        "if type(other) is type(self):",
        f" return {_tuple_of('self', names)} == {_tuple_of('other', names)}",
        "return NotImplemented",
    ]
    return _compiled("__eq__", {False: ["self", "other"]}, lines, {}, maker.target)


def _eq_slowly(maker: _Maker, one: object, other: object) -> object:
    if type(other) is not type(one):
        return NotImplemented
    names = _compared(maker)
    return _values(one, names) == _values(other, names)


def _compared(maker: _Maker) -> list[str]:
    return [field.name for field in maker.fields() if field.compare]


def _values(one: object, names: Iterable[str]) -> tuple[object, ...]:
    return tuple([getattr(one, name) for name in names])


def _hash(maker: _Maker) -> object:
    names = _hashed(maker)
    lines = [f"return hash({_tuple_of('self', names)})"]
    return _compiled("__hash__", {False: ["self"]}, lines, {}, maker.target)


def _hash_slowly(maker: _Maker, one: object) -> int:
    return hash(_values(one, _hashed(maker)))


def _hashed(maker: _Maker) -> list[str]:
    return [
        field.name
        for field in maker.fields()
        if (field.compare if field.hash is None else field.hash)
    ]


def _setattr(maker: _Maker) -> object:
    cls, names = maker.target, {field.name for field in maker.fields()}

    def __setattr__(self: object, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)  # type: ignore[arg-type]

    return __setattr__


def _delattr(maker: _Maker) -> object:
    cls, names = maker.target, {field.name for field in maker.fields()}

    def __delattr__(self: object, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)  # type: ignore[arg-type]

    return __delattr__


def _getstate(maker: _Maker) -> object:
    names = [field.name for field in maker.fields()]

    def __getstate__(self: object) -> list[object]:
        return [getattr(self, name) for name in names]

    return __getstate__


def _setstate(maker: _Maker) -> object:
    names = [field.name for field in maker.fields()]

    def __setstate__(self: object, state: Iterable[object]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    return __setstate__


def _match_args(maker: _Maker) -> object:
    return tuple(maker.steps()[0])


_BY_NAME: dict[str, Callable[[_Maker], object]] = {
    "__init__": _init,
    "__repr__": _repr,
    "__eq__": _eq,
    "__hash__": _hash,
    "__setattr__": _setattr,
    "__delattr__": _delattr,
    "__getstate__": _getstate,
    "__setstate__": _setstate,
    "__match_args__": _match_args,
}
#: The same without a compiler, for the first calls.
_SLOWLY: dict[str, Callable[..., object]] = {
    "__init__": _init_slowly,
    "__eq__": _eq_slowly,
    "__hash__": _hash_slowly,
}


def _define(cls: type, options: dict[str, bool]) -> type:
    own_fields = _own_fields(cls.__annotations__, cls)
    namespace = dict(vars(cls))
    for name in _OWN:
        namespace.pop(name, None)
    body = dict(namespace)
    for name in own_fields:
        body.pop(name, None)
    inherited = {slot for base in cls.__mro__[1:-1] for slot in _slots(base)}
    body["__slots__"] = tuple([name for name in own_fields if name not in inherited])
    body["__qualname__"] = cls.__qualname__
    maker = _Maker(namespace, own_fields, options, cls)
    is_frozen, has_eq = options["frozen"], options["eq"]
    for name, kind in _MISSING[is_frozen, has_eq]:
        # A class with __eq__ and no __hash__ has None there.
        if name not in namespace or (name == "__hash__" and namespace[name] is None):
            body[name] = kind(name, maker)
    if has_eq and not is_frozen:
        body.setdefault("__hash__", None)
    target = maker.target = type(cls)(cls.__name__, cls.__bases__, body)
    _MAKERS[target] = maker
    return target


def _missing(*, is_frozen: bool, has_eq: bool) -> list[tuple[str, type[_Unmade]]]:
    names = [*_ADDED, *(_ADDED_FROZEN if is_frozen else ())]
    names += ["__eq__"] if has_eq else []
    names += ["__hash__"] if has_eq and is_frozen else []
    return [(name, _Uncompiled if name in _SLOWLY else _Unmade) for name in names]


#: What a class gets that does not have it, by whether it is frozen and compares.
_MISSING = {
    (is_frozen, has_eq): _missing(is_frozen=is_frozen, has_eq=has_eq)
    for is_frozen in (False, True)
    for has_eq in (False, True)
}


def _own_fields(annotations: Mapping[str, object], cls: type) -> list[str]:
    found = []
    for name, annotation in annotations.items():
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
    names: dict[str, object] = {"_new": object.__new__, "_cls": cls}
    parameters: dict[bool, list[str]] = {False: [], True: []}
    lines = ["_made = _new(_cls)"]
    for field in fields_of(cls):
        if not field.init or field.default_factory is not MISSING:
            raise TypeError(f"{cls.__name__}.{field.name}: use the class itself")
        parameter = field.name
        if field.default is not MISSING:
            names[f"_default_{field.name}"] = field.default
            parameter += f"=_default_{field.name}"
        parameters[bool(field.kw_only)].append(parameter)
        names[f"_set_{field.name}"] = getattr(cls, field.name).__set__
        lines.append(f"_set_{field.name}(_made, {field.name})")
    return _compiled("construct", parameters, [*lines, "return _made"], names, cls)
