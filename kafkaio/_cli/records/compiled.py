"""Options whose value is compiled once: formats and filters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from kafkaio._cli.records.format import FormatError
from kafkaio._generic import Generic

T = TypeVar("T")


class Compiled(click.ParamType[T], Generic[T]):
    """A value that a function compiles; an error shows its place by a caret.

    Args:
        name: the name of the value in the help.
        make: compiles the text; may raise `FormatError`.
    """

    def __init__(self, name: str, make: Callable[[str], T]) -> None:
        self.name = name
        self._make = make

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Compile a value."""
        # click converts defaults, too, which are compiled already.
        if not isinstance(value, str):
            return value
        try:
            return self._make(value)
        except FormatError as error:
            return self.fail(str(error), param, ctx)
