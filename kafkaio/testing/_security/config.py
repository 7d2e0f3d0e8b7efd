"""Settings of the embedded broker's security."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from kafkaio._public import public
from kafkaio.testing._security.oauthbearer import VerifyToken, unsecured

_SUPER_USERS: Final = "super.users"
_ALLOW: Final = "allow.everyone.if.no.acl.found"
#: Configs that Kafka's authorizer reads, which are none of the broker itself.
AUTHORIZER_CONFIGS: Final = frozenset({_SUPER_USERS, _ALLOW})

#: Every mechanism that the embedded broker has, in the order in which Kafka lists them.
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-512", "SCRAM-SHA-256", "OAUTHBEARER")
_DAY_MS: Final = 86_400_000


@public("kafkaio.testing")
@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityConfig:
    """Settings of authentication and rights of an embedded broker.

    Attributes:
        mechanisms: the SASL mechanisms that are on.
        iterations: how often SCRAM hashes a password (Kafka takes 4,096 or more).
        verify_token: verifies a token of OAUTHBEARER: takes it, returns its
            `TokenClaims`, raises ValueError to refuse it. By default, tokens need no
            signature.
        token_skew: seconds for which a token is still taken after its end; its session
            is over at once (sasl.oauthbearer.clock.skew.seconds; 30 in a real Kafka
            that verifies signatures).
        refusal_delay: seconds until a refusal is told and the connection closed. A
            real Kafka takes 0.3 (connection.failed.authentication.delay.ms).
        max_receive_bytes: the largest request before a client has authenticated
            (sasl.server.max.receive.size).
        principal_rules: rules that make the principal of a certificate's subject
            (ssl.principal.mapping.rules).
        delegation_tokens: whether there are delegation tokens (KIP-48).
        token_max_life_ms: how long a delegation token can live, however often it is
            renewed (delegation.token.max.lifetime.ms).
        token_expiry_ms: how long it lives if it is not renewed
            (delegation.token.expiry.time.ms).
        super_users: the principals that ACLs do not concern (super.users); by default
            the clients of a listener without authentication.
        allow_if_no_acl: whether everybody may use a resource that no ACL covers
            (allow.everyone.if.no.acl.found).
    """

    mechanisms: tuple[str, ...] = MECHANISMS
    iterations: int = 4096
    verify_token: VerifyToken = unsecured
    token_skew: float = 0.0
    refusal_delay: float = 0.3
    max_receive_bytes: int = 524_288
    principal_rules: str = "DEFAULT"
    delegation_tokens: bool = True
    token_max_life_ms: int = 7 * _DAY_MS
    token_expiry_ms: int = _DAY_MS
    super_users: tuple[str, ...] = ("User:ANONYMOUS",)
    allow_if_no_acl: bool = False

    def with_configs(self, configs: Mapping[str, str]) -> SecurityConfig:
        """Return these settings with the authorizer's configs, which take precedence.

        Args:
            configs: configs of a broker, by Kafka's names.

        Raises:
            ValueError: a config has a value that Kafka does not accept.
        """
        changes: dict[str, Any] = {}
        if _SUPER_USERS in configs:
            changes["super_users"] = _principals(configs[_SUPER_USERS])
        if _ALLOW in configs:
            text = configs[_ALLOW].lower()
            if text not in {"true", "false"}:
                raise ValueError(f"{_ALLOW}={configs[_ALLOW]}: must be true or false")
            changes["allow_if_no_acl"] = text == "true"
        return replace(self, **changes)

    def __post_init__(self) -> None:
        for name in self.mechanisms:
            if name not in MECHANISMS:
                known = ", ".join(MECHANISMS)
                raise ValueError(f"mechanism {name!r}: must be one of {known}")


def _principals(text: str) -> tuple[str, ...]:
    """Read ``super.users``: principals with semicolons between them.

    Raises:
        ValueError: one of them has no type.
    """
    found = tuple(one.strip() for one in text.split(";") if one.strip())
    for principal in found:
        kind, colon, name = principal.partition(":")
        if not (kind and colon and name):
            raise ValueError(
                f"{_SUPER_USERS}={text}: {principal!r} is not of the form User:NAME"
            )
    return found


def reauth_ms_of(
    reauth_ms: int | Mapping[str, int], listener: str, mechanism: str
) -> int:
    """The longest session of a mechanism on a listener; 0 for no limit.

    The most exact key of a mapping counts: ``"SASL.PLAIN"``, ``"PLAIN"``, ``"SASL"``.
    """
    if isinstance(reauth_ms, int):
        return reauth_ms
    for key in (f"{listener}.{mechanism}", mechanism, listener):
        if key in reauth_ms:
            return reauth_ms[key]
    return 0
