"""Ids as Kafka writes them: 22 characters of URL-safe base64, perhaps ``-`` first.

`Id.guarded` distinguishes such ids from options by their form. Names of topics and
groups have no such form: a name that begins with ``-`` follows ``--``.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final
from uuid import UUID

import click

#: An id that looks like an option. No option has 22 characters without a ``=``.
_DASHED: Final = re.compile(r"-[\w-]{21}", re.ASCII)
_BASE64: Final = re.compile(r"[\w-]{22}", re.ASCII)
#: The mark before such an id while click parses. An argument of a process is a C
#: string, so no word that was typed contains it.
_GUARD: Final = "\0"


class Id(click.ParamType[Any]):
    """The id of a token, which may begin with ``-``."""

    name = "id"

    @staticmethod
    def guarded(words: Sequence[str], taking: Collection[str]) -> Iterator[str]:
        """Yield the words of a command, with a mark before ids that look like options.

        Args:
            words: the words after the command's name.
            taking: the options whose value is the next word.
        """
        before = ""
        for index, word in enumerate(words):
            # The word after an option with a value is that value, whatever it looks
            # like: click takes it so, too.
            if word == "--" and before not in taking:
                yield from words[index:]
                return
            is_id = _DASHED.fullmatch(word) is not None and before not in taking
            yield _GUARD + word if is_id else word
            before = word

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the id as it was typed."""
        del param, ctx
        return value.removeprefix(_GUARD) if isinstance(value, str) else value


class DirectoryId(Id):
    """The id of a log directory, as ``meta.properties`` has it or as a UUID."""

    name = "uuid"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Read an id."""
        # Both alphabets of base64, with or without padding, name the same directory.
        text = super().convert(value, param, ctx)
        if not isinstance(text, str):
            return text
        base64 = text.replace("+", "-").replace("/", "_").rstrip("=")
        if _BASE64.fullmatch(base64):
            return UUID(bytes=urlsafe_b64decode(base64 + "=="))
        try:
            return UUID(text)
        except ValueError:
            return self.fail(f"{text!r} is neither base64 nor a UUID", param, ctx)
