"""The producer of aiokafka."""

from kafkaio.aiokafka.producer.producer import AIOKafkaProducer

__all__ = ["AIOKafkaProducer"]
