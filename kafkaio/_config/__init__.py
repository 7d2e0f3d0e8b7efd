"""The options of clients, producers and consumers.

`configs` declares them, each once; `declaration` says how. `options` has their keyword
types, is generated (``python -m codegen.options``), and is loaded when they are asked
for: type checkers need them, and signatures.
"""

from kafkaio._config.configs import (
    DEFAULT_REQUEST_SIZE as DEFAULT_REQUEST_SIZE,
    ClientConfig as ClientConfig,
    ConsumerConfig as ConsumerConfig,
    Deserializer as Deserializer,
    Partitioner as Partitioner,
    ProducerConfig as ProducerConfig,
    Serializer as Serializer,
    ShareConsumerConfig as ShareConsumerConfig,
    TokenProvider as TokenProvider,
    with_functions as with_functions,
)
