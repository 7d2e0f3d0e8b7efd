"""What a command prints, declared once.

A declaration says which keys the JSON document of a command has, and what each of them
is. The columns of its table follow from it, and so does the JSON Schema of the document
in ``kafkaio/_cli/schemas``, which ``python -m codegen.cli_schemas`` writes:

    LISTED = Document(topics=rows(name=TEXT, partitions=INTEGER, topic_id=UUID.hidden))
    ...
    session.show(LISTED, topics=[{"name": "orders", ...}, ...])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from kafkaio._cli.text.output import Table, TableColumn

JsonSchema: TypeAlias = Mapping[str, object]


class Shape(NamedTuple):
    """What the value of a key is.

    Attributes:
        schema: its JSON Schema, without those of the fields.
        fields: the shapes of an object's keys, or of those of each object in a list.
        head: the head of its column; by default the key in capitals.
        style: makes a rich style of the value, at a terminal only.
        is_hidden: whether tables leave it out.
        is_optional: whether an object may lack it.
    """

    schema: JsonSchema
    fields: Mapping[str, Shape] | None = None
    head: str = ""
    style: Callable[[object], str] | None = None
    is_hidden: bool = False
    is_optional: bool = False

    @property
    def hidden(self) -> Shape:
        """The same, left out of tables."""
        return self._replace(is_hidden=True)

    @property
    def optional(self) -> Shape:
        """The same, which an object may lack."""
        return self._replace(is_optional=True)

    @property
    def or_null(self) -> Shape:
        """The same, or null."""
        kinds = [self.schema["type"], "null"]
        return self._replace(schema={**self.schema, "type": kinds})

    def doc(self, text: str) -> Shape:
        """Return the same with a description."""
        return self._replace(schema={"description": text, **self.schema})

    def having(self, *names: str) -> Shape:
        """Return the same, an object that has at least these keys."""
        return self._replace(schema={**self.schema, "required": [*names]})

    def column(
        self, head: str = "", style: Callable[[object], str] | None = None
    ) -> Shape:
        """Return the same with another column in tables."""
        return self._replace(head=head, style=style)

    @property
    def is_rows(self) -> bool:
        """Whether it is a list of objects."""
        return self.fields is not None and self.schema.get("type") == "array"

    def columns(self, *also: str) -> list[TableColumn]:
        """Return the columns of its fields, and of some that are hidden after them."""
        fields = self.fields or {}
        shown = [name for name, it in fields.items() if not it.is_hidden]
        return self.only(*shown, *also)

    def only(self, *names: str) -> list[TableColumn]:
        """Return the columns of some fields."""
        assert self.fields is not None
        found = [(name, self.fields[name]) for name in names]
        return [TableColumn(name, it.head, it.style) for name, it in found]

    def to_schema(self) -> dict[str, object]:
        """Return the whole JSON Schema."""
        if self.fields is None:
            return {**self.schema}
        inner: dict[str, object] = {
            "required": [n for n, it in self.fields.items() if not it.is_optional],
            "properties": {n: it.to_schema() for n, it in self.fields.items()},
            "additionalProperties": False,
        }
        if "array" in str(self.schema["type"]):
            return {**self.schema, "items": {"type": "object", **inner}}
        return {**self.schema, **inner}


TEXT: Final = Shape({"type": "string"})
INTEGER: Final = Shape({"type": "integer"})
NUMBER: Final = Shape({"type": "number"})
BOOLEAN: Final = Shape({"type": "boolean"})
ANYTHING: Final = Shape({})
ANY_OBJECT: Final = Shape({"type": "object"})
ANY_LIST: Final = Shape({"type": "array"})
#: A moment in ISO 8601; most commands print `TIME_OR_NULL`.
TIME: Final = Shape({"type": "string", "format": "date-time"})
UUID: Final = Shape({"type": ["string", "null"], "format": "uuid"})


def one_of(*values: object) -> Shape:
    """Return the shape of a value that is one of these."""
    return Shape({"enum": [*values]})


def constant(value: object) -> Shape:
    """Return the shape of a value that is always the same."""
    return Shape({"const": value})


def many(shape: Shape) -> Shape:
    """Return the shape of a list of values."""
    return Shape({"type": "array", "items": shape.to_schema()})


def mapping_of(shape: Shape) -> Shape:
    """Return the shape of an object with any keys, whose values have a shape."""
    return Shape({"type": "object", "additionalProperties": shape.to_schema()})


def fields(**shapes: Shape) -> Shape:
    """Return the shape of an object."""
    return Shape({"type": "object"}, shapes)


def rows(**shapes: Shape) -> Shape:
    """Return the shape of a list of objects, each of which is a row of a table."""
    return Shape({"type": "array"}, shapes)


def reference(name: str, file: str = "") -> Shape:
    """Return a shape that is defined under a name, in this file or in another."""
    return Shape({"$ref": f"{file}#/$defs/{name}"})


#: Of a record or a batch.
TIMESTAMP: Final = INTEGER.doc(
    "Milliseconds since the Unix epoch; -1 if there is none."
)
_COMMON: Final = "common.json"
ERRORS: Final = reference("errors", _COMMON)
BYTES: Final = reference("bytes", _COMMON)
TIME_OR_NULL: Final = reference("time", _COMMON)
#: The first fields of a row about a partition.
PARTITION: Final[Mapping[str, Shape]] = {"topic": TEXT, "partition": INTEGER}
EXECUTED: Final = BOOLEAN.doc("false if it was only checked or shown.")

#: What the documents of several commands have.
COMMON: Final[Mapping[str, Shape]] = {
    "errors": rows(
        item=ANYTHING.doc("What failed, such as the name of a topic.").optional,
        error=TEXT.doc("kafkaio's class of the error."),
        code=TEXT.doc("Kafka's name of the code.").optional,
        message=TEXT,
    ).doc("What failed, item by item; empty unless the exit code is 1 or 3."),
    "bytes": Shape(
        {
            "anyOf": [
                {"type": "null"},
                TEXT.schema,
                fields(base64=TEXT).to_schema(),
            ]
        }
    ).doc("Text, if the bytes are UTF-8."),
    "time": TIME.or_null,
    "offset": INTEGER.or_null,
}


class Document:
    """The JSON document of a command, and its table.

    Args:
        keys: the shapes of its keys, in their order. Every document ends with
            ``errors``.
    """

    def __init__(self, **keys: Shape) -> None:
        self._keys = keys
        self._rows = next((name for name, it in keys.items() if it.is_rows), None)

    @property
    def is_row(self) -> bool:
        """Whether the document itself is the only row: it has no list of objects."""
        return self._rows is None

    @property
    def row(self) -> Shape:
        """The shape of each row."""
        return fields(**self._keys) if self._rows is None else self._keys[self._rows]

    def made(
        self, errors: Sequence[object], values: Mapping[str, object]
    ) -> dict[str, object]:
        """Return a document with its keys in their order."""
        assert values.keys() <= self._keys.keys(), values.keys()
        found = {name: values[name] for name in self._keys if name in values}
        return {**found, "errors": errors}

    def table(self, values: Mapping[str, object]) -> Table:
        """Return the table of a document: its rows, or itself as one row."""
        if self._rows is None:
            return Table([values], self.row.columns())
        found = values[self._rows]
        assert isinstance(found, Sequence)
        return Table(found, self.row.columns())

    def to_schema(self) -> dict[str, object]:
        """Return the JSON Schema."""
        return fields(**self._keys, errors=ERRORS).to_schema()


def picked(row: Shape, it: object) -> dict[str, object]:
    """Return the attributes of an object that are the fields of a row."""
    return {name: getattr(it, name) for name in row.fields or ()}
