"""Translates patterns of Python to RE2, by which a broker matches topics (KIP-848).

A pattern is sent to the broker only if every part of it is known to mean the same to
both sides, for the names that topics can have: letters, digits, ``.``, ``_`` and ``-``.
The client matches all other patterns by itself.
"""

from __future__ import annotations

import re
from typing import Final

#: Kafka's internal topics, which a broker's match does not leave out.
INTERNAL_TOPICS: Final = (
    "__consumer_offsets",
    "__transaction_state",
    "__share_group_state",
)

# Flags that make no difference to the names of topics, which have no line ends and no
# letter beyond ASCII; and IGNORECASE, which RE2 has as well.
_HARMLESS: Final = re.ASCII | re.UNICODE | re.MULTILINE | re.DOTALL | re.IGNORECASE

# Escapes that mean the same to both sides: classes, word boundaries, the start, and
# every character that is neither a letter nor a digit.
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
# RE2 counts to 1000 at most, has no possessive quantifiers, and takes {,n} literally.
_QUANTIFIER = r"(?:[*+?]|\{\d{1,3}(?:,(?:\d{1,3})?)?\})\??(?![*+?{])"
_TOKENS: Final = re.compile(rf"(?:(?:{_ATOM})(?:{_QUANTIFIER})?)*", re.VERBOSE)


def to_re2(pattern: re.Pattern[str], *, hides_internal: bool) -> str | None:
    """Translate a pattern for a broker, which matches whole names by it.

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
