"""The low-level client: sends any request of the protocol to the right broker.

Users see `Client`. Producers and consumers use `kafkaio._client.cluster.Cluster`, with
`kafkaio._client.retry` for repeated attempts and `kafkaio._client.fanout` for
operations on many partitions, groups or brokers.
"""

from kafkaio._client.client import Client
from kafkaio._client.cluster import ClientStatistics
from kafkaio._client.destinations import (
    ANY,
    Broker,
    Controller,
    Destination,
    GroupCoordinator,
    Leader,
    TransactionCoordinator,
)
from kafkaio._machines.coordinators import CoordinatorKind
from kafkaio._machines.metadata import ClusterView, PartitionView
from kafkaio._machines.refresh import ALL_TOPICS

__all__ = [
    "ALL_TOPICS",
    "ANY",
    "Broker",
    "Client",
    "ClientStatistics",
    "ClusterView",
    "Controller",
    "CoordinatorKind",
    "Destination",
    "GroupCoordinator",
    "Leader",
    "PartitionView",
    "TransactionCoordinator",
]
