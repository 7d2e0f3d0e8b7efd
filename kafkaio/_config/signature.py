"""Signatures that show every option, to people, editors and `help`."""

from __future__ import annotations

import inspect
import ssl
from collections.abc import Iterable, Iterator
from typing import get_type_hints

from kafkaio._config.configs import ClientConfig
from kafkaio._dataclass import fields_of


class OptionsSignature:
    """The ``__signature__`` of a class whose constructor takes options as keywords.

    The constructor has ``**options: Unpack[ProducerOptions]``, for type checkers. In
    its place `inspect.signature` shows each option with its type and default. That
    holds for the class and for classes derived from it.

    Args:
        config: the configuration class that declares the options: ``ProducerConfig``
            for ``ProducerOptions``.
    """

    def __init__(self, config: type[ClientConfig]) -> None:
        self._declared = config.__name__.replace("Config", "Options")
        self._config = config

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        """Make the signature of a class, each time anew: it is needed rarely."""
        made = _signature_of(owner)
        # A subclass may have a constructor of its own, with other parameters.
        shown = made.parameters.values()
        _, *parameters = [new for old in shown for new in self._expanded(old)]
        return made.replace(parameters=parameters)

    def _expanded(self, parameter: inspect.Parameter) -> Iterable[inspect.Parameter]:
        is_rest = parameter.kind is inspect.Parameter.VAR_KEYWORD
        if is_rest and self._declared in str(parameter.annotation):
            return self._options()
        return (parameter,)

    def _options(self) -> Iterator[inspect.Parameter]:
        from kafkaio._config import options  # needed for this alone

        # The keyword types import ssl for type checkers alone.
        declared: type = getattr(options, self._declared)
        types = get_type_hints(declared, localns={"ssl": ssl})
        for field in fields_of(self._config):
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
    except NameError:  # a name that is imported for type checkers alone
        return inspect.signature(constructor)
