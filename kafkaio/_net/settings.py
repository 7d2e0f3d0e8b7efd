"""The options that concern connections, in seconds and bytes."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from math import inf
from typing import TYPE_CHECKING, Final

from kafkaio._config import ClientConfig
from kafkaio._config.configs import AllowedHosts, versions_of
from kafkaio._config.declaration import given
from kafkaio._dataclass import dataclass
from kafkaio._machines.api_versions import software_version
from kafkaio._machines.backoff import Backoff, ReconnectSchedule
from kafkaio._machines.connection.handshake import UNADDRESSED, ClientIdentity
from kafkaio._net.transport import DialOptions
from kafkaio._version import __version__
from kafkaio.errors import ConfigurationError
from kafkaio.protocol import _api_numbers as apis
from kafkaio.protocol.messages.api_versions import ApiVersionsRequest
from kafkaio.types import Broker

if TYPE_CHECKING:
    from kafkaio._config.proxy import Proxy
    from kafkaio.security._login import LoginPort

SOFTWARE_NAME: Final = "kafkaio"
#: Seconds without an acknowledgement after which TCP gives a connection up, at least.
#: Linux uses it in place of a number of probes, too: three have been lost by then, at
#: 60, 70 and 80 s of silence, so that a single lost packet does not end a connection.
_USER_TIMEOUT: Final = 85.0
_SOFTWARE_VERSION: Final = software_version(__version__)


def _any_host(host: str, port: int) -> bool:
    del host, port
    return True


def _allowed(hosts: AllowedHosts | None) -> Callable[[str, int], bool]:
    """The test of an advertised address; see the option ``allowed_hosts``."""
    if hosts is None:
        return _any_host
    if callable(hosts):
        return hosts
    return partial(_matches, tuple(hosts))


def _matches(patterns: tuple[str, ...], host: str, port: int) -> bool:
    from fnmatch import fnmatchcase  # few clients need it

    name = host.lower().removesuffix(".")
    addresses = (name, f"{name}:{port}")
    return any(
        fnmatchcase(address, pattern.lower())
        for pattern in patterns
        for address in addresses
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NetSettings:
    """How to connect, and how long to wait.

    Attributes:
        client_id: the client id in every request.
        request_timeout: seconds for the answer to a request without another timeout.
        idle_timeout: seconds without use after which a connection is closed.
        reconnect: the wait between attempts to connect to one broker.
        set_up: how long one attempt may take; it grows with every failure.
        max_frame_size: the largest answer accepted, in bytes.
        max_control_response_size: the largest answer without records, in bytes.
        max_throttle: the longest pause that a broker can demand, in seconds.
        max_versions: the highest versions to use, by API key.
        checks_cluster: whether a broker has to be the one that the metadata names.
        receive_memory: bytes of answers that all connections receive at once.
        is_allowed: whether an advertised host and port may be connected to.
        login: how to authenticate by SASL; None for not.
        tls: returns the TLS settings, asked for each new connection; None for plain
            TCP.
        send_buffer_bytes: SO_SNDBUF, -1 for the system's default.
        receive_buffer_bytes: SO_RCVBUF, -1 for the system's default.
        proxy: by which brokers are reached; None for none.
    """

    client_id: str = "kafkaio"
    request_timeout: float = 30.0
    idle_timeout: float = 540.0
    reconnect: Backoff = field(default=Backoff(50, 1_000))
    set_up: Backoff = field(default=Backoff(10_000, 30_000))
    max_frame_size: int = 104_857_600
    max_control_response_size: int = 16_777_216
    max_throttle: float = 60.0
    max_versions: Mapping[int, int] = field(default_factory=dict)
    checks_cluster: bool = True
    receive_memory: float = inf
    is_allowed: Callable[[str, int], bool] = _any_host
    login: LoginPort | None = None
    tls: Callable[[], ssl.SSLContext] | None = None
    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1
    proxy: Proxy | None = None

    @classmethod
    def from_config(cls, config: ClientConfig) -> NetSettings:
        """Take the options from those of a client, producer or consumer.

        Raises:
            ConfigurationError: an option needs a package that is not installed, or a
                file that cannot be read.
        """
        return cls(
            client_id=config.client_id,
            request_timeout=config.request_timeout_ms / 1000,
            idle_timeout=config.connections_max_idle_ms / 1000,
            reconnect=Backoff(
                config.reconnect_backoff_ms, config.reconnect_backoff_max_ms
            ),
            set_up=Backoff(
                config.socket_connection_setup_timeout_ms,
                config.socket_connection_setup_timeout_max_ms,
            ),
            max_frame_size=config.max_response_size,
            max_control_response_size=config.max_control_response_size,
            max_throttle=config.max_throttle_ms / 1000,
            max_versions=_by_key(versions_of(config.max_versions)),
            # Without the way back to the bootstrap servers a refusal would be final.
            checks_cluster=config.metadata_cluster_check_enable
            and config.metadata_recovery_strategy == "rebootstrap",
            receive_memory=config.receive_memory,
            is_allowed=_allowed(config.allowed_hosts),
            tls=_contexts_for(config),
            login=_login(config),
            send_buffer_bytes=config.send_buffer_bytes,
            receive_buffer_bytes=config.receive_buffer_bytes,
            proxy=_proxy(config.proxy),
        )

    @property
    def highest_api_versions(self) -> int:
        """The highest version of ApiVersions to ask in."""
        newest = ApiVersionsRequest.MAX_VERSION
        return min(newest, self.max_versions.get(apis.API_VERSIONS, newest))

    def identity(
        self,
        name: str,
        broker: Broker,
        first_version: int | None = None,
        cluster_id: str | None = None,
    ) -> ClientIdentity:
        """How the client presents itself on a connection to ``broker``.

        Args:
            name: the broker's name in errors.
            broker: its id and address.
            first_version: the version of ApiVersions to ask in first.
            cluster_id: the cluster that the broker has to belong to; None for any.
        """
        if first_version is None:
            first_version = min(self.highest_api_versions, UNADDRESSED)
        address = f"{broker.host}:{broker.port}"
        return ClientIdentity(
            peer=f"{name} ({address})",
            address=address,
            client_id=self.client_id,
            software_name=SOFTWARE_NAME,
            software_version=_SOFTWARE_VERSION,
            request_timeout=self.request_timeout,
            idle_timeout=self.idle_timeout,
            max_control_response_size=self.max_control_response_size,
            max_throttle=self.max_throttle,
            max_versions=self.max_versions,
            first_version=first_version,
            cluster_id=cluster_id,
            node_id=broker.node_id,
        )

    def schedule(self) -> ReconnectSchedule:
        """A new schedule of attempts to connect to one broker."""
        return ReconnectSchedule(self.reconnect, self.set_up)

    def dial_options(self, timeout: float) -> DialOptions:
        """The options of the transport, with ``timeout`` seconds until it is ready."""
        return DialOptions(
            timeout=timeout,
            max_frame_size=self.max_frame_size,
            ssl_context=None if self.tls is None else self.tls(),
            send_buffer_bytes=self.send_buffer_bytes,
            receive_buffer_bytes=self.receive_buffer_bytes,
            # Not earlier than a request without an answer times out.
            user_timeout=max(_USER_TIMEOUT, self.request_timeout),
            proxy=self.proxy,
        )


def _proxy(url: str | None) -> Proxy | None:
    if url is None:
        return None
    for module, package in (("python_socks", "python-socks"), ("h11", "h11")):
        if find_spec(module) is None:
            raise ConfigurationError(
                f"proxy needs the package {package}: pip install kafkaio[proxy]"
            )
    # Loaded now, and not while an attempt to connect is timed.
    import_module("kafkaio._net.tunnel")
    from kafkaio._config.proxy import parse_proxy

    return parse_proxy(url)


def _by_key(versions: Mapping[str, int]) -> dict[int, int]:
    """Versions by API key, of versions by the names of APIs.

    Raises:
        ConfigurationError: an API does not exist.
    """
    if not versions:
        return {}
    from kafkaio.protocol._api_keys import ApiKey

    keys = {key.name.replace("_", "").lower(): key for key in ApiKey}
    found: dict[int, int] = {}
    for name, version in versions.items():
        key = keys.get(name.replace("_", "").lower())
        if key is None:
            from difflib import get_close_matches  # for mistakes alone

            near = get_close_matches(name.lower(), keys, 1)
            named = keys[near[0]].name.title().replace("_", "") if near else ""
            hint = f"; did you mean {named!r}?" if near else ""
            raise ConfigurationError(f"max_versions: {name!r} is not an API{hint}")
        found[key] = version
    return found


def _contexts_for(config: ClientConfig) -> Callable[[], ssl.SSLContext] | None:
    if not config.security_protocol.endswith("SSL") and not given(config, "ssl_"):
        return None
    from kafkaio.security._tls import contexts_for  # with TLS alone

    return contexts_for(config)


def _login(config: ClientConfig) -> LoginPort | None:
    if not config.security_protocol.startswith("SASL_"):
        return None
    from kafkaio.security._login import login_for  # with SASL alone

    return login_for(config)
