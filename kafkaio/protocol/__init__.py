"""Bytes to messages and back: every message of the Kafka protocol."""

from kafkaio._public import lazy

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {"kafkaio.protocol": ("messages",), "kafkaio.protocol._api_keys": ("ApiKey",)},
)
