"""A server that runs beside the brokers of a cluster of JVMs, and what they need of it.

kafkaio's own tests have sidecars for ZooKeeper, Kerberos, signed tokens and metrics.
"""

from collections.abc import Sequence

from kafkaio.testing.kafka._launcher import Launcher
from kafkaio.testing.kafka._nodes import JvmNode
from kafkaio.testing.kafka._options import ClusterOptions
from kafkaio.testing.kafka._properties import Properties


class Sidecar:
    """A server beside the brokers; by itself it does nothing.

    Attributes:
        ports: Names of further ports of each broker, in ``JvmNode.ports``.
    """

    ports: tuple[str, ...] = ()

    def start(self, launcher: Launcher, options: ClusterOptions) -> None:
        """Start before the brokers; called again for each attempt to start these.

        Raises:
            KafkaNotStarted: It did not start.
        """

    def configure(self, properties: Properties, listeners: Sequence[str]) -> Properties:
        """Return what a broker's properties have on top.

        Args:
            properties: The broker's properties so far.
            listeners: The names of its listeners with SASL.
        """
        del properties, listeners
        return {}

    def flags(self, node: JvmNode) -> Sequence[str]:
        """Return further flags of a broker's Java."""
        del node
        return ()

    def restart_delay(self, properties: Properties) -> float:
        """Return how many seconds after its end a broker can start again."""
        del properties
        return 0.0
