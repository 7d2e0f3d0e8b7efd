"""The options of clients, producers and consumers.

`configs` declares them, each once; `declaration` says how. ``options`` has their
keyword types and is generated (``python -m codegen.options``).
"""

from kafkaio._config.configs import (
    ClientConfig,
    ConsumerConfig,
    Deserializer,
    Partitioner,
    ProducerConfig,
    Serializer,
    TokenProvider,
)
from kafkaio._config.options import ClientOptions, ConsumerOptions, ProducerOptions

__all__ = [
    "ClientConfig",
    "ClientOptions",
    "ConsumerConfig",
    "ConsumerOptions",
    "Deserializer",
    "Partitioner",
    "ProducerConfig",
    "ProducerOptions",
    "Serializer",
    "TokenProvider",
]
