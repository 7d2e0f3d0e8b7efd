"""The broker's ``server.properties``, as a value."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from kafkaio.testing.kafka._releases import Release

Value: TypeAlias = str | int | float | bool | Path
Properties: TypeAlias = dict[str, Value]

CONTROLLER: Final = "CONTROLLER"
PLAINTEXT: Final = "PLAINTEXT"
SASL: Final = "SASL"
SSL: Final = "SSL"
MTLS: Final = "MTLS"
SASL_SSL: Final = "SASL_SSL"
SASL_LISTENERS: Final = (SASL, SASL_SSL)
#: The principal of a certificate is its common name (KIP-371).
PRINCIPAL_RULES: Final = "RULE:^CN=(.*?),.*$/$1/,DEFAULT"
_PROTOCOLS: Final = {
    CONTROLLER: "PLAINTEXT",
    PLAINTEXT: "PLAINTEXT",
    SASL: "SASL_PLAINTEXT",
    SSL: "SSL",
    MTLS: "SSL",
    SASL_SSL: "SASL_SSL",
}
JAAS: Final = "org.apache.kafka.common.security"
_TOKEN_KEY: Final = "kafkaio-testing"  # noqa: S105 - of brokers that live for seconds
_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_AUTHORIZERS: Final = {
    "2.8": "kafka.security.authorizer.AclAuthorizer",
    "2.1": "kafka.security.auth.SimpleAclAuthorizer",
}
_RACK_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"

# Few threads, small buffers, quick timers. A release that does not know a name logs
# it and goes on.
FAST: Final[Mapping[str, Value]] = {
    "num.network.threads": 1,
    "num.io.threads": 2,
    "num.replica.fetchers": 1,
    "background.threads": 2,
    "log.cleaner.dedupe.buffer.size": 2097152,
    "log.cleaner.backoff.ms": 500,
    "log.cleaner.io.buffer.size": 262144,
    "log.initial.task.delay.ms": 500,
    "log.retention.check.interval.ms": 1000,
    "group.coordinator.append.linger.ms": 0,
    "share.coordinator.append.linger.ms": 0,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": 500,
    "group.consumer.min.session.timeout.ms": 1000,
    "group.consumer.session.timeout.ms": 6000,
    "group.share.min.heartbeat.interval.ms": 100,
    "group.share.heartbeat.interval.ms": 500,
    "group.share.min.session.timeout.ms": 1000,
    "group.share.session.timeout.ms": 6000,
    "group.share.min.record.lock.duration.ms": 1000,
    "group.share.record.lock.duration.ms": 5000,
    "group.min.session.timeout.ms": 500,
    "delegation.token.expiry.check.interval.ms": 500,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
    "broker.heartbeat.interval.ms": 300,
    "broker.session.timeout.ms": 1500,
    "replica.lag.time.max.ms": 2000,
    "controller.quorum.election.timeout.ms": 300,
    "controller.quorum.fetch.timeout.ms": 600,
    "controller.quorum.election.backoff.max.ms": 300,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerTlsFiles:
    """The files of a broker's TLS keys and certificates, in PKCS12."""

    keystore: Path
    truststore: Path
    password: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The settings that all nodes of a cluster share.

    Attributes:
        release: The Kafka release.
        voters: ``id@host:port`` of every controller; empty without KRaft.
        dynamic_voters: Nodes find controllers there, and these say who is a voter.
        brokers: How many brokers there are.
        users: SASL users and passwords; None means no SASL.
        tls: The TLS files; None means no TLS.
        reauth_ms: The longest session of a SASL connection, in milliseconds.
        acls: Check rights by Kafka's authorizer.
        delegation_tokens: Let clients make delegation tokens.
        rack: Each node is a rack of its own, and followers serve fetches.
        fast: Use the quick timers of ``FAST``.
        config: Properties that override all others.
    """

    release: Release
    voters: Sequence[str] = ()
    dynamic_voters: bool = False
    brokers: int = 1
    users: Mapping[str, str] | None = None
    tls: BrokerTlsFiles | None = None
    reauth_ms: int | None = None
    acls: bool = False
    delegation_tokens: bool = False
    rack: bool = True
    fast: bool = True
    config: Mapping[str, Value] | None = None

    @property
    def listeners(self) -> list[str]:
        """The listeners clients may use."""
        names = [PLAINTEXT]
        if self.users is not None:
            names.append(SASL)
        if self.tls is not None:
            names += [SSL, MTLS]
        if self.users is not None and self.tls is not None:
            names.append(SASL_SSL)
        return names

    def with_voters(self, controllers: Mapping[int, int]) -> "Plan":
        """Return this plan with voters; ``controllers`` has their ports by node id."""
        voters = [f"{node}@127.0.0.1:{port}" for node, port in controllers.items()]
        return dataclasses.replace(self, voters=voters)


def _replication(brokers: int) -> Properties:
    factor = min(3, brokers)
    # One replica may be down without a write with acks=all failing.
    in_sync = max(1, factor - 1)
    return {
        "default.replication.factor": factor,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": factor,
        "offsets.topic.num.partitions": 4,
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": in_sync,
        "transaction.state.log.num.partitions": 4,
        "share.coordinator.state.topic.replication.factor": factor,
        "share.coordinator.state.topic.min.isr": in_sync,
        "share.coordinator.state.topic.num.partitions": 4,
        "group.initial.rebalance.delay.ms": 0,
        "num.partitions": 2,
    }


def _sasl(listeners: Sequence[str], users: Mapping[str, str]) -> Properties:
    named = " ".join(f'user_{user}="{word}"' for user, word in users.items())
    modules = {
        "plain": f"plain.PlainLoginModule required {named};",
        "scram-sha-256": "scram.ScramLoginModule required;",
        "scram-sha-512": "scram.ScramLoginModule required;",
        "oauthbearer": "oauthbearer.OAuthBearerLoginModule required "
        'unsecuredLoginStringClaim_sub="broker";',
    }
    found: Properties = {}
    for listener in listeners:
        prefix = listener_prefix(listener)
        found[f"{prefix}sasl.enabled.mechanisms"] = ",".join(modules).upper()
        for mechanism, module in modules.items():
            found[f"{prefix}{mechanism}.sasl.jaas.config"] = f"{JAAS}.{module}"
    return found


def listener_prefix(listener: str) -> str:
    """Return how the names of a listener's own properties begin."""
    return f"listener.name.{listener.lower()}."


