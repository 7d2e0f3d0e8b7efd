"""Named tuples whose constructor is made when it is first used.

`typing.NamedTuple` compiles the constructor of a class and each of its annotations when
the class is defined, which takes a tenth of a millisecond and more: a twentieth of what
`import kafkaio` took. A program uses few of the classes that it loads. `NamedTuple`
here makes the same classes: attributes, constructor and methods cost at run time what
they cost there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    import sys
    import typing
    from collections import _tuplegetter
    from keyword import iskeyword
    from types import FunctionType

    #: Names that a class cannot define, as in the standard library.
    _REFUSED = frozenset(
        (
            *("__new__", "__init__", "__slots__", "__getnewargs__"),
            *("_fields", "_field_defaults", "_make", "_replace", "_asdict"),
        )
    )

    class _Constructor:
        """Takes the place of ``__new__`` until that is used."""

        __slots__ = ("target",)

        def __get__(self, instance, owner=None):
            # Two threads may do so at the same time: both make the same.
            target = self.target
            made = _constructor(target)
            target.__new__ = staticmethod(made)
            return made

    class _Definition(type):
        def __new__(cls, name, bases, namespace):
            return _define(name, bases, namespace)

    _BASE = type.__new__(_Definition, "_NamedTuple", (), {})

    class _Base:
        __slots__ = ()

        def __mro_entries__(self, bases):
            return (_BASE,)

        def __call__(self, *args, **options) -> NoReturn:
            raise TypeError("define a class, or use the standard library's NamedTuple")

    NamedTuple = _Base()

    def _define(name, bases, namespace):
        if typing.Generic in bases:
            raise TypeError("use the Generic of kafkaio._generic for it")
        for key in namespace:
            if key in _REFUSED:
                raise AttributeError(f"cannot overwrite NamedTuple attribute {key}")
        fields = tuple(map(sys.intern, namespace.get("__annotations__", ())))
        defaults = {key: namespace[key] for key in fields if key in namespace}
        _check(fields, defaults)
        made_by = _Constructor()
        own = {key: value for key, value in namespace.items() if key not in defaults}
        own["__orig_bases__"] = tuple(
            typing.NamedTuple if base is NamedTuple else base
            for base in namespace["__orig_bases__"]
        )
        body = {
            "__doc__": f"{name}({_listed(fields)})",
            "__slots__": (),
            "_fields": fields,
            "_field_defaults": defaults,
            "__match_args__": fields,
            "__new__": made_by,
            **_METHODS,
            **{key: _getter(index) for index, key in enumerate(fields)},
            **own,
        }
        made = type(name, tuple(tuple if it is _BASE else it for it in bases), body)
        made_by.target = made
        return made

    def _check(fields, defaults) -> None:
        for key in fields:
            if key.startswith("_") or iskeyword(key):
                raise ValueError(f"{key!r} cannot be the name of a field")
        if any(key not in defaults for key in fields[len(fields) - len(defaults) :]):
            raise TypeError("a field without a default follows one that has one")

    #: What the standard library raises for names that a class does not have.
    _UNEXPECTED = TypeError if sys.version_info >= (3, 13) else ValueError
    _GETTERS = []

    def _getter(index):
        # They hold a number alone: all classes share them.
        while len(_GETTERS) <= index:
            number = len(_GETTERS)
            _GETTERS.append(_tuplegetter(number, f"Alias for field number {number}"))
        return _GETTERS[index]

    def _listed(fields):
        return ", ".join(fields) + "," * (len(fields) == 1)

    _tuple_new = tuple.__new__
    #: Constructors of up to six fields, compiled with this module: that of a class is
    #: the same with the names of its fields. To compile one takes longer than to define
    #: a class.
    _BY_COUNT = (
        lambda _cls: _tuple_new(_cls, ()),
        lambda _cls, a: _tuple_new(_cls, (a,)),
        lambda _cls, a, b: _tuple_new(_cls, (a, b)),
        lambda _cls, a, b, c: _tuple_new(_cls, (a, b, c)),
        lambda _cls, a, b, c, d: _tuple_new(_cls, (a, b, c, d)),
        lambda _cls, a, b, c, d, e: _tuple_new(_cls, (a, b, c, d, e)),
        lambda _cls, a, b, c, d, e, f: _tuple_new(_cls, (a, b, c, d, e, f)),
    )

    def _constructor(target):
        fields = target._fields
        scope = {
            "_tuple_new": _tuple_new,
            "__builtins__": {},
            "__name__": f"namedtuple_{target.__name__}",
        }
        if len(fields) < len(_BY_COUNT):
            code = _BY_COUNT[len(fields)].__code__
            code = code.replace(co_varnames=("_cls", *fields), co_filename="<string>")
            made = FunctionType(code, scope)
        else:
            # As the standard library does. The text consists of the names of fields.
            names = _listed(fields)
            text = f"lambda _cls, {names}: _tuple_new(_cls, ({names}))"
            made = eval(text, scope)  # noqa: S307
        made.__name__ = "__new__"
        made.__qualname__ = f"{target.__name__}.__new__"
        made.__doc__ = f"Create new instance of {target.__name__}({_listed(fields)})"
        made.__defaults__ = tuple(target._field_defaults.values()) or None
        made.__annotations__ = dict(target.__annotations__)
        return made

    def _make(cls, iterable):
        """Make a new object from a sequence or iterable."""
        made = tuple.__new__(cls, iterable)
        wanted = len(cls._fields)
        if len(made) != wanted:
            raise TypeError(f"Expected {wanted} arguments, got {len(made)}")
        return made

    def _replace(self, /, **values):
        """Return a new object replacing specified fields with new values."""
        made = self._make(map(values.pop, self._fields, self))
        if values:
            raise _UNEXPECTED(f"Got unexpected field names: {list(values)!r}")
        return made

    def _repr(self):
        """Return a nicely formatted representation string."""
        shown = ", ".join(map("{}={!r}".format, self._fields, self))
        return f"{type(self).__name__}({shown})"

    def _asdict(self):
        """Return a new dict which maps field names to their values."""
        return dict(zip(self._fields, self, strict=True))

    def _getnewargs(self):
        """Return self as a plain tuple.  Used by copy and pickle."""
        return tuple(self)

    _METHODS = {
        "_make": classmethod(_make),
        "_replace": _replace,
        "__repr__": _repr,
        "_asdict": _asdict,
        "__getnewargs__": _getnewargs,
    }
    if sys.version_info >= (3, 13):
        _METHODS["__replace__"] = _replace
