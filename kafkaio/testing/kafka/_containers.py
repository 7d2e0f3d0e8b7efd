"""testcontainers behind the protocols of ``engine.py``."""

import contextlib
from collections.abc import Mapping

# docker publishes no types.
from docker.errors import DockerException  # type: ignore[import-untyped]
from docker.models.containers import ContainerPort as Raw  # type: ignore[import-untyped]
from testcontainers.core.container import DockerContainer
from testcontainers.core.docker_client import DockerClient
from testcontainers.core.network import Network

from kafkaio.testing.kafka._engine import ContainerPort


class _Broker:
    def __init__(self, container: DockerContainer):
        self._container = container
        self._created = False

    @property
    def _raw(self) -> Raw:
        return self._container.get_wrapped_container()

    def start(self) -> None:
        if self._created:
            self._raw.start()
        else:
            self._created = True
            self._container.start()

    def kill(self) -> None:
        self._raw.kill()
        self._raw.wait()

    def stop(self) -> None:
        self._raw.stop()

    def pause(self) -> None:
        self._raw.pause()

    def resume(self) -> None:
        self._raw.unpause()

    def log(self) -> str:
        return str(self._raw.logs().decode("utf-8", "replace"))

    def remove(self) -> None:
        if self._created:
            with contextlib.suppress(
                DockerException
            ):  # Ryuk removes a partly created one
                self._container.stop(force=True, delete_volume=True)


class TestcontainersDocker:
    """The engine that testcontainers finds; its Ryuk cleans up after a crash."""

    __test__ = False  # pytest would collect it by its name

    def __init__(self) -> None:
        self._network = Network().create()

    @property
    def host(self) -> str:
        """The address at which published ports are reached."""
        host = str(DockerClient().host())
        return "127.0.0.1" if host == "localhost" else host

    def container(
        self, image: str, alias: str, port: int, environment: Mapping[str, str]
    ) -> ContainerPort:
        """Return a container to start, on the network all of them share."""
        container = DockerContainer(image).with_bind_ports(port, port)
        container = container.with_network(self._network).with_network_aliases(alias)
        return _Broker(container.with_envs(**environment))

    def close(self) -> None:
        """Remove the network."""
        self._network.remove()
