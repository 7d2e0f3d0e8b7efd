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
#: No listener of Kafka: the port at which a node's Java serves metrics.
JMX: Final = "JMX"
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
_JAAS: Final = "org.apache.kafka.common.security"
_KERBEROS: Final = "com.sun.security.auth.module.Krb5LoginModule"
#: A name without its realm, as by default; old releases do not find the default realm
#: on a new Java.
_NAME_RULES: Final = "RULE:[1:$1],RULE:[2:$1],DEFAULT"
_TOKEN_VALIDATOR: Final = f"{_JAAS}.oauthbearer.OAuthBearerValidatorCallbackHandler"
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
    "zookeeper.session.timeout.ms": 2000,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """The files of a broker's TLS keys and certificates, in PKCS12."""

    keystore: Path
    truststore: Path
    password: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRules:
    """What brokers demand of a signed token (RFC 7519).

    Attributes:
        keys: The file with the public keys (JWKS, RFC 7517).
        issuer: Its claim ``iss``.
        audience: A part of its claim ``aud``.
    """

    keys: Path
    issuer: str
    audience: str

    @property
    def keys_url(self) -> str:
        """The file as an address."""
        return self.keys.as_uri()


@dataclass(frozen=True, slots=True, kw_only=True)
class KerberosService:
    """What a broker is for Kerberos (RFC 4120).

    Attributes:
        principal: ``kafka/HOST@REALM``; clients reach brokers by that host.
        keytab: The file with its keys.
    """

    principal: str
    keytab: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The settings that all nodes of a cluster share.

    Attributes:
        release: The Kafka release.
        voters: ``id@host:port`` of every controller; empty with ZooKeeper.
        dynamic_voters: Nodes find controllers there, and these say who is a voter.
        zookeeper: ``host:port`` of ZooKeeper; empty in KRaft mode.
        brokers: How many brokers there are.
        users: SASL users and passwords; None means no SASL.
        tls: The TLS files; None means no TLS.
        reauth_ms: The longest session of a SASL connection, in milliseconds.
        acls: Check rights by Kafka's authorizer.
        delegation_tokens: Let clients make delegation tokens.
        token_rules: What a signed token must be for OAUTHBEARER; None means that
            tokens are not signed.
        kerberos: The brokers' principal for GSSAPI; None means no GSSAPI.
        rack: Each node is a rack of its own, and followers serve fetches.
        fast: Use the quick timers of ``FAST``.
        config: Properties that override all others.
    """

    release: Release
    voters: Sequence[str] = ()
    dynamic_voters: bool = False
    zookeeper: str = ""
    brokers: int = 1
    users: Mapping[str, str] | None = None
    tls: Tls | None = None
    reauth_ms: int | None = None
    acls: bool = False
    delegation_tokens: bool = False
    token_rules: TokenRules | None = None
    kerberos: KerberosService | None = None
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


def _sasl(listeners: Sequence[str], plan: Plan) -> Properties:
    rules = plan.token_rules
    users = (plan.users or {}).items()
    named = " ".join(f'user_{user}="{word}"' for user, word in users)
    modules = {
        "plain": f"plain.PlainLoginModule required {named};",
        "scram-sha-256": "scram.ScramLoginModule required;",
        "scram-sha-512": "scram.ScramLoginModule required;",
        "oauthbearer": "oauthbearer.OAuthBearerLoginModule required"
        + ("" if rules else ' unsecuredLoginStringClaim_sub="broker"')
        + ";",
    }
    enabled = [*modules, "gssapi"] if plan.kerberos else list(modules)
    found: Properties = {}
    for listener in listeners:
        prefix = f"listener.name.{listener.lower()}."
        found[f"{prefix}sasl.enabled.mechanisms"] = ",".join(enabled).upper()
        for mechanism, module in modules.items():
            found[f"{prefix}{mechanism}.sasl.jaas.config"] = f"{_JAAS}.{module}"
        if rules is not None:
            oauth = f"{prefix}oauthbearer.sasl"
            found |= {
                f"{oauth}.server.callback.handler.class": _TOKEN_VALIDATOR,
                f"{oauth}.oauthbearer.jwks.endpoint.url": rules.keys_url,
                f"{oauth}.oauthbearer.expected.issuer": rules.issuer,
                f"{oauth}.oauthbearer.expected.audience": rules.audience,
            }
    return found


def _kerberos(listeners: Sequence[str], service: KerberosService) -> Properties:
    """Return what adds GSSAPI to listeners; their other mechanisms stay."""
    login = (
        f"{_KERBEROS} required useKeyTab=true storeKey=true "
        f'keyTab="{service.keytab}" principal="{service.principal}";'
    )
    found: Properties = {
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal.to.local.rules": _NAME_RULES,
    }
    for listener in listeners:
        found[f"listener.name.{listener.lower()}.gssapi.sasl.jaas.config"] = login
    return found


def _guards(plan: Plan) -> Properties:
    """Return what limits sessions and rights."""
    found: Properties = {}
    if plan.reauth_ms is not None:
        found["connections.max.reauth.ms"] = plan.reauth_ms
    if plan.acls:
        found["authorizer.class.name"] = _AUTHORIZERS.get(
            plan.release.short, _AUTHORIZER
        )
        # Who comes by PLAINTEXT: the brokers, and tests that grant rights.
        found["super.users"] = "User:ANONYMOUS"
    if plan.delegation_tokens:
        # Its name before and since 2.8 (KIP-681).
        found["delegation.token.master.key"] = _TOKEN_KEY
        found["delegation.token.secret.key"] = _TOKEN_KEY
    return found


def _tls(tls: Tls) -> Properties:
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
        return {
            "broker.id": node_id,
            "zookeeper.connect": plan.zookeeper,
            "zookeeper.connection.timeout.ms": 20000,
        }
    found: Properties = {
        "process.roles": "broker,controller",
        "node.id": node_id,
        "controller.listener.names": CONTROLLER,
    }
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
    secured = [name for name in ports if name in {SASL, SASL_SSL}]
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
        found |= FAST
    if plan.users is not None:
        found |= _sasl(secured, plan)
    if plan.kerberos is not None:
        found |= _kerberos(secured, plan.kerberos)
    if plan.tls is not None:
        found |= _tls(plan.tls)
    found |= _guards(plan)
    return found | dict(plan.config or {})


def zookeeper_properties(port: int, data: Path) -> Properties:
    """Return the configuration of a lone ZooKeeper on 127.0.0.1."""
    return {
        "dataDir": data,
        "clientPort": port,
        "clientPortAddress": "127.0.0.1",
        "maxClientCnxns": 0,
        "tickTime": 500,
        "admin.enableServer": "false",
    }


def spell(properties: Mapping[str, Value]) -> str:
    """Return properties as the text Java reads; backslashes are doubled."""
    lines = []
    for key, value in properties.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        escaped = text.replace("\\", "\\\\").replace("\n", "\\n")
        lines.append(f"{key}={escaped}\n")
    return "".join(lines)
