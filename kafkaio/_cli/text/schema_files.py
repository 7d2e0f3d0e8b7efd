"""Schemas of files: their language, and the schemas that they use."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from kafkaio._cli.text.source import text_of

if TYPE_CHECKING:
    from kafkaio.registry import Schema, SchemaReference

SchemaType = Literal["AVRO", "JSON", "PROTOBUF"]
#: The languages by the suffixes of files.
_BY_SUFFIX: Final[dict[str, SchemaType]] = {
    ".avsc": "AVRO",
    ".json": "JSON",
    ".proto": "PROTOBUF",
}
#: The languages by the words of options.
LANGUAGES: Final[dict[str, SchemaType]] = {
    "avro": "AVRO",
    "json": "JSON",
    "protobuf": "PROTOBUF",
}


class Reference(click.ParamType["SchemaReference"]):
    """A schema that another one uses: ``NAME=SUBJECT:VERSION``."""

    name = "reference"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Parse a reference."""
        from kafkaio.registry import SchemaReference

        name, _, rest = str(value).partition("=")
        subject, _, version = rest.rpartition(":")
        if not name or not subject or not version.isdecimal():
            return self.fail(f"{value!r} is not NAME=SUBJECT:VERSION", param, ctx)
        return SchemaReference(name, subject, int(version))


def schema_of_file(
    path: str,
    language: str | None = None,
    references: Iterable[SchemaReference] = (),
) -> Schema:
    """Return the schema of a file, or of stdin for ``-``.

    Args:
        path: the file.
        language: a word of `LANGUAGES`; None to decide by the suffix, which is Avro's
            unless it is ``.json`` or ``.proto``.
        references: the schemas that it uses.

    Raises:
        CommandFailed: the file cannot be read.
    """
    from kafkaio.registry import Schema

    kind = LANGUAGES.get(language or "") or _BY_SUFFIX.get(PurePath(path).suffix)
    return Schema(text_of(path), kind or "AVRO", tuple(references))
