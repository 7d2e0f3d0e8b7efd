"""What the tests of the client share."""

from kafkaio._client import Client
from kafkaio._config import ClientConfig
from tests.fakes.broker import FakeCluster


def client_of(
    cluster: FakeCluster, observer: object | None = None, **options: object
) -> Client:
    """A client of a fake cluster, not started."""
    options.setdefault("bootstrap_servers", cluster.bootstrap_servers)
    config = ClientConfig(**options)  # type: ignore[arg-type]  # checked when made
    return Client.from_config(config, observer=observer, dial=cluster.dial)
