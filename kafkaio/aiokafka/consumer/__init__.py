"""Consumers."""

from kafkaio.aiokafka.consumer import fetcher as fetcher
from kafkaio.aiokafka.consumer.consumer import AIOKafkaConsumer

__all__ = ["AIOKafkaConsumer"]
