"""Schemas, as a registry has them."""

from __future__ import annotations

from typing import Literal, TypeAlias
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio._public import public

#: The languages of schemas.
SchemaType: TypeAlias = Literal["AVRO", "JSON", "PROTOBUF"]
#: What a new version of a subject is compared with, and in which direction.
CompatibilityLevel: TypeAlias = Literal[
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
    "NONE",
]


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

    def __hash__(self) -> int:
        # Schemas are keys of caches. A str keeps its hash, so that this costs the same
        # for any length of the text; what the rest would add to it is seldom different.
        return hash(self.text)


@public("kafkaio.registry")
@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema as a registry has it.

    Attributes:
        subject: the subject that it was asked for; empty if it was asked for by its id.
        version: its version in the subject; 0 likewise, and where the registry does not
            tell it.
        id: the number of the schema, which may be the same in several subjects.
        schema: the schema.
        guid: its GUID, from registries that have them; else None.
    """

    subject: str
    version: int
    id: int
    schema: Schema
    guid: UUID | None = None


@public("kafkaio.registry")
@dataclass(frozen=True, slots=True)
class Compatibility:
    """Whether a schema may follow those that a subject has.

    Attributes:
        is_compatible: whether the registry would accept it.
        reasons: why not, in the registry's own words; may be empty.
    """

    is_compatible: bool
    reasons: tuple[str, ...] = ()
