"""Signatures that show every option, for people, editors and `help`."""

from __future__ import annotations

import inspect
import ssl
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import get_type_hints

from kafkaio.config import ClientConfig, options

__all__ = ["OptionsSignature"]


class OptionsSignature:
    """The ``__signature__`` of a class whose constructor takes options as keywords.

    A constructor says ``**options: Unpack[ProducerOptions]``, which type checkers
    read. `inspect.signature` shows each option instead, with its type and default, of
    the class and of classes derived from it.

    Args:
        declared: the keyword options with their types.
        config: the options with their defaults.
    """

    def __init__(
        self, declared: type[options.ClientOptions], config: type[ClientConfig]
    ) -> None:
        self._declared = declared
        self._config = config

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        """Make the signature of a class; it is asked for too seldom to be kept."""
        made = _signature_of(owner)
        # A subclass may have a constructor of its own, with other parameters.
        shown = made.parameters.values()
        _, *parameters = [new for old in shown for new in self._expanded(old)]
        return made.replace(parameters=parameters)

    def _expanded(self, parameter: inspect.Parameter) -> Iterable[inspect.Parameter]:
        is_rest = parameter.kind is inspect.Parameter.VAR_KEYWORD
        if is_rest and self._declared.__name__ in str(parameter.annotation):
            return self._options()
        return (parameter,)

    def _options(self) -> Iterator[inspect.Parameter]:
        # The declarations name SSLContext for type checkers alone.
        types = get_type_hints(self._declared, localns={"ssl": ssl})
        for field in fields(self._config):
            if field.name in types:
                yield inspect.Parameter(
                    field.name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=field.default,
                    annotation=types[field.name],
                )


def _signature_of(owner: type) -> inspect.Signature:
    constructor = inspect.getattr_static(owner, "__init__")
    try:
        return inspect.signature(constructor, eval_str=True)
    except NameError:  # a name that only type checkers see
        return inspect.signature(constructor)
