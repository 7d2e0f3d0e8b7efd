"""Public names: where a name is found, and the path that it shows.

A name is public if a module without an underscore in its path lists it in ``__all__``.
`lazy` makes that list, and loads each name from the private module that defines it when
it is first used. `public` gives what is defined there its public path, which errors,
pickles and the reference show: ``kafkaio.Consumer``, wherever the class stands.
"""

from __future__ import annotations

import gc
import sys
from abc import ABCMeta
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import wraps
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, ForwardRef, NoReturn, Self, TypeVar

if TYPE_CHECKING:
    from _collections_abc import dict_items, dict_keys, dict_values

T = TypeVar("T", bound=Callable[..., object])
ClassT = TypeVar("ClassT", bound=type)
ItemT = TypeVar("ItemT", covariant=True)

#: Turns what separates the names in an annotation into spaces.
_PARTED = str.maketrans(dict.fromkeys("[](),|", " "))
#: Names that an annotation may have and that are found from every module.
_KNOWN_EVERYWHERE = frozenset(
    (
        *("None", "bool", "bytes", "dict", "float", "frozenset", "int", "list"),
        *("object", "set", "str", "tuple", "type"),
    )
)


def public(path: str) -> Callable[[T], T]:
    """Return a decorator that gives a class or function its public path.

    It comes first, above ``@dataclass``: that reads the annotations in the module in
    which the class stands.

    Args:
        path: the module from which users import it.
    """

    def mark(defined: T) -> T:
        if isinstance(defined, type):
            _keep_annotations(defined)
        defined.__module__ = path
        return defined

    return mark


def _keep_annotations(kind: type) -> None:
    """Let `typing.get_type_hints` find the names in the annotations of a class.

    It looks them up in the module that ``__module__`` names, which does not have them.
    """
    annotations = vars(kind).get("__annotations__")
    if annotations:
        # A new dict: `kafkaio._dataclass` reads the old one on first use of the class.
        kind.__annotations__ = _Annotations(annotations, kind.__module__)


class _Annotations(dict[str, object]):
    """The annotations of a class, each with the module that has its names.

    References are made when the annotations are first read, since each is compiled:
    those of all classes would take longer than to define these classes.
    """

    __slots__ = ("_module",)

    def __init__(self, annotations: Mapping[str, object], module: str) -> None:
        super().__init__(annotations)
        self._module = module

    def _refer(self) -> None:
        # Two threads may do so at the same time: both make the same.
        for name, text in super().items():
            if isinstance(text, str) and not _is_known(text):
                made = ForwardRef(text, module=self._module, is_class=True)
                super().__setitem__(name, made)

    # All ways to read them, copying by `dict` included, go through these.

    def __getitem__(self, name: str) -> object:
        self._refer()
        return super().__getitem__(name)

    def __iter__(self) -> Iterator[str]:
        self._refer()
        return super().__iter__()

    def keys(self) -> dict_keys[str, object]:
        self._refer()
        return super().keys()

    def values(self) -> dict_values[str, object]:
        self._refer()
        return super().values()

    def items(self) -> dict_items[str, object]:
        self._refer()
        return super().items()

    def get(self, name: str, default: object = None) -> object:
        self._refer()
        return super().get(name, default)


def _is_known(annotation: str) -> bool:
    return _KNOWN_EVERYWHERE.issuperset(annotation.translate(_PARTED).split())


