"""The reaction to each error code, from one table for every part of the client.

`reaction` only names the reaction: the owner of the request performs it. The table
(`kafkaio._machines.reaction_table`) is loaded with the first error.
"""

from __future__ import annotations

from typing import Final

from kafkaio._machines.reaction_kinds import (
    Harm as Harm,
    Reaction as Reaction,
    ReactionStep as ReactionStep,
)
from kafkaio.protocol._error_codes import ErrorCode

#: The reaction to an answer without an error, in every API.
NO_ERROR: Final = Reaction(step=ReactionStep.SUCCESS)


def known_code(code: int) -> ErrorCode:
    """The error code of that number; UNKNOWN_SERVER_ERROR if it is a newer one."""
    return ErrorCode(code)


def reaction(api_key: int, code: int) -> Reaction:
    """Return the reaction to ``code`` in an answer of ``api_key``; never raises."""
    if not code:
        return NO_ERROR
    from kafkaio._machines.reaction_table import BASE, OVERRIDES

    error = ErrorCode(code)
    particular = OVERRIDES.get(api_key)
    if particular is not None and error in particular:
        return particular[error]
    return BASE[error]


def is_foreign(api_key: int, code: int) -> bool:
    """Whether a code is an error that this API does not have, as far as is known.

    It may be one wrong answer, or one of a newer broker. Whether the request had an
    effect is unknown.
    """
    from kafkaio._machines.reaction_table import BASE, OVERRIDES

    error = ErrorCode(code)
    base = BASE[error]
    is_known = base.retry or base.step is ReactionStep.SUCCESS
    return not is_known and error not in OVERRIDES.get(api_key, {})
