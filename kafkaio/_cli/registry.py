"""The commands: where each is defined, and its line in ``kafkaio --help``.

A module is imported when one of its commands is used. So that the list of commands
costs nothing, the line is written here and not taken from the module; a test compares
the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Entry(NamedTuple):
    """Where a command is, and what it does in a few words.

    Attributes:
        module: the module, which has the command as an attribute of the command's name,
            with ``_`` for ``-``.
        help: the first sentence of its help, without the full stop.
    """

    module: str
    help: str


#: Commands that work without the extra ``cli``; `kafkaio._cli.main` has their parsers.
BARE: Final[Mapping[str, str]] = {
    "broker": "Run a Kafka cluster for development and tests",
    "log": "Show or check the files of a log",
}

#: All others, by section of the help.
COMMANDS: Final[Mapping[str, Mapping[str, Entry]]] = {
    "Topics and groups": {
        "topics": Entry(
            "kafkaio._cli.topics", "List, create, change and delete topics"
        ),
        "groups": Entry(
            "kafkaio._cli.groups", "List, describe, reset and delete groups"
        ),
        "lag": Entry("kafkaio._cli.lag", "Show how far groups are behind"),
        "offsets": Entry("kafkaio._cli.offsets", "Show offsets of partitions"),
        "configs": Entry("kafkaio._cli.configs", "Show and change configs"),
    },
    "Records": {
        "consume": Entry(
            "kafkaio._cli.consume", "Print records, or write them to a file"
        ),
        "produce": Entry(
            "kafkaio._cli.produce", "Send records, by default one of each line of stdin"
        ),
        "copy": Entry("kafkaio._cli.copy", "Copy records from one topic to another"),
        "replay": Entry(
            "kafkaio._cli.replay",
            "Send the records of a range again, at their recorded pace",
        ),
        "bench": Entry(
            "kafkaio._cli.bench", "Measure how fast records are produced and consumed"
        ),
        "request": Entry("kafkaio._cli.request", "Send any request of the protocol"),
    },
    "Cluster": {
        "cluster": Entry(
            "kafkaio._cli.cluster",
            "Describe the cluster and its brokers; forget a broker",
        ),
        "quorum": Entry(
            "kafkaio._cli.quorum", "Show, add and remove the controllers of the quorum"
        ),
        "features": Entry(
            "kafkaio._cli.features", "Describe, raise and lower the levels of features"
        ),
        "api-versions": Entry(
            "kafkaio._cli.api_versions",
            "Show the versions of APIs that both sides speak",
        ),
        "log-dirs": Entry(
            "kafkaio._cli.log_dirs", "Show the log directories of brokers"
        ),
        "reassign": Entry(
            "kafkaio._cli.reassign", "Plan, start, watch and cancel moves of replicas"
        ),
        "elect": Entry("kafkaio._cli.elect", "Elect the leaders of partitions"),
        "records": Entry("kafkaio._cli.records", "Delete records of partitions"),
        "transactions": Entry(
            "kafkaio._cli.transactions", "List, describe and end transactions"
        ),
        "acls": Entry("kafkaio._cli.acls", "List, create and delete ACLs"),
        "quotas": Entry("kafkaio._cli.quotas", "Describe, set and remove quotas"),
        "users": Entry("kafkaio._cli.users", "List, set and delete SCRAM passwords"),
        "tokens": Entry(
            "kafkaio._cli.tokens", "Create, renew, expire and list delegation tokens"
        ),
        "share-groups": Entry(
            "kafkaio._cli.share_groups", "List, describe, reset and delete share groups"
        ),
        "client-metrics": Entry(
            "kafkaio._cli.client_metrics",
            "Show and change client metrics subscriptions",
        ),
    },
    "Shell": {
        "completion": Entry(
            "kafkaio._cli.completion", "Print the completion of a shell"
        ),
    },
}
