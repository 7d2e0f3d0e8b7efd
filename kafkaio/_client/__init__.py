"""The low-level client: sends any request of the protocol to the right broker.

Users see `Client`. Producers and consumers use `kafkaio._client.cluster.Cluster`, with
`kafkaio._client.retry` for repeated attempts and `kafkaio._client.fanout` for
operations on many partitions, groups or brokers.
"""

from kafkaio._client.client import Client as Client
from kafkaio._client.cluster import ClientStatistics as ClientStatistics
from kafkaio._client.destinations import (
    ANY as ANY,
)
from kafkaio._client.destinations import (
    Broker as Broker,
)
from kafkaio._client.destinations import (
    Controller as Controller,
)
from kafkaio._client.destinations import (
    Destination as Destination,
)
from kafkaio._client.destinations import (
    GroupCoordinator as GroupCoordinator,
)
from kafkaio._client.destinations import (
    Leader as Leader,
)
from kafkaio._client.destinations import (
    TransactionCoordinator as TransactionCoordinator,
)
from kafkaio._machines.coordinators import CoordinatorKind as CoordinatorKind
from kafkaio._machines.metadata import ClusterView as ClusterView
from kafkaio._machines.metadata import PartitionView as PartitionView
from kafkaio._machines.refresh import ALL_TOPICS as ALL_TOPICS
