"""A real Kafka for kafkaio's own tests: any pinned release, and servers beside it."""

from __future__ import annotations

from typing import Unpack

from kafkaio.testing import kafka
from kafkaio.testing.kafka._cluster import JvmCluster
from kafkaio.testing.kafka._options import ClusterOptions, Options
from kafkaio.testing.kafka._releases import DEFAULT_VERSION
from kafkaio.testing.kafka._sidecar import Sidecar
from tests.support.kafka.kdc import Kdc, KerberosSidecar
from tests.support.kafka.metrics import JMX, JmxSidecar, numbers
from tests.support.kafka.oidc import Issuer, IssuerSidecar
from tests.support.kafka.tools import ToolOutput, run_release_tool
from tests.support.kafka.zookeeper import ZooKeeperSidecar

__all__ = ["Kafka", "ToolOutput", "real_kafka", "run_tool", "sidecars_of"]

#: In this release the class that checks signed tokens got the name that it has today.
_OIDC_SINCE = (3, 9)
_JMX_TOOL = "org.apache.kafka.tools.JmxTool"


class Kafka(kafka.Kafka):
    """A real Kafka, as `kafkaio.testing.kafka.Kafka`, and servers beside it.

    Args:
        brokers: How many brokers; their ids count from 1.
        version: A minor (``4.3``) or full (``4.3.1``) version; releases before KRaft
            get a ZooKeeper.
        oidc: OAUTHBEARER takes signed tokens of `issuer` (KIP-768) in place of
            unsecured ones.
        gssapi: SASL listeners take GSSAPI, too, with tickets of `kdc`.
        jmx: Serve the brokers' metrics, for `metrics`.
        **options: The other fields of `kafkaio.testing.kafka.ClusterOptions`.
    """

    def __init__(
        self,
        brokers: int = 1,
        version: str = DEFAULT_VERSION,
        *,
        oidc: bool = False,
        gssapi: bool = False,
        jmx: bool = False,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(brokers, version, **options)
        _check(self.options, oidc=oidc, gssapi=gssapi)
        self._issuer = IssuerSidecar() if oidc else None
        self._kdc = KerberosSidecar() if gssapi else None
        self._jmx = JmxSidecar() if jmx else None
        found: list[Sidecar] = sidecars_of(self.options)
        found += [one for one in (self._issuer, self._kdc, self._jmx) if one]
        self._cluster = JvmCluster(self.options, found)
        self._engine = self._cluster

    @property
    def issuer(self) -> Issuer:
        """Who signs the tokens that OAUTHBEARER takes.

        Raises:
            RuntimeError: The cluster takes unsecured tokens.
        """
        if self._issuer is None or self._issuer.issuer is None:
            raise RuntimeError("start it with oidc=True")
        return self._issuer.issuer

    @property
    def kdc(self) -> Kdc:
        """The Kerberos server whose tickets GSSAPI takes.

        Raises:
            RuntimeError: The cluster has no GSSAPI.
        """
        if self._kdc is None or self._kdc.kdc is None:
            raise RuntimeError("start it with gssapi=True")
        return self._kdc.kdc

    async def metrics(self, node_id: int, name: str) -> dict[str, float]:
        """Read metrics of a broker by JMX.

        Args:
            node_id: The broker.
            name: The object name of an MBean, such as
                ``kafka.server:type=socket-server-metrics,*``.

        Returns:
            The numbers by ``object name:attribute``.

        Raises:
            RuntimeError: The cluster was not started with ``jmx=True``, or the broker
                has no such metric.
        """
        if self._jmx is None:
            raise RuntimeError("start it with jmx=True")
        _, port = self._cluster.nodes[node_id].address(JMX)
        url = f"service:jmx:rmi:///jndi/rmi://127.0.0.1:{port}/jmxrmi"
        found = await run_tool(
            self,
            _JMX_TOOL,
            *("--jmx-url", url),
            *("--object-name", name),
            "--one-time",
            *("--report-format", "properties"),
        )
        values = numbers(found.lines)
        if found.returncode or not values:
            raise RuntimeError(f"no metric {name}: {found.stdout}{found.stderr}")
        return values


def _check(options: ClusterOptions, *, oidc: bool, gssapi: bool) -> None:
    for name, is_wanted in (("oidc", oidc), ("gssapi", gssapi)):
        if is_wanted and not options.sasl:
            raise ValueError(f"{name} needs sasl=True")
    version = options.release.version
    if oidc and tuple(map(int, version.split("."))) < _OIDC_SINCE:
        raise ValueError(f"oidc needs Kafka 3.9, not {version}")


def sidecars_of(options: ClusterOptions) -> list[Sidecar]:
    """Return what a cluster's brokers need beside them: ZooKeeper before KRaft."""
    return [ZooKeeperSidecar()] if options.release.zookeeper else []


def real_kafka(brokers: int = 1, version: str = DEFAULT_VERSION) -> kafka.Kafka:
    """Return a Kafka as `kafkaio.testing.kafka.real_kafka`, of any pinned release."""
    chosen = kafka.real_kafka(brokers, version)
    if isinstance(chosen.engine, JvmCluster):
        return Kafka(brokers, version)
    return chosen


async def run_tool(
    kafka: kafka.Kafka,
    main: str,
    *args: str,
    stdin: str = "",
    timeout: float = 60.0,
) -> ToolOutput:
    """Run one of Kafka's tools, such as ``org.apache.kafka.tools.GetOffsetShell``.

    Raises:
        TimeoutError: It took longer than ``timeout`` seconds and was killed.
    """
    release = kafka.options.release
    return await run_release_tool(release, main, *args, stdin=stdin, timeout=timeout)
