"""How a serializer or deserializer that a user has passed is called.

Producers and consumers decide it once, when they are made, so that a record costs no
look at a signature.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from inspect import Parameter, Signature, isbuiltin, signature
from typing import Any

from kafkaio._named_tuple import NamedTuple
from kafkaio.errors import ConfigurationError

if sys.version_info >= (3, 14):
    from annotationlib import Format

_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
#: A second parameter of such a name is the context, also if it has a default.
_NAMES = ("context", "ctx")


class Call(NamedTuple):
    """How a serializer or deserializer is called.

    Attributes:
        function: what to call with the value, or the bytes.
        takes_context: whether the context is its second argument.
        is_method: whether it is a method of an object, which may return a coroutine; a
            function returns the result itself.
        takes_none: whether a deserializer is called with None, too.
    """

    function: Callable[..., Any]
    takes_context: bool
    is_method: bool
    takes_none: bool = False


def call_of(given: object, method: str) -> Call:
    """Return how a serializer or deserializer is called.

    Args:
        given: a function, or an object with a method.
        method: the name of that method: ``serialize`` or ``deserialize``. An object
            that has it is not called as a function.
    """
    own = getattr(given, method, None)
    takes_none = getattr(given, "takes_none", False) is True
    if callable(own):
        return Call(own, takes_context=True, is_method=True, takes_none=takes_none)
    assert callable(given), "the options are checked"
    return Call(
        given,
        takes_context=takes_context(given),
        is_method=False,
        takes_none=takes_none,
    )


def takes_context(function: Callable[..., object]) -> bool:
    """Return whether a function is called with the context as its second argument.

    It is if the second positional parameter has no default, or has the name of a
    context; or if there is ``*args`` and no ``**kwargs``, which together are how
    wrappers pass on whatever they get. A function without a signature is called with
    one argument, as are functions of C that take any number (``struct.Struct.pack``).
    """
    try:
        parameters = _signature_of(function).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = [each for each in parameters if each.kind in _POSITIONAL]
    if len(positional) >= 2:
        second = positional[1]
        return second.default is Parameter.empty or second.name in _NAMES
    kinds = {each.kind for each in parameters}
    return (
        Parameter.VAR_POSITIONAL in kinds
        and Parameter.VAR_KEYWORD not in kinds
        and not isbuiltin(_innermost(function))
    )


def returned_coroutine(option: str, method: str) -> ConfigurationError:
    """Return the error of a function that has returned a coroutine.

    Args:
        option: the option that has the function.
        method: the method that may return one.
    """
    return ConfigurationError(
        f"{option} returned a coroutine: a function has to return the result itself. "
        f"Pass an object with `async def {method}`, which is awaited"
    )


def _signature_of(function: Callable[..., object]) -> Signature:
    if sys.version_info >= (3, 14):
        # Annotations may name what is imported for type checkers alone.
        return signature(function, annotation_format=Format.FORWARDREF)
    return signature(function)


def _innermost(function: object) -> object:
    while isinstance(function, partial):
        function = function.func
    return function
