"""Schemas, as a registry has them."""

from __future__ import annotations

from typing import Literal, TypeAlias
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio._public import public

#: The languages of schemas.
SchemaType: TypeAlias = Literal["AVRO", "JSON", "PROTOBUF"]


@public("kafkaio.registry")
@dataclass(frozen=True, slots=True)
class SchemaReference:
    """A schema that another one uses.

    Attributes:
        name: the name by which the other schema refers to it.
        subject: the subject under which it is registered.
        version: its version there.
    """

    name: str
    subject: str
    version: int


@public("kafkaio.registry")
@dataclass(frozen=True, slots=True)
class Schema:
    """The text of a schema, in one of three languages.

    Attributes:
        text: the schema.
        type: its language.
        references: the schemas that it uses.
    """

    text: str
    type: SchemaType = "AVRO"
    references: tuple[SchemaReference, ...] = ()


@public("kafkaio.registry")
@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema as a registry has it.

    Attributes:
        subject: the subject that it was asked for; empty if it was asked for by its id.
        version: its version in the subject; 0 likewise.
        id: the number of the schema, which may be the same in several subjects.
        schema: the schema.
        guid: its GUID, from registries that have them; else None.
    """

    subject: str
    version: int
    id: int
    schema: Schema
    guid: UUID | None = None
