"""Declares the output of a command once.

A declaration lists the keys of the command's JSON document and their shapes. The
columns of the table are derived from it, and so is the JSON Schema of the document,
which ``python -m codegen.cli_schemas`` writes to ``kafkaio/_cli/schemas``:

    LISTED = Document(topics=rows(name=TEXT, partitions=INTEGER, topic_id=UUID.hidden))
    ...
    session.show(LISTED, topics=[{"name": "orders", ...}, ...])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from kafkaio._cli.text.output import Table, TableColumn
from kafkaio._named_tuple import NamedTuple

JsonSchema: TypeAlias = Mapping[str, object]


class Shape(NamedTuple):
    """The shape of a value: its JSON type, and its column in a table.

    Attributes:
        schema: the JSON Schema, without the schemas of fields.
        fields: the shapes of an object's keys, or of the keys of each object in a list.
        head: the head of the column; by default the key in capitals.
        style: returns the rich style of a value; used at a terminal only.
        is_hidden: whether tables leave the value out.
        is_optional: whether the key may be absent.
    """

    schema: JsonSchema
    fields: Mapping[str, Shape] | None = None
    head: str = ""
    style: Callable[[object], str] | None = None
    is_hidden: bool = False
    is_optional: bool = False

    @property
    def hidden(self) -> Shape:
        """This shape, left out of tables."""
        return self._replace(is_hidden=True)

    @property
    def optional(self) -> Shape:
        """This shape, as a key that may be absent."""
        return self._replace(is_optional=True)

    @property
    def or_null(self) -> Shape:
        """This shape, or null."""
        kinds = [self.schema["type"], "null"]
        return self._replace(schema={**self.schema, "type": kinds})

    def doc(self, text: str) -> Shape:
        """Return this shape with a description."""
        # The description comes first: people read the schemas.
        return self._replace(schema={"description": text, **self.schema})

    def having(self, *names: str) -> Shape:
        """Return this shape of an object, with keys that are always there."""
        return self._replace(schema={**self.schema, "required": [*names]})

    def column(
        self, head: str = "", style: Callable[[object], str] | None = None
    ) -> Shape:
        """Return this shape with another column in tables."""
        return self._replace(head=head, style=style)

    @property
    def is_rows(self) -> bool:
        """Whether the value is a list of objects."""
        return self.fields is not None and self.schema.get("type") == "array"

    def columns(self, *also: str) -> list[TableColumn]:
        """Return the columns of the visible fields, then those of some hidden ones."""
        fields = self.fields or {}
        shown = [name for name, it in fields.items() if not it.is_hidden]
        return self.only(*shown, *also)

    def only(self, *names: str) -> list[TableColumn]:
        """Return the columns of these fields."""
        assert self.fields is not None
        found = [(name, self.fields[name]) for name in names]
        return [TableColumn(name, it.head, it.style) for name, it in found]

    def to_schema(self) -> dict[str, object]:
        """Return the JSON Schema, with those of the fields."""
        if self.fields is None:
            return {**self.schema}
        inner: dict[str, object] = {
            "required": [n for n, it in self.fields.items() if not it.is_optional],
            "properties": {n: it.to_schema() for n, it in self.fields.items()},
            "additionalProperties": False,
        }
        # The type of a shape that may be null is a list of two names.
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
#: A moment in ISO 8601. Most times can be unknown: `TIME_OR_NULL`.
TIME: Final = Shape({"type": "string", "format": "date-time"})
#: Null where the cluster is too old to have ids.
UUID: Final = Shape({"type": ["string", "null"], "format": "uuid"})


def one_of(*values: object) -> Shape:
    """Return the shape of an enumeration."""
    return Shape({"enum": [*values]})


def constant(value: object) -> Shape:
    """Return the shape of a constant."""
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
    """Return a reference to a schema by its name, in this file or another."""
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

#: The schemas of ``common.json``, to which those of all commands refer.
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
        """Whether the document itself is the only row, without a list of objects."""
        return self._rows is None

    @property
    def row(self) -> Shape:
        """The shape of each row."""
        return fields(**self._keys) if self._rows is None else self._keys[self._rows]

    def made(
        self, errors: Sequence[object], values: Mapping[str, object]
    ) -> dict[str, object]:
        """Return a document with the keys in the declared order."""
        # A key that is not declared would be missing in the schema, which is strict.
        assert values.keys() <= self._keys.keys(), values.keys()
        found = {name: values[name] for name in self._keys if name in values}
        return {**found, "errors": errors}

    def table(self, values: Mapping[str, object]) -> Table:
        """Return the table of a document: of its rows, or of itself as one row."""
        if self._rows is None:
            return Table([values], self.row.columns())
        found = values[self._rows]
        assert isinstance(found, Sequence)
        return Table(found, self.row.columns())

    def to_schema(self) -> dict[str, object]:
        """Return the JSON Schema."""
        return fields(**self._keys, errors=ERRORS).to_schema()


def picked(row: Shape, it: object) -> dict[str, object]:
    """Return a row made of the attributes of an object."""
    return {name: getattr(it, name) for name in row.fields or ()}
