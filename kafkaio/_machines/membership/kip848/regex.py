"""Which patterns of Python a broker understands as well (KIP-848 uses RE2).

A pattern is sent to the broker only where both sides take every part of it to mean
the same for the names that topics can have: letters, digits, ``.``, ``_`` and ``-``.
Whatever is not known to be so is matched by the client instead.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["INTERNAL_TOPICS", "to_re2"]

#: Topics of Kafka's own, which a broker's match does not leave out.
INTERNAL_TOPICS: Final = (
    "__consumer_offsets",
    "__transaction_state",
    "__share_group_state",
)

# Flags that say nothing about names of topics (they have no line ends, and no letter
# beyond ASCII), and the one that RE2 has as well.
_HARMLESS: Final = re.ASCII | re.UNICODE | re.MULTILINE | re.DOTALL | re.IGNORECASE

# Escapes that mean the same to both: classes, edges of words, the start, and all that
# is neither letter nor digit.
_ESCAPE = r"\\(?:[dDsSwW]|[^\w\s]|_)"
_SET = rf"\[\^?\]?(?:[^\]\[\\]|{_ESCAPE})*\]"
_ATOM = rf"""
      \((?: \?: | \?P<[A-Za-z_]\w*> )? (?![?])
    | \)
    | {_SET}
    | {_ESCAPE} | \\[AbB]
    | [.^$|]
    | [^\\\[\](){{}}*+?.^$|]
"""
# RE2 counts to 1000, has no possessive quantifiers, and takes {,n} for itself.
_QUANTIFIER = r"(?:[*+?]|\{\d{1,3}(?:,(?:\d{1,3})?)?\})\??(?![*+?{])"
_TOKENS: Final = re.compile(rf"(?:(?:{_ATOM})(?:{_QUANTIFIER})?)*", re.VERBOSE)


def to_re2(pattern: re.Pattern[str], *, hides_internal: bool) -> str | None:
    """The same pattern for a broker, which matches whole names by it.

    Args:
        pattern: matches whole names.
        hides_internal: whether Kafka's internal topics must not match.

    Returns:
        The expression; None if the client has to match by itself.
    """
    text = pattern.pattern.removeprefix("(?i)")
    if pattern.flags & ~_HARMLESS or not text.isascii() or not text:
        return None
    if hides_internal and any(pattern.fullmatch(name) for name in INTERNAL_TOPICS):
        return None
    if _TOKENS.fullmatch(text) is None:
        return None
    return f"(?i){text}" if pattern.flags & re.IGNORECASE else text
