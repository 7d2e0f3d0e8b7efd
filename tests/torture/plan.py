"""The plan of a run, and the options that its members share."""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass
from typing import Final

from kafkaio._config.options import ConsumerOptions

#: ``classic`` members are cooperative, which is also a name of it.
PROTOCOLS: Final = ("consumer", "classic", "cooperative", "eager", "mixed")
CLIENTS: Final = ("kafkaio", "confluent")
#: Mistakes of members that the counting must find.
SABOTAGES: Final = ("plain-commits",)
JOIN_SECONDS: Final = 60.0
#: The group removes a member that does not poll for so long; a stall lasts longer.
POLL_SECONDS: Final = 15.0
SESSION_SECONDS: Final = 10.0
#: Of members that copy: the transaction of one that died ends after so long.
TRANSACTION_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A run.

    Attributes:
        members: most members at a time, those of Java not counted.
        partitions: of the topic.
        seconds: how long things happen.
        seed: draws what happens.
        protocol: of the group; ``mixed`` members draw between consumer and classic.
        java: members of Java beside ours.
        rate: records a second.
        deaths: whether members are killed, cancelled and stalled, or only leave.
        kill_brokers: whether brokers are killed and stopped, one at a time.
        pace: seconds between two things that happen to members, on average.
        processes: that the members are divided among.
        client: of members that copy in transactions.
        sabotage: a mistake of such members.
    """

    members: int = 20
    partitions: int = 48
    seconds: float = 300.0
    seed: int = 1
    protocol: str = "consumer"
    java: int = 0
    rate: int = 500
    deaths: bool = True
    kill_brokers: bool = False
    pace: float = 3.0
    processes: int = 5
    client: str = "kafkaio"
    sabotage: str = ""

    def draw_protocol(self, rng: random.Random) -> str:
        """The protocol of a new member."""
        if self.protocol == "mixed":
            return rng.choice(("consumer", "classic"))
        return "classic" if self.protocol == "cooperative" else self.protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The options that all members share."""

    bootstrap: str
    topic: str
    group: str
    seed: int

    def dumps(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def loads(text: str) -> Settings:
        return Settings(**json.loads(text))

    def options(self, protocol: str) -> ConsumerOptions:
        """The options of a consumer."""
        found = ConsumerOptions(
            group_id=self.group,
            auto_offset_reset="earliest",
            auto_commit_interval_ms=500,
            max_poll_interval_ms=round(POLL_SECONDS * 1000),
            group_protocol="consumer" if protocol == "consumer" else "classic",
        )
        if protocol != "consumer":
            found["heartbeat_interval_ms"] = 500
            found["session_timeout_ms"] = round(SESSION_SECONDS * 1000)
        if protocol == "eager":
            found["partition_assignment_strategy"] = ("range",)
        return found

    @staticmethod
    def is_stall(seconds: float) -> bool:
        """Whether a member that stalls for so long may lose its partitions."""
        return seconds > SESSION_SECONDS / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a process copies in transactions, and how.

    Attributes:
        output: the topic of the copies.
        partitions: of the output; the copy of a record goes to ``key % partitions``.
        transactional_id: of this process, and of those that replace it.
        client: the library that its members use.
        sabotage: the mistake that its members make, if any.
    """

    output: str
    partitions: int
    transactional_id: str
    client: str = "kafkaio"
    sabotage: str = ""

    def dumps(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def loads(text: str) -> Job:
        return Job(**json.loads(text))
