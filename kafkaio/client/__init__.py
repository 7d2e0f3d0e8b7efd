"""The low-level client: any request of the protocol, sent to where it belongs."""

from kafkaio._machines.coordinators import CoordinatorKind
from kafkaio._machines.metadata import ClusterView, PartitionView
from kafkaio._machines.refresh import ALL_TOPICS
from kafkaio.client.client import Client
from kafkaio.client.cluster import ClientStatistics
from kafkaio.client.destinations import (
    ANY,
    Broker,
    Controller,
    Destination,
    GroupCoordinator,
    Leader,
    TransactionCoordinator,
)

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
