"""The options of clients, producers and consumers.

`configs` declares them, each once; `declaration` says how. `options` has their keyword
types, is generated (``python -m codegen.options``), and is loaded when they are asked
for: type checkers need them, and signatures.
"""

from typing import TYPE_CHECKING

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
from kafkaio._public import lazy

if TYPE_CHECKING:
    from kafkaio._config.options import (
        ClientOptions as ClientOptions,
        ConsumerOptions as ConsumerOptions,
        ProducerOptions as ProducerOptions,
        ShareConsumerOptions as ShareConsumerOptions,
    )
else:
    # `typing.get_type_hints` of a constructor finds them here.
    _OPTIONS, __getattr__, _ = lazy(
        __name__,
        {
            "kafkaio._config.options": (
                *("ClientOptions", "ConsumerOptions", "ProducerOptions"),
                "ShareConsumerOptions",
            ),
        },
    )
