"""The low-level client: sends any request of the protocol to the right broker.

Users see `Client`. Producers and consumers use `kafkaio._client.cluster.Cluster`, with
`kafkaio._client.retry` for repeated attempts and `kafkaio._client.fanout` for
operations on many partitions, groups or brokers.
"""

from kafkaio._client.client import Client as Client
from kafkaio._client.cluster import ClientStatistics as ClientStatistics
from kafkaio._client.destinations import (
    ANY as ANY,
    Broker as Broker,
    Controller as Controller,
    Destination as Destination,
    GroupCoordinator as GroupCoordinator,
    Leader as Leader,
    TransactionCoordinator as TransactionCoordinator,
)
from kafkaio._machines.coordinators import CoordinatorKind as CoordinatorKind
from kafkaio._machines.metadata import (
    ClusterView as ClusterView,
    PartitionView as PartitionView,
    TopicView as TopicView,
)
from kafkaio._machines.refresh import ALL_TOPICS as ALL_TOPICS
