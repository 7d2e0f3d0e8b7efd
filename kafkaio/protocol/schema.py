"""The facts about one field that the codec is compiled from."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from kafkaio._dataclass import dataclass

if TYPE_CHECKING:
    from kafkaio.protocol.message import Struct

__all__ = ["ZERO_UUID", "Field", "Range", "Scalar"]

#: First and last version, both included.
Range = tuple[int, int]
Scalar = int | float | str | bytes

#: Kafka's "no id".
ZERO_UUID = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct.

    Attributes:
        name: the attribute that holds the value.
        type: a primitive's name in Kafka's schemas, or the class of a struct.
        versions: the message versions that have the field.
        array: whether the value is a list of ``type``.
        nullable: the versions in which the value may be None.
        tag: its number among tagged fields, in the versions of ``tagged``.
        tagged: the versions in which it is optional, after the plain fields.
        default: the value when absent; None is null, ``()`` the zero of the type.
        ignorable: whether a version without the field may silently drop a value.
        flexible: False if lengths stay classic even in flexible versions.
    """

    name: str
    type: str | type[Struct]
    versions: Range
    array: bool = False
    nullable: Range | None = None
    tag: int | None = None
    tagged: Range | None = None
    default: Scalar | tuple[()] | None = ()
    ignorable: bool = False
    flexible: bool = True

    def present(self, version: int) -> bool:
        """Whether ``version`` has the field, plain or tagged."""
        return _within(self.versions, version)

    def is_nullable(self, version: int) -> bool:
        """Whether the value may be None in ``version``."""
        return _within(self.nullable, version)

    def is_tagged(self, version: int) -> bool:
        """Whether the field is tagged in ``version``."""
        return _within(self.tagged, version)


def _within(versions: Range | None, version: int) -> bool:
    return versions is not None and versions[0] <= version <= versions[1]
