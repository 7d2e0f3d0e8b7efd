"""Public names: where a name is found, and the path that it shows.

A name is public if a module without an underscore in its path lists it in ``__all__``.
`lazy` makes that list, and loads each name from the private module that defines it when
it is first used. `public` gives what is defined there its public path, which errors,
pickles and the reference show: ``kafkaio.Consumer``, wherever the class stands.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, ForwardRef, TypeVar

T = TypeVar("T", bound=Callable[..., object])

_NAME = re.compile(r"[A-Za-z_][\w.]*")
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
    annotations = vars(kind).get("__annotations__", {})
    module = kind.__module__
    moved = {
        name: ForwardRef(text, module=module, is_class=True)
        for name, text in annotations.items()
        if isinstance(text, str) and set(_NAME.findall(text)) - _KNOWN_EVERYWHERE
    }
    if moved:
        # A new dict: `kafkaio._dataclass` reads the old one on first use of the class.
        kind.__annotations__ = annotations | moved


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
            value: Any = import_module(f"{home}.{name}")
        else:
            value = getattr(import_module(home), name)
        setattr(sys.modules[package], name, value)
        return value

    def list_names() -> list[str]:
        more = import_module(others).__all__ if others else ()
        return sorted({*vars(sys.modules[package]), *names, *more})

    return names, load, list_names
