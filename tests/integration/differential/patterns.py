"""A random script of subscriptions by pattern (KIP-848)."""

from __future__ import annotations

from random import Random
from typing import Final

from tests.integration.differential.heartbeats import joining
from tests.integration.differential.pair import Pair

_ATOMS: Final = (
    "t", "u", "[tu]", ".", r"\w", r"\pL", "[[:alpha:]]", "[^t]", r"\x74", r"\Qt\E",
    "(?i:T)", "(t|u)", r"\d", r"\z", "^", "$", r"\Z", r"\1", "(?=t)", "[", "x",
)  # fmt: skip
_REPEATS: Final = ("", "", "", "*", "+", "?", "{1}", "{0,2}", "*?", "++", "{3,1}")
_LINKS: Final = ("", "", "|")


async def patterns(pair: Pair, dice: Random, prefix: str) -> None:
    """ConsumerGroupHeartbeat with patterns: which are taken, and what they match."""
    for number in range(15):
        parts = [
            dice.choice(_ATOMS) + dice.choice(_REPEATS) + dice.choice(_LINKS)
            for _ in range(dice.randint(1, 3))
        ]
        join = joining(f"{prefix}-{number}", f"{prefix}-member")
        join.subscribed_topic_regex = f"(?:{''.join(parts)}){{0,2}}"
        answer = await pair.ask(join, 1)
        if not answer["error_code"]:
            # It is matched after the answer; who joins again is told all it has.
            await pair.agree(join, 1)
