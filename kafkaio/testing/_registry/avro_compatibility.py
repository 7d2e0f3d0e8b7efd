"""Whether one Avro schema can read what another one wrote.

The rules are those of "Schema Resolution" in Avro's specification 1.12: promotions,
unions, defaults of fields and enums, aliases of fields and names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from kafkaio.testing._registry.avro import (
    Array,
    AvroSchema,
    AvroType,
    Enum,
    Fixed,
    Map,
    NamedType,
    Primitive,
    Record,
    RecordField,
    Union,
    kind_of,
    short_name,
)
from kafkaio.testing._registry.parsed import Difference

#: What a reader of a type reads beside it.
_PROMOTED: Final = {
    "long": frozenset(("int",)),
    "float": frozenset(("int", "long")),
    "double": frozenset(("int", "long", "float")),
    "bytes": frozenset(("string",)),
    "string": frozenset(("bytes",)),
}


def differences(reader: AvroSchema, writer: AvroSchema) -> list[Difference]:
    """Return why the reader cannot read all that the writer can write.

    Returns:
        Nothing if it can. In the texts, ``{reader}`` and ``{writer}`` stand for the
        two schemas.
    """
    return _Check().compare(reader.root, writer.root, "/")


@dataclass(slots=True)
class _Check:
    """One comparison; pairs of records that are being compared are taken to agree."""

    _entered: set[tuple[int, int]] = field(default_factory=set)

    def compare(
        self, reader: AvroType, writer: AvroType, path: str
    ) -> list[Difference]:
        """Compare two types at a path of the reader."""
        if isinstance(writer, Union):
            return self._written_union(reader, writer, path)
        if isinstance(reader, Union):
            return self._read_union(reader, writer, path)
        match reader, writer:
            case Primitive(kind=kind), Primitive(kind=written):
                if kind == written or written in _PROMOTED.get(kind, ()):
                    return []
            case Array(items=items), Array(items=written):
                return self.compare(items, written, _below(path, "items"))
            case Map(values=values), Map(values=written):
                return self.compare(values, written, _below(path, "values"))
            case Fixed(), Fixed():
                return _names(reader, writer, path) or _sizes(reader, writer, path)
            case Enum(), Enum():
                return _names(reader, writer, path) or _symbols(reader, writer, path)
            case Record(), Record():
                return _names(reader, writer, path) or self._record(
                    reader, writer, path
                )
            case _:
                pass
        return [_mismatch(reader, writer, path)]

    def _written_union(
        self, reader: AvroType, writer: Union, path: str
    ) -> list[Difference]:
        """Each branch can come, so the reader must read each."""
        found = []
        for number, branch in enumerate(writer.branches):
            found += self.compare(reader, branch, _below(path, str(number)))
        return found

    def _read_union(
        self, reader: Union, writer: AvroType, path: str
    ) -> list[Difference]:
        """One branch that reads it is enough."""
        for branch in reader.branches:
            # A branch that fails must leave no pair of records behind: it would be
            # taken to agree in the next one.
            entered = set(self._entered)
            if not self.compare(branch, writer, path):
                return []
            self._entered = entered
        return [
            Difference(
                "MISSING_UNION_BRANCH",
                f"The {{reader}} schema is missing a type inside a union field at "
                f"path '{path}' in the {{writer}} schema",
                f"reader union lacking writer type: {kind_of(writer).upper()}",
            )
        ]

    def _record(self, reader: Record, writer: Record, path: str) -> list[Difference]:
        pair = (id(reader), id(writer))
        if pair in self._entered:
            return []
        self._entered.add(pair)
        written = {each.name: each for each in writer.fields}
        found = []
        for number, wanted in enumerate(reader.fields):
            place = _below(path, f"fields/{number}")
            given = _written(wanted, written)
            if given is not None:
                inner = _below(place, "type")
                found += self.compare(wanted.type, given.type, inner)
            elif not wanted.has_default:
                found.append(
                    Difference(
                        "READER_FIELD_MISSING_DEFAULT_VALUE",
                        f"The field '{wanted.name}' at path '{place}' in the "
                        "{reader} schema has no default value and is missing in the "
                        "{writer} schema",
                        wanted.name,
                    )
                )
        return found


def _below(path: str, name: str) -> str:
    return f"{path.rstrip('/')}/{name}"


def _written(
    wanted: RecordField, written: dict[str, RecordField]
) -> RecordField | None:
    for name in (wanted.name, *wanted.aliases):
        if name in written:
            return written[name]
    return None


def _names(reader: NamedType, writer: NamedType, path: str) -> list[Difference]:
    is_same = short_name(reader.name) == short_name(writer.name)
    if is_same or writer.name in reader.aliases:
        return []
    return [
        Difference(
            "NAME_MISMATCH",
            f"The name of the schema has changed (path '{_below(path, 'name')}')",
            f"expected: {writer.name}",
        )
    ]


def _sizes(reader: Fixed, writer: Fixed, path: str) -> list[Difference]:
    if reader.size == writer.size:
        return []
    return [
        Difference(
            "FIXED_SIZE_MISMATCH",
            f"The size of FIXED type field at path '{_below(path, 'size')}' in the "
            "{reader} schema does not match with the {writer} schema",
            f"expected: {writer.size}, found: {reader.size}",
        )
    ]


def _symbols(reader: Enum, writer: Enum, path: str) -> list[Difference]:
    missing = [symbol for symbol in writer.symbols if symbol not in reader.symbols]
    if not missing or reader.default is not None:
        return []
    return [
        Difference(
            "MISSING_ENUM_SYMBOLS",
            "The {reader} schema is missing enum symbols at path "
            f"'{_below(path, 'symbols')}' in the {{writer}} schema",
            f"[{', '.join(missing)}]",
        )
    ]


def _mismatch(reader: AvroType, writer: AvroType, path: str) -> Difference:
    return Difference(
        "TYPE_MISMATCH",
        f"The type (path '{path}') of a field in the {{reader}} schema does not match "
        "with the {writer} schema",
        f"reader type: {kind_of(reader).upper()} not compatible with writer type: "
        f"{kind_of(writer).upper()}",
    )
