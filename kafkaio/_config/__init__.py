"""The options of clients, producers and consumers.

`configs` declares them, each once; `declaration` says how. ``options`` has their
keyword types and is generated (``python -m codegen.options``).
"""

from kafkaio._config.configs import (
    ClientConfig as ClientConfig,
)
from kafkaio._config.configs import (
    ConsumerConfig as ConsumerConfig,
)
from kafkaio._config.configs import (
    Deserializer as Deserializer,
)
from kafkaio._config.configs import (
    Partitioner as Partitioner,
)
from kafkaio._config.configs import (
    ProducerConfig as ProducerConfig,
)
from kafkaio._config.configs import (
    Serializer as Serializer,
)
from kafkaio._config.configs import (
    TokenProvider as TokenProvider,
)
from kafkaio._config.options import ClientOptions as ClientOptions
from kafkaio._config.options import ConsumerOptions as ConsumerOptions
from kafkaio._config.options import ProducerOptions as ProducerOptions
