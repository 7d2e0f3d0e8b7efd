"""Generate Python source line by line, for both compilers of the codec."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from itertools import count
from struct import Struct as Packing

from kafkaio.errors import ProtocolError
from kafkaio.protocol._message import ZERO_UUID, Field, Message, Struct
from kafkaio.protocol._primitives import uuid_from
from kafkaio.protocol._schema import bad_length, bad_null, default_of, unsupported


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
            "unsupported": unsupported,
            "bad_length": bad_length,
            "bad_null": bad_null,
            "uuid_from": uuid_from,
            "ZERO": ZERO_UUID,
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

    def compact(self, field: Field) -> bool:
        """Whether the field's lengths are compact in this version."""
        return self.flexible and field.flexible


def default_source(field: Field) -> str:
    """Return the source of a field's default; not for a struct that is not null."""
    return "ZERO" if (value := default_of(field)) is ZERO_UUID else repr(value)


def differs(field: Field, value: str) -> str:
    """Return the source of a test that ``value`` is not the field's default."""
    if field.default is None:
        return f"{value} is not None"
    if field.array:
        test = f"{value}"
        return f"({test} or {value} is None)" if field.nullable else test
    if isinstance(field.type, str):
        return f"{value} != {default_source(field)}"
    inner = [differs(part, f"{value}.{part.name}") for part in field.type.SCHEMA]
    if field.nullable:
        inner.insert(0, f"{value} is None")
    return f"({' or '.join(inner)})"
