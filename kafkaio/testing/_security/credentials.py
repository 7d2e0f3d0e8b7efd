"""Users and their SCRAM credentials (RFC 5802), which a test can change at run time.

A user with a password can log in by PLAIN and by both kinds of SCRAM. As in Kafka, what
is kept for SCRAM is not the password but what verifies it. It is derived when it is
first needed, because that takes some milliseconds.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from kafkaio._public import public
from kafkaio._runtime.clock import random_uuid

#: The hash function of each kind of SCRAM.
HASHES: Final[Mapping[str, str]] = {
    "SCRAM-SHA-256": "sha256",
    "SCRAM-SHA-512": "sha512",
}
#: The numbers of the kinds of SCRAM in Kafka's protocol.
MECHANISM_NUMBERS: Final[Mapping[int, str]] = {
    1: "SCRAM-SHA-256",
    2: "SCRAM-SHA-512",
}


@dataclass(frozen=True, slots=True)
class StoredScramCredential:
    """The stored form of a password (RFC 5802, section 3).

    Attributes:
        salt: the salt.
        iterations: how often the password is hashed.
        stored_key: the hash of the client's key.
        server_key: signs what the server says.
    """

    salt: bytes = field(repr=False)
    iterations: int
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)

    @classmethod
    def of_password(
        cls, mechanism: str, password: str, iterations: int
    ) -> StoredScramCredential:
        """Derive it from a password, with a new salt."""
        salt = random_uuid().bytes
        # Hi() of RFC 5802 is PBKDF2 with HMAC.
        salted = hashlib.pbkdf2_hmac(
            HASHES[mechanism], password.encode(), salt, iterations
        )
        return cls.of_salted(mechanism, salt, iterations, salted)

    @classmethod
    def of_salted(
        cls, mechanism: str, salt: bytes, iterations: int, salted: bytes
    ) -> StoredScramCredential:
        """Derive it from a password that was salted by the client (KIP-554)."""
        name = HASHES[mechanism]
        client_key = hmac.digest(salted, b"Client Key", name)
        stored_key = hashlib.new(name, client_key).digest()
        server_key = hmac.digest(salted, b"Server Key", name)
        return cls(salt, iterations, stored_key, server_key)


@public("kafkaio.testing")
class Credentials:
    """The users of a cluster. What a test changes holds from the next authentication.

    Connections that have authenticated stay as they are, as in Kafka.

    Args:
        users: passwords by name.
        iterations: how often SCRAM hashes a password, if not said otherwise.
    """

    def __init__(self, users: Mapping[str, str], iterations: int) -> None:
        self._iterations = iterations
        self._passwords: dict[str, str] = {}
        self._derived: dict[tuple[str, str], StoredScramCredential] = {}
        # Credentials that are still to be derived: password and iterations.
        self._pending: dict[tuple[str, str], tuple[str, int]] = {}
        for name, password in users.items():
            self.add_user(name, password)

    def __repr__(self) -> str:
        return f"<Credentials of {sorted(self._passwords)}>"

    def add_user(
        self, name: str, password: str, *, iterations: int | None = None
    ) -> None:
        """Add a user, or give one another password.

        Args:
            name: the user.
            password: its password.
            iterations: how often SCRAM hashes it; None for the cluster's number.
        """
        self._passwords[name] = password
        for mechanism in HASHES:
            self._derived.pop((name, mechanism), None)
            # Derived at the first login, which most tests never make.
            self._pending[name, mechanism] = (password, iterations or self._iterations)

    def remove_user(self, name: str) -> None:
        """Remove a user. Nothing happens if there is none of this name."""
        self._passwords.pop(name, None)
        for mechanism in HASHES:
            self.delete(name, mechanism)

    def is_password(self, name: str, password: str) -> bool:
        """Whether a user has this password, for PLAIN."""
        known = self._passwords.get(name)
        # In constant time, as secrets are compared.
        return known is not None and hmac.compare_digest(
            known.encode(), password.encode()
        )

    def get(self, name: str, mechanism: str) -> StoredScramCredential | None:
        """The credential of a user for a SCRAM mechanism; None without one."""
        key = (name, mechanism)
        pending = self._pending.pop(key, None)
        if pending is not None:
            self._derived[key] = StoredScramCredential.of_password(mechanism, *pending)
        return self._derived.get(key)

    def put(self, name: str, mechanism: str, credential: StoredScramCredential) -> None:
        """Let a user log in by a kind of SCRAM."""
        self.delete(name, mechanism)
        self._derived[name, mechanism] = credential

    def delete(self, name: str, mechanism: str) -> bool:
        """No longer let a user log in by a kind of SCRAM; return whether it could."""
        key = (name, mechanism)
        was_pending = self._pending.pop(key, None) is not None
        return self._derived.pop(key, None) is not None or was_pending

    def scram_users(self) -> Iterator[tuple[str, dict[str, int]]]:
        """The users with SCRAM, sorted: the iterations by mechanism."""
        iterations = {key: count for key, (_, count) in self._pending.items()}
        iterations |= {key: one.iterations for key, one in self._derived.items()}
        for name in sorted({name for name, _ in iterations}):
            yield (
                name,
                {
                    mechanism: iterations[name, mechanism]
                    for mechanism in HASHES
                    if (name, mechanism) in iterations
                },
            )