def lazy(
    package: str,
    homes: Mapping[str, tuple[str, ...]],
    *,
    hidden: Mapping[str, str] = MappingProxyType({}),
    others: str | None = None,
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__all__``, ``__getattr__`` and ``__dir__`` of a package.

    Names are loaded when they are first used, so that a program loads what it needs.

    Args:
        package: its name.
        homes: the public names by the module that has them; modules by the package.
        hidden: the module of each name that is there and not listed.
        others: a module whose public names the package has, too, without listing them.
    """
    where = {name: module for module, names in homes.items() for name in names}
    names = sorted(where)
    where.update(hidden)

    def load(name: str) -> Any:
        home = where.get(name)
        # Tools ask every module for names such as __wrapped__ and __path__.
        if home is None and others and not name.startswith("_"):
            home = others if name in import_module(others).__all__ else None
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if home == package:
            value: Any = _load(f"{home}.{name}")
        else:
            value = getattr(_load(home), name)
        setattr(sys.modules[package], name, value)
        return value

    def list_names() -> list[str]:
        more = import_module(others).__all__ if others else ()
        return sorted({*vars(sys.modules[package]), *names, *more})

    return names, load, list_names


def _load(module: str) -> ModuleType:
    """Import a module with all that it needs, and collect no garbage meanwhile.

    An import makes what stays: functions, classes, constants. The collector would walk
    them again and again and find nothing. See ADR 88.
    """
    if module in sys.modules or not gc.isenabled():
        return import_module(module)
    gc.disable()
    try:
        return import_module(module)
    finally:
        if not gc.get_freeze_count():  # else what the program has frozen would thaw
            # All objects become old without a walk: only a full collection sees them.
            gc.freeze()
            gc.unfreeze()
        gc.enable()


# ---- the names of other clients ------------------------------------------------------


def knows_other_clients(
    *methods: str, is_hot: bool = False
) -> Callable[[ClassT], ClassT]:
    """Return a decorator whose class answers the names and arguments of other clients.

    An attribute that the class does not have, and that another client has, raises an
    AttributeError that says what kafkaio has instead; so does a TypeError of a call
    with arguments of another client. Type checkers do not see any of it, so that they
    go on to report both. `kafkaio._other_clients` has the tables, loaded when needed.

    Args:
        methods: those whose arguments are answered. A call of one costs a function
            call more, some 140 ns; of a coroutine function on Python 3.11, a coroutine
            more, some 220 ns.
        is_hot: whether the class has calls that take nanoseconds. Python 3.11 looks up
            every attribute of a class with ``__getattr__`` without its inline caches,
            which is half as much again for `Producer.enqueue_nowait`. Such a class has
            an entry for each name there, and has to be an ABC; protocols that are
            checked at run time take an entry for a method. Later versions have neither
            cost.
    """

    def mark(defined: ClassT) -> ClassT:
        for name in methods:
            setattr(defined, name, _answering(vars(defined)[name]))
        if not is_hot or sys.version_info >= (3, 12):
            defined.__getattr__ = _missing  # type: ignore[attr-defined]
        elif type(defined) is ABCMeta:  # a class of `type` cannot hide its entries
            _add_entries(defined)
        return defined

    return mark


def _missing(self: object, name: str) -> NoReturn:
    # Called when the usual way has failed: by a property that raised, too. It is asked
    # again, so that its own error is the one that is raised.
    try:
        object.__getattribute__(self, name)
    except AttributeError as error:
        raise _answer(type(self), name, error) from None
    # It is there now: set by another thread, or by the property itself.
    raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _answer(kind: type, name: str, error: AttributeError) -> AttributeError:
    # Tools ask every object for names such as __wrapped__ and _repr_html_.
    hint = None
    if not name.startswith("_") and not hasattr(kind, name):
        from kafkaio._other_clients import attribute_hint

        hint = attribute_hint(kind, name)
    if hint is None:
        return error
    # Without `obj`, Python does not add the most similar name to the text.
    return AttributeError(f"{error}; {hint}", name=name)


def _answering(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that adds to the TypeError of a call that does not fit it."""

    def explain(error: TypeError, given: Mapping[str, object]) -> None:
        # An error of the call itself has no frame of the function below this one.
        trace = error.__traceback__
        if trace is not None and trace.tb_next is None:
            from kafkaio._other_clients import argument_hint

            hint = argument_hint(function.__qualname__, given, str(error))
            if hint is not None:
                error.args = (f"{error}; {hint}",)

    # Loaded by asyncio in any case, and not by `import kafkaio`.
    import inspect

    is_coroutine = inspect.iscoroutinefunction(function)
    if is_coroutine and sys.version_info < (3, 12):

        @wraps(function)
        async def wait(*args: object, **given: object) -> object:
            try:
                made: Awaitable[object] = function(*args, **given)
            except TypeError as error:
                explain(error, given)
                raise
            return await made

        return wait

    @wraps(function)
    def call(*args: object, **given: object) -> object:
        try:
            return function(*args, **given)
        except TypeError as error:
            explain(error, given)
            raise

    if is_coroutine and sys.version_info >= (3, 12):
        # A call makes the coroutine and adds no frame to its tracebacks.
        inspect.markcoroutinefunction(call)
    return call


def refuses_others(function: T) -> T:
    """Decorate a function that refuses what its last two parameters collect.

    They are ``*_others`` and ``**_foreign``: wrong arguments, which `wrong_call`
    answers. Its signature does not show them. That costs less than a function around
    it.
    """
    import inspect

    whole = inspect.signature(function)
    last = {"_others", "_foreign"}
    shown = [it for it in whole.parameters.values() if it.name not in last]
    hidden = whole.replace(parameters=shown)
    function.__signature__ = hidden  # type: ignore[attr-defined]
    return function


def wrong_call(method: str, count: int, given: Mapping[str, object]) -> TypeError:
    """Return the error for a call with too many arguments, or with unknown ones.

    Args:
        method: its qualified name.
        count: how many arguments were passed by position.
        given: those that were passed by keyword and that it does not have.
    """
    from kafkaio._other_clients import argument_hint

    text = f"{method}() got an unexpected keyword argument {next(iter(given), None)!r}"
    if not given:
        text = f"{method}() does not take {count} positional arguments"
    hint = argument_hint(method, given, text)
    return TypeError(text if hint is None else f"{text}; {hint}")


class _Entry:
    # A name of another client, in a class: looking it up raises.

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        what = f"{owner.__name__!r} object"
        if instance is None:
            what = f"type object {owner.__name__!r}"
        from kafkaio._other_clients import attribute_hint

        hint = attribute_hint(owner, self._name)
        text = f"{what} has no attribute {self._name!r}; {hint}"
        raise AttributeError(text, name=self._name)


class _HidesEntries(ABCMeta):
    # `dir`, and with it help, mocks and documentation, does not show them.

    def __dir__(cls) -> list[str]:
        return [name for name in super().__dir__() if not _is_entry(cls, name)]


def _add_entries(defined: type) -> None:
    from kafkaio._other_clients import names_of

    def list_names(self: object) -> list[str]:
        names = object.__dir__(self)
        return [name for name in names if not _is_entry(type(self), name)]

    for name in names_of(defined):
        setattr(defined, name, _Entry(name))
    defined.__dir__ = list_names  # type: ignore[method-assign, assignment]
    defined.__class__ = _HidesEntries


def _is_entry(kind: type, name: str) -> bool:
    return any(isinstance(vars(base).get(name), _Entry) for base in kind.__mro__)


class PropertySet(frozenset[ItemT]):
    """The value of a property that is a method of other clients.

    It is a frozenset in all ways, and calling it says what to write. A copy or a pickle
    of it is a plain one.

    Args:
        name: of the property.
        items: the items.
    """

    __slots__ = ("_name",)

    _name: str

    def __new__(cls, name: str, items: Iterable[ItemT]) -> Self:
        made = super().__new__(cls, items)
        made._name = name
        return made

    def __call__(self) -> NoReturn:
        """Refuse.

        Raises:
            TypeError: always.
        """
        name = self._name
        raise TypeError(
            f"{name} is a property: write .{name} without parentheses (docs/migration)"
        )

    def __repr__(self) -> str:
        return repr(frozenset(self))

    def __reduce__(self) -> tuple[object, ...]:
        return frozenset, (tuple(self),)

    def copy(self) -> frozenset[ItemT]:
        """Return a plain one."""
        return frozenset(self)