def _guards(plan: Plan) -> Properties:
    """Return what limits sessions and rights."""
    found: Properties = {}
    if plan.reauth_ms is not None:
        found["connections.max.reauth.ms"] = plan.reauth_ms
    if plan.acls:
        found["authorizer.class.name"] = _AUTHORIZERS.get(
            plan.release.short, _AUTHORIZER
        )
        # The clients of PLAINTEXT are the brokers, and tests that grant rights.
        found["super.users"] = "User:ANONYMOUS"
    if plan.delegation_tokens:
        # Its name before and since 2.8 (KIP-681).
        found["delegation.token.master.key"] = _TOKEN_KEY
        found["delegation.token.secret.key"] = _TOKEN_KEY
    return found


def _tls(tls: BrokerTlsFiles) -> Properties:
    return {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": tls.keystore,
        "ssl.keystore.password": tls.password,
        "ssl.key.password": tls.password,
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": tls.truststore,
        "ssl.truststore.password": tls.password,
        "listener.name.mtls.ssl.client.auth": "required",
        "ssl.principal.mapping.rules": PRINCIPAL_RULES,
    }


def _identity(plan: Plan, node_id: int) -> Properties:
    if plan.release.zookeeper:
        return {"broker.id": node_id}
    found: Properties = {
        "process.roles": "broker,controller",
        "node.id": node_id,
        "controller.listener.names": CONTROLLER,
    }
    # Then the voters are in the log of the metadata, and controllers are found by
    # address.
    if plan.dynamic_voters:
        addresses = [voter.partition("@")[2] for voter in plan.voters]
        found["controller.quorum.bootstrap.servers"] = ",".join(addresses)
    else:
        found["controller.quorum.voters"] = ",".join(plan.voters)
    return found


def server_properties(
    plan: Plan, node_id: int, ports: Mapping[str, int], data: Path
) -> Properties:
    """Return the properties of one node.

    Args:
        plan: What the cluster's nodes share.
        node_id: This node's id.
        ports: The port of each listener, on 127.0.0.1.
        data: The log directory.
    """
    at = {name: f"{name}://127.0.0.1:{port}" for name, port in ports.items()}
    secured = [name for name in ports if name in SASL_LISTENERS]
    found = _identity(plan, node_id) | {
        "inter.broker.listener.name": PLAINTEXT,
        "listeners": ",".join(at.values()),
        "advertised.listeners": ",".join(
            address for name, address in at.items() if name != CONTROLLER
        ),
        "listener.security.protocol.map": ",".join(
            f"{name}:{_PROTOCOLS[name]}" for name in ports
        ),
        "log.dirs": data,
    }
    found |= _replication(plan.brokers)
    if plan.rack:
        found |= {
            "broker.rack": f"r{node_id}",
            "replica.selector.class": _RACK_SELECTOR,
        }
    if plan.fast:
        # Before what the options ask for, which may contradict it.
        found |= FAST
    if plan.users is not None:
        found |= _sasl(secured, plan.users)
    if plan.tls is not None:
        found |= _tls(plan.tls)
    found |= _guards(plan)
    # Last: the user's properties override all others.
    return found | dict(plan.config or {})


def spell(properties: Mapping[str, Value]) -> str:
    """Return properties as the text Java reads; backslashes are doubled."""
    lines = []
    for key, value in properties.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        escaped = text.replace("\\", "\\\\").replace("\n", "\\n")
        lines.append(f"{key}={escaped}\n")
    return "".join(lines)
