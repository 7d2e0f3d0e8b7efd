"""The options of a cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypedDict

from kafkaio._public import public
from kafkaio.testing.kafka._properties import Value
from kafkaio.testing.kafka._releases import DEFAULT_VERSION, Release, find_release

#: KIP-368.
_REAUTH_SINCE: Final = (2, 2)
#: KIP-853.
_DYNAMIC_SINCE: Final = (3, 9)
DEFAULT_USERS: Final[Mapping[str, str]] = {"alice": "alice-secret"}


class Options(TypedDict, total=False):
    """The keyword arguments of ``Kafka``; see ``ClusterOptions`` for their meaning."""

    sasl: bool
    tls: bool
    users: Mapping[str, str] | None
    reauth_ms: int | None
    acls: bool
    delegation_tokens: bool
    dynamic_voters: bool
    plugins: Sequence[Path]
    config: Mapping[str, Value] | None
    features: Mapping[str, int] | None
    rack: bool
    fast: bool
    heap: str
    start_timeout: float


@public("kafkaio.testing.kafka")
@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """The options of a cluster, with their defaults.

    Attributes:
        brokers: How many brokers, each a controller too.
        version: A minor (``4.3``) or full (``4.3.1``) version.
        sasl: Open a SASL listener: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and
            OAUTHBEARER with unsecured tokens (RFC 7515, alg none).
        tls: Open an SSL listener, and MTLS, which demands a client certificate;
            with ``sasl`` also SASL_SSL.
        users: Users and passwords; None means alice with alice-secret.
        reauth_ms: The longest session of a SASL connection, in milliseconds
            (``connections.max.reauth.ms``, KIP-368); None for no limit.
        acls: Check rights by Kafka's own authorizer. Clients of PLAINTEXT may do
            everything, and grant rights to the others.
        delegation_tokens: Let clients make delegation tokens (KIP-48).
        dynamic_voters: Let controllers become voters and cease to be (KIP-853). The
            first node is the only voter in the beginning.
        plugins: Jars that brokers find their plug-ins in, such as a metrics reporter
            that ``config`` names.
        config: Broker properties; they override ours.
        features: Feature levels; they override those of the release. 0 means off.
        rack: Broker N is in rack rN, and followers serve fetches (KIP-392).
        fast: Quick timers, small buffers and a Java that starts fast, instead of the
            broker's defaults.
        heap: The largest Java heap of each node.
        start_timeout: Seconds until the start fails because a node is not ready.
    """

    brokers: int = 1
    version: str = DEFAULT_VERSION
    sasl: bool = False
    tls: bool = False
    users: Mapping[str, str] | None = None
    reauth_ms: int | None = None
    acls: bool = False
    delegation_tokens: bool = False
    dynamic_voters: bool = False
    plugins: Sequence[Path] = ()
    config: Mapping[str, Value] | None = None
    features: Mapping[str, int] | None = None
    rack: bool = True
    fast: bool = True
    heap: str = "256m"
    start_timeout: float = 90.0
    release: Release = field(init=False)

    def __post_init__(self) -> None:
        if self.brokers < 1:
            raise ValueError(f"brokers must be at least 1, not {self.brokers}")
        # The class is frozen.
        object.__setattr__(self, "release", find_release(self.version))
        if self.dynamic_voters:
            self._need("dynamic_voters", _DYNAMIC_SINCE)
        self._check_security()

    def _check_security(self) -> None:
        if self.reauth_ms is not None:
            self._need("reauth_ms", _REAUTH_SINCE, is_there=self.sasl, needs="sasl")
            if self.reauth_ms < 1:
                raise ValueError(f"reauth_ms must be at least 1, not {self.reauth_ms}")
        # A token is made for an authenticated principal.
        if self.delegation_tokens:
            there = self.sasl or self.tls
            self._need("delegation_tokens", (), is_there=there, needs="sasl or tls")

    def _need(
        self,
        name: str,
        since: tuple[int, ...],
        *,
        is_there: bool = True,
        needs: str = "",
    ) -> None:
        if not is_there:
            raise ValueError(f"{name} needs {needs}=True")
        version = self.release.version
        if tuple(map(int, version.split("."))) < since:
            first = ".".join(map(str, since))
            raise ValueError(f"{name} needs Kafka {first}, not {version}")

    @property
    def accounts(self) -> Mapping[str, str]:
        """The users, or the default ones."""
        return DEFAULT_USERS if self.users is None else self.users

    @property
    def levels(self) -> dict[str, int]:
        """The feature levels to finalize."""
        return self.release.features | dict(self.features or {})
