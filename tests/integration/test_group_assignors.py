"""Our range and round-robin shares are those of Kafka's own assignors."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kafkaio._machines.membership.assignors import ASSIGNORS
from kafkaio._machines.membership.subscription import Subscription
from kafkaio.testing.kafka import Toolbox
from kafkaio.testing.kafka.releases import find_release

# It needs no broker, so once is enough.
pytestmark = pytest.mark.kafka_versions("4.3")

SOURCES = Path(__file__).parent.parent / "java" / "group"
TOPICS = ["a", "b", "c"]


def cases(assignor: str, dice: random.Random) -> tuple[str, str]:
    """A question for the oracle, and our answer."""
    topics = dice.sample(TOPICS, dice.randint(1, 3))
    counts = {topic: dice.randint(1, 7) for topic in topics}
    members = {
        f"m{number}": Subscription(
            topics=frozenset(dice.sample(TOPICS, dice.randint(1, 3))),
            group_instance_id=dice.choice([None, f"i{9 - number}"]),
        )
        for number in range(dice.randint(1, 5))
    }
    shares = ASSIGNORS[assignor].assign(counts, members)
    question = " ".join(
        [
            assignor,
            *(f"{topic}={count}" for topic, count in counts.items()),
            "/",
            *(
                f"{name}:{s.group_instance_id or ''}:{','.join(sorted(s.topics))}"
                for name, s in members.items()
            ),
        ]
    )
    answer = " ".join(
        f"{name}={','.join(sorted(f'{tp.topic}-{tp.partition}' for tp in share))}"
        for name, share in sorted(shares.items())
    )
    return question, answer


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
async def test_the_shares_are_those_of_java(assignor: str) -> None:
    dice = random.Random(848)
    questions, answers = zip(*(cases(assignor, dice) for _ in range(500)), strict=True)
    program = Toolbox(find_release("4.3")).program(SOURCES, "AssignorOracle")
    output = await program.run(stdin="\n".join(questions) + "\n", timeout=60)
    for question, ours, theirs in zip(questions, answers, output.lines, strict=True):
        assert ours == theirs, question
