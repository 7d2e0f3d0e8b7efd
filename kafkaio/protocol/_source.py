"""Generate Python source line by line, for both compilers of the codec."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from itertools import count
from struct import Struct as Packing
from typing import NoReturn

from kafkaio.errors import ProtocolError, UnsupportedVersion
from kafkaio.protocol._message import Field, Message, Struct
from kafkaio.protocol._primitives import uuid_from

#: Primitives of one size, and how ``struct`` spells them.
FIXED = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}


class FunctionSource(ABC):
    """The source of a function for one message class at one version.

    Adjacent values of fixed size form a run, which one ``struct`` call reads or writes.
    The subclass keeps the run and implements ``flush``, which writes it; ``line`` calls
    ``flush`` first, so that the order of the fields is kept.
    """

    def __init__(self, message: type[Message], version: int) -> None:
        self.version = version
        self.flexible = message.is_flexible(version)
        self.title = f"{message.NAME} v{version}"
        self.names: dict[str, object] = {
            "ProtocolError": ProtocolError,
            "unsupported": _unsupported,
            "bad_length": _bad_length,
            "bad_null": _bad_null,
            "uuid_from": uuid_from,
        }
        self._known: dict[object, str] = {}
        self._lines: list[str] = []
        self._indent = 1
        self._serial = count()

    def fresh(self, prefix: str) -> str:
        """Return a variable name that is not in use."""
        return f"{prefix}{next(self._serial)}"

    def constant(self, prefix: str, value: object) -> str:
        """Return the name by which the source refers to ``value``."""
        name = self.fresh(prefix)
        self.names[name] = value
        return name

    def class_name(self, kind: type[Struct]) -> str:
        """Return the name by which the source refers to a class."""
        if kind not in self._known:
            self._known[kind] = self.constant(f"{kind.__name__}_", kind)
        return self._known[kind]

    def packing(self, form: str, method: str) -> tuple[str, int]:
        """Return the name of a method of a compiled ``struct`` format, and its size."""
        packing = Packing(f">{form}")
        key = (form, method)
        if key not in self._known:
            self._known[key] = self.constant("S", getattr(packing, method))
        return self._known[key], packing.size

    def aside(self, name: str, lines: Iterable[str]) -> None:
        """Add a helper function, which the main function calls for some values only.

        It is compiled when it is first called.
        """
        text, title, names = "\n".join(lines), self.title, self.names

        def compile_and_call(*arguments: object) -> object:
            # The text consists of names and numbers from our own schemas.
            exec(compile(text, f"<part of {title}>", "exec"), names)  # noqa: S102
            made = names[name]
            assert callable(made)
            return made(*arguments)

        names[name] = compile_and_call

    @abstractmethod
    def flush(self) -> None:
        """Write the lines of the current run."""

    def line(self, text: str) -> None:
        """Add a line, after the current run."""
        self.flush()
        self._lines.append("    " * self._indent + text)

    def indent(self) -> None:
        """Begin the block of the previous line."""
        self._indent += 1

    def dedent(self) -> None:
        """End a block."""
        self.flush()
        self._indent -= 1

    def take_lines(self) -> list[str]:
        """Return the lines so far and start afresh, to write a helper function."""
        self.flush()
        lines, self._lines = self._lines, []
        return lines

    def put_lines(self, lines: Iterable[str]) -> None:
        """Put back what ``take_lines`` returned."""
        self._lines = list(lines)

    def body(self) -> str:
        """Return the finished lines."""
        self.flush()
        return "\n".join(self._lines)

    def fields(self, kind: type[Struct]) -> tuple[list[Field], list[Field]]:
        """Return the plain fields, and the tagged fields in order of their tags."""
        tagged = [f for f in kind.SCHEMA if f.is_tagged(self.version)]
        plain = [f for f in kind.SCHEMA if f.is_plain(self.version)]
        return plain, sorted(tagged, key=lambda field: field.tag or 0)

    def compact(self, field: Field) -> bool:
        """Whether the field's lengths are compact in this version."""
        return self.flexible and field.flexible


def default_of(field: Field) -> str:
    """Return the source of a field's default; not for a struct that is not null."""
    if field.default is None:
        return "None"
    if field.array:
        return "[]"
    if field.type == "uuid":
        return "ZERO"
    if field.default != ():
        return repr(field.default)
    zeros = {"bool": "False", "float64": "0.0", "string": "''"}
    zeros |= {"bytes": "b''", "records": "b''"}
    assert isinstance(field.type, str)
    return zeros.get(field.type, "0")


def differs(field: Field, value: str) -> str:
    """Return the source of a test that ``value`` is not the field's default."""
    if field.default is None:
        return f"{value} is not None"
    if field.array:
        test = f"{value}"
        return f"({test} or {value} is None)" if field.nullable else test
    if isinstance(field.type, str):
        return f"{value} != {default_of(field)}"
    inner = [differs(part, f"{value}.{part.name}") for part in field.type.SCHEMA]
    if field.nullable:
        inner.insert(0, f"{value} is None")
    return f"({' or '.join(inner)})"


def minimum_size(field: Field, version: int, *, flexible: bool) -> int:
    """Return the least number of bytes of one element of an array field, at least 1.

    An element counts as at least one byte, although an empty struct takes none:
    otherwise a frame of a few bytes could announce any number of elements.
    """
    if isinstance(field.type, str):
        return _primitive_size(field.type, flexible=flexible)
    size = int(flexible)
    for part in field.type.SCHEMA:
        if part.present(version) and not part.is_tagged(version):
            size += _field_size(part, version, flexible=flexible)
    return max(1, size)


def _field_size(field: Field, version: int, *, flexible: bool) -> int:
    if field.array:
        return 1 if flexible else 4
    if not isinstance(field.type, str) and field.is_nullable(version):
        return 1
    return minimum_size(field, version, flexible=flexible)


def _primitive_size(kind: str, *, flexible: bool) -> int:
    if kind in FIXED:
        return Packing(f">{FIXED[kind]}").size
    if flexible:
        return 1
    return 2 if kind == "string" else 4


def _unsupported(title: str, field: str) -> NoReturn:
    raise UnsupportedVersion(f"{title} cannot carry the field {field}")


def _bad_length(field: str, length: int) -> NoReturn:
    raise ProtocolError(f"{field} has the impossible length {length}")


def _bad_null(field: str) -> NoReturn:
    raise ProtocolError(f"{field} is null")
