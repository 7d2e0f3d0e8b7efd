"""Administer a cluster by the names of aiokafka."""

from kafkaio.aiokafka.admin.client import AIOKafkaAdminClient
from kafkaio.aiokafka.admin.new_partitions import NewPartitions
from kafkaio.aiokafka.admin.new_topic import NewTopic
from kafkaio.aiokafka.admin.records_to_delete import RecordsToDelete

__all__ = ["AIOKafkaAdminClient", "NewPartitions", "NewTopic", "RecordsToDelete"]
