"""The security of an embedded broker, which its nodes share.

Users, delegation tokens, ACLs, and how often clients have authenticated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kafkaio._public import public
from kafkaio.testing._security.acls import AclStore
from kafkaio.testing._security.config import SecurityConfig, reauth_ms_of
from kafkaio.testing._security.credentials import (
    HASHES,
    Credentials,
    StoredScramCredential,
)
from kafkaio.testing._security.mechanism import SaslIdentity, ServerMechanismPort
from kafkaio.testing._security.oauthbearer import OAuthServer
from kafkaio.testing._security.plain import PlainServer
from kafkaio.testing._security.principals import PrincipalRules
from kafkaio.testing._security.scram import Lookup, ScramServer
from kafkaio.testing._security.session import Authentications, SaslSession
from kafkaio.testing._security.tokens import DelegationTokens


@public("kafkaio.testing")
class Security:
    """The security of a cluster; the Realm of its sessions.

    Args:
        config: its settings.
        users: passwords by name.
        reauth_ms: the longest session in milliseconds, 0 for no limit; or such numbers
            by listener, by mechanism, or by both (``"SASL.PLAIN"``).
        now: returns seconds on a monotonic clock.
        wall_ms: returns milliseconds since the Unix epoch.
        has_acls: whether rights are checked.

    Attributes:
        config: its settings.
        credentials: its users.
        tokens: its delegation tokens.
        authentications: counts what happened.
        principal_rules: make the principals of client certificates.
        acls: who may do what; None if rights are not checked.
    """

    def __init__(
        self,
        config: SecurityConfig,
        users: Mapping[str, str],
        reauth_ms: int | Mapping[str, int],
        now: Callable[[], float],
        wall_ms: Callable[[], int],
        *,
        has_acls: bool = False,
    ) -> None:
        self.config = config
        self.credentials: Credentials = Credentials(users, config.iterations)
        self.tokens: DelegationTokens = DelegationTokens(
            config.token_max_life_ms, config.token_expiry_ms, wall_ms
        )
        self.authentications: Authentications = Authentications()
        self.principal_rules: PrincipalRules = PrincipalRules(config.principal_rules)
        self.acls: AclStore | None = None
        # Without ACLs everybody may do everything, and nothing is looked up.
        if has_acls:
            self.acls = AclStore(
                config.super_users, allow_if_none=config.allow_if_no_acl
            )
        self._reauth_ms = reauth_ms
        self._now = now
        self._wall_ms = wall_ms

    def session(self, listener: str) -> SaslSession:
        """Begin the authentication of a connection to a SASL listener."""

        def limit(mechanism: str) -> int:
            return reauth_ms_of(self._reauth_ms, listener, mechanism)

        return SaslSession(self, limit)

    # ---- what sessions need ------------------------------------------------------

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """See Realm."""
        return self.config.mechanisms

    def now(self) -> float:
        """See Realm."""
        return self._now()

    def wall_ms(self) -> int:
        """See Realm."""
        return self._wall_ms()

    def mechanism(self, name: str) -> ServerMechanismPort:
        """See Realm."""
        if name in HASHES:
            return ScramServer(name, self._lookup(name))
        if name == "PLAIN":
            return PlainServer(self.credentials.is_password)
        skew_ms = round(self.config.token_skew * 1000)
        return OAuthServer(self.config.verify_token, self.wall_ms, skew_ms)

    def _lookup(self, mechanism: str) -> Lookup:
        def find(
            name: str,
            is_token: bool,  # noqa: FBT001  (called by place)
        ) -> tuple[StoredScramCredential, SaslIdentity] | None:
            if is_token:
                return self.tokens.credential(name, mechanism)
            credential = self.credentials.get(name, mechanism)
            return None if credential is None else (credential, SaslIdentity(name))

        return find
