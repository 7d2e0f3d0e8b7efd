"""The base of the subjects of `kafkaio.Admin`: the cluster, and a call's deadline."""

from __future__ import annotations

from kafkaio._arguments import seconds_of
from kafkaio._client.cluster import Cluster
from kafkaio._config import ClientConfig
from kafkaio._runtime.clock import now
from kafkaio._runtime.lifecycle import Lifecycle


class Subject:
    """One subject of `kafkaio.Admin`, which inherits from all subjects.

    Attributes:
        config: the options.
    """

    # All subjects are one object. A private method must have a name that no other
    # subject uses: Python would replace one by the other without a word. A test of the
    # unit tests checks it.
    config: ClientConfig
    _cluster: Cluster
    _life: Lifecycle

    def _deadline(self, timeout: float | None) -> float:
        """Check that the client can be used; return when an operation gives up.

        The time is that of the loop's clock.

        Args:
            timeout: seconds; ``default_api_timeout_ms`` by default.

        Raises:
            ClosedError: the admin client is closed, or not started.
        """
        # First of all, before the arguments are checked: a client that is closed is
        # what the caller has to know.
        self._life.check()
        if timeout is None:
            return now() + self.config.default_api_timeout_ms / 1000
        return now() + seconds_of("timeout", timeout)
