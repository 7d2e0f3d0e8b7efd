"""What the subjects of `kafkaio.Admin` share: its cluster, and the time of a call."""

from __future__ import annotations

from kafkaio._arguments import seconds_of
from kafkaio._client.cluster import Cluster
from kafkaio._config import ClientConfig
from kafkaio._runtime.clock import now
from kafkaio._runtime.lifecycle import Lifecycle


class Subject:
    """One subject of `kafkaio.Admin`, which inherits the operations of all of them.

    Every subject is a part of the one object, so its private methods have names that no
    other subject has.

    Attributes:
        config: the options.
    """

    config: ClientConfig
    _cluster: Cluster
    _life: Lifecycle

    def _deadline(self, timeout: float | None) -> float:
        """Return the time of the loop's clock at which an operation gives up.

        Args:
            timeout: seconds; ``default_api_timeout_ms`` by default.

        Raises:
            ClosedError: the admin client is closed, or not started.
        """
        self._life.check()
        if timeout is None:
            return now() + self.config.default_api_timeout_ms / 1000
        return now() + seconds_of("timeout", timeout)
