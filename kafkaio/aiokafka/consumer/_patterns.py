"""Patterns that match the beginning of a name, as patterns that match all of it."""

from __future__ import annotations

import re

#: Flags at the beginning of a pattern, which must stay there.
_FLAGS = re.compile(r"\(\?[aiLmsux]+\)")


def whole(pattern: re.Pattern[str]) -> re.Pattern[str]:
    """Return a pattern that matches whole names.

    kafkaio's patterns do. Those of aiokafka match a name that begins with a match.

    Args:
        pattern: matches the beginning of a name.
    """
    text, flags = pattern.pattern, ""
    if (found := _FLAGS.match(text)) is not None:
        flags, text = found.group(), text[found.end() :]
    # With `re.VERBOSE` a comment may stand at its end.
    end = "\n" if pattern.flags & re.VERBOSE else ""
    return re.compile(f"{flags}(?:{text}{end})[\\s\\S]*", pattern.flags & ~re.UNICODE)
