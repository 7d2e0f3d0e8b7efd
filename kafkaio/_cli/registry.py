"""The commands: where each is defined, and its line in ``kafkaio --help``.

A module is imported when one of its commands is used. The line of the help is repeated
here so that the list of commands imports no module; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafkaio._named_tuple import NamedTuple


class Entry(NamedTuple):
    """The module of a command, and its line in the help.

    Attributes:
        module: the module below ``kafkaio._cli``, which has the command as an attribute
            of the command's name, with ``_`` for ``-``.
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
        "topics": Entry("topics.topics", "List, create, change and delete topics"),
        "groups": Entry("groups.groups", "List, describe, reset and delete groups"),
        "lag": Entry("groups.lag", "Show how far groups are behind"),
        "offsets": Entry("topics.offsets", "Show offsets of partitions"),
        "configs": Entry("topics.configs", "Show and change configs"),
    },
    "Records": {
        "consume": Entry("records.consume", "Print records, or write them to a file"),
        "produce": Entry(
            "records.produce",
            "Send records, by default one of each line of stdin",
        ),
        "copy": Entry("records.copy", "Copy records from one topic to another"),
        "replay": Entry(
            "records.replay",
            "Send the records of a range again, at their recorded pace",
        ),
        "bench": Entry(
            "records.bench",
            "Measure how fast records are produced and consumed",
        ),
        "request": Entry("cluster.request", "Send any request of the protocol"),
    },
    "Schemas": {
        "schemas": Entry(
            "registries.schemas",
            "List, get, register, check and delete schemas of a registry",
        ),
    },
    "Cluster": {
        "cluster": Entry(
            "cluster.cluster",
            "Describe the cluster and its brokers; forget a broker or a controller",
        ),
        "quorum": Entry(
            "cluster.quorum",
            "Show, add and remove the controllers of the quorum",
        ),
        "features": Entry(
            "cluster.features",
            "Describe, raise and lower the levels of features",
        ),
        "api-versions": Entry(
            "cluster.api_versions",
            "Show the versions of APIs that both sides speak",
        ),
        "log-dirs": Entry("cluster.log_dirs", "Show the log directories of brokers"),
        "reassign": Entry(
            "reassignment.reassign",
            "Plan, start, watch and cancel moves of replicas",
        ),
        "elect": Entry("cluster.elect", "Elect the leaders of partitions"),
        "records": Entry("topics.delete_records", "Delete records of partitions"),
        "transactions": Entry(
            "cluster.transactions", "List, describe and end transactions"
        ),
        "acls": Entry("access.acls", "List, create and delete ACLs"),
        "quotas": Entry("access.quotas", "Describe, set and remove quotas"),
        "users": Entry("access.users", "List, set and delete SCRAM passwords"),
        "tokens": Entry(
            "access.tokens",
            "Create, renew, expire and list delegation tokens",
        ),
        "share-groups": Entry(
            "groups.share_groups",
            "List, describe, reset and delete share groups",
        ),
        "client-metrics": Entry(
            "cluster.client_metrics",
            "Show and change client metrics subscriptions",
        ),
    },
    "Shell": {
        "completion": Entry("shell.completion", "Print the completion of a shell"),
    },
}
