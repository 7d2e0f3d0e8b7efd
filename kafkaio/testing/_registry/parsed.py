"""What each language makes of a text, and why two schemas do not fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Difference:
    """A reason.

    Attributes:
        kind: Confluent's name of it, such as ``TYPE_MISMATCH``.
        description: the text, with ``{reader}`` and ``{writer}`` for the schemas.
        information: what exactly differs.
    """

    kind: str
    description: str
    information: str = ""

    def message(self, reader: str, writer: str) -> str:
        """Return it as Confluent's registry writes it.

        Args:
            reader: ``new`` or ``old``, for the schema that reads.
            writer: the same for the one that wrote.
        """
        # Names of fields can hold braces in JSON Schema, so this is no str.format.
        text = self.description.replace("{reader}", reader).replace("{writer}", writer)
        more = f", additionalInfo:'{self.information}'" if self.information else ""
        return f"{{errorType:'{self.kind}', description:'{text}'{more}}}"


class ParsedSchemaPort(Protocol):
    """A schema that has been understood."""

    def text(self, *, is_normal: bool) -> str:
        """Return its text as the registry keeps it.

        Args:
            is_normal: whether what has no order or meaning is put in order.
        """

    def serialized(self) -> str:
        """Return it as ``format=serialized`` gives it: for Protobuf a descriptor."""

    def differences(self, writer: ParsedSchemaPort) -> list[Difference]:
        """Return why it cannot read what another one of its language wrote."""
