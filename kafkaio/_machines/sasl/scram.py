"""SCRAM: a password that is proven on both sides and not sent (RFC 5802, RFC 7677).

::

    client  n,,n=user,r=nonce
    broker  r=nonce+more,s=salt,i=iterations
    client  c=biws,r=nonce+more,p=proof
    broker  v=signature of the broker

The broker's signature proves that it knows the password, too. As in Kafka's own client,
user and password are taken as UTF-8 as they are, without SASLprep (RFC 4013).

The keys derived from a password take thousands of hashes, and are the same for each
connection: `SaltedPasswords` keeps them. A broker names the number of iterations, so it
is bounded below, against guessing, and above, against an attack on the client's time.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kafkaio._machines.sasl.mechanism import Outcome, has_surrogates
from kafkaio._named_tuple import NamedTuple
from kafkaio.errors import AuthenticationError, ConfigurationError, ProtocolError

#: The least number of iterations that RFC 7677 allows, and Kafka's own client takes.
LEAST_ITERATIONS: Final = 4_096
#: Iterations that are done at once; more take over 30 ms, and are done in a thread.
QUICK_ITERATIONS: Final = 50_000
#: The most bytes of a broker's message.
_LONGEST_MESSAGE: Final = 4_096
_LONGEST_NONCE: Final = 1_024
_LONGEST_SALT: Final = 1_024
#: How many derived keys are kept.
_MOST_KEYS: Final = 100
#: The header of the exchange, which binds no TLS channel, in Base64.
_NO_BINDING: Final = "n,,"
_HASHES: Final[Mapping[str, str]] = MappingProxyType(
    {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
)


class Keys(NamedTuple):
    """The keys derived from a password, a salt and a number of iterations."""

    client: bytes
    server: bytes

    def __repr__(self) -> str:
        return "<Keys>"


def salted_password(name: str, password: str, salt: bytes, iterations: int) -> bytes:
    """Hash a password as ``Hi`` of RFC 5802 does.

    Args:
        name: ``SCRAM-SHA-256`` or ``SCRAM-SHA-512``.
        password: the password.
        salt: random bytes.
        iterations: how often; 10,000 take about 5 ms.
    """
    return hashlib.pbkdf2_hmac(_HASHES[name], password.encode(), salt, iterations)


class SaltedPasswords:
    """Keys that were derived before, for all connections of a client.

    The oldest are forgotten where a cluster has many salts.
    """

    __slots__ = ("_keys",)

    def __init__(self) -> None:
        self._keys: dict[tuple[str, str, bytes, int], Keys] = {}

    def __repr__(self) -> str:
        return f"<SaltedPasswords {len(self._keys)}>"

    def get(self, name: str, user: str, salt: bytes, iterations: int) -> Keys | None:
        """The keys of a mechanism and user, if they were derived before."""
        return self._keys.get((name, user, salt, iterations))

    def put(self, name: str, user: str, salt: bytes, iterations: int, k: Keys) -> None:
        """Keep keys."""
        while len(self._keys) >= _MOST_KEYS:
            del self._keys[next(iter(self._keys))]
        self._keys[name, user, salt, iterations] = k


class Scram:
    """One authentication by SCRAM.

    Args:
        name: ``SCRAM-SHA-256`` or ``SCRAM-SHA-512``.
        username: the user, or the id of a delegation token.
        password: its password, or the HMAC of the token in Base64.
        nonce: random printable ASCII without a comma; a new one for each exchange.
        max_iterations: the most iterations to do for the broker.
        salted: keys that were derived before.
        is_delegation_token: whether the user is a delegation token (KIP-48).

    Raises:
        ConfigurationError: user or password is empty, or cannot be encoded.
    """

    is_single: Final = False
    __slots__ = (
        "_auth_message",
        "_first_bare",
        "_hash",
        "_is_token",
        "_max_iterations",
        "_nonce",
        "_password",
        "_salted",
        "_signature",
        "_username",
        "name",
    )

    def __init__(  # noqa: PLR0913 - the credentials, and what bounds them
        self,
        name: str,
        username: str,
        password: str,
        *,
        nonce: str,
        max_iterations: int,
        salted: SaltedPasswords,
        is_delegation_token: bool = False,
    ) -> None:
        for what, text in (("sasl_username", username), ("sasl_password", password)):
            if not text or has_surrogates(text):
                raise ConfigurationError(f"{what} is empty, or not Unicode text")
        self.name = name
        self._hash = _HASHES[name]
        self._username = username
        self._password = password
        self._nonce = nonce
        self._max_iterations = max_iterations
        self._salted = salted
        self._is_token = is_delegation_token
        self._first_bare = ""
        self._auth_message = b""
        # The broker's last answer must be this; None until the proof is made.
        self._signature: bytes | None = None

    def __repr__(self) -> str:
        return f"<Scram {self.name}>"

    def begin(self) -> Outcome:
        """See `MechanismPort`."""
        name = self._username.replace("=", "=3D").replace(",", "=2C")
        extension = ",tokenauth=true" if self._is_token else ""
        self._first_bare = f"n={name},r={self._nonce}{extension}"
        return f"{_NO_BINDING}{self._first_bare}".encode()

    def receive(self, challenge: bytes) -> Outcome:
        """See `MechanismPort`."""
        if len(challenge) > _LONGEST_MESSAGE:
            raise ProtocolError(f"a SCRAM message of {len(challenge)} bytes")
        try:
            text = bytes(challenge).decode()
        except UnicodeDecodeError:
            raise ProtocolError("a SCRAM message is not UTF-8") from None
        if text.startswith("e="):
            reason = text[2:].partition(",")[0]
            raise AuthenticationError(f"the broker refuses: {reason}", reason=reason)
        if self._signature is not None:
            return self._take_signature(text)
        return self._take_salt(text)

    # ---- the broker's first message --------------------------------------------------

    def _take_salt(self, text: str) -> Outcome:
        given = _attributes(text, "rsi")
        nonce, salt = given["r"], _decoded(given["s"], "salt")
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise AuthenticationError(
                "the broker's nonce does not extend the client's: it may be an answer "
                "from another exchange"
            )
        if len(nonce) > _LONGEST_NONCE or not 0 < len(salt) <= _LONGEST_SALT:
            raise ProtocolError("the nonce or the salt has an impossible length")
        iterations = self._iterations(given["i"])
        without_proof = f"c={_encoded(_NO_BINDING.encode())},r={nonce}"
        auth_message = f"{self._first_bare},{text},{without_proof}".encode()
        keys = self._salted.get(self.name, self._username, salt, iterations)

        def prove() -> bytes:
            known = keys or self._derive(salt, iterations)
            return self._final(known, auth_message, without_proof)

        return prove() if keys or iterations <= QUICK_ITERATIONS else prove

    def _iterations(self, text: str) -> int:
        # A number of ten digits is over every limit, and int() of more takes long.
        if not (text.isascii() and text.isdigit() and len(text) <= 10):
            raise ProtocolError("the number of iterations is none")
        number = int(text)
        if number < LEAST_ITERATIONS:
            raise AuthenticationError(
                f"the broker asks for {number} iterations: fewer than "
                f"{LEAST_ITERATIONS} make the password easy to guess"
            )
        if number > self._max_iterations:
            raise AuthenticationError(
                f"the broker asks for {number} iterations, and "
                f"sasl_scram_max_iterations allows {self._max_iterations}"
            )
        return number

    def _derive(self, salt: bytes, iterations: int) -> Keys:
        salted = salted_password(self.name, self._password, salt, iterations)
        keys = Keys(
            self._hmac(salted, b"Client Key"), self._hmac(salted, b"Server Key")
        )
        self._salted.put(self.name, self._username, salt, iterations, keys)
        return keys

    def _final(self, keys: Keys, auth_message: bytes, without_proof: str) -> bytes:
        stored = hashlib.new(self._hash, keys.client).digest()
        signature = self._hmac(stored, auth_message)
        proof = bytes(a ^ b for a, b in zip(keys.client, signature, strict=True))
        self._signature = self._hmac(keys.server, auth_message)
        return f"{without_proof},p={_encoded(proof)}".encode()

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash)

    # ---- its last message ------------------------------------------------------------

    def _take_signature(self, text: str) -> Outcome:
        signature = _decoded(_attributes(text, "v")["v"], "signature")
        assert self._signature is not None
        if not hmac.compare_digest(signature, self._signature):
            raise AuthenticationError(
                "the broker's signature is wrong: it does not know the password, so it "
                "is not the broker that it seems to be"
            )
        return None


def _attributes(text: str, names: str) -> dict[str, str]:
    """Read the attributes that have to come first, in their order.

    Others may follow: extensions that the client need not know. One that comes before
    them must be understood (``m=``), and none is.
    """
    parts = text.split(",")
    found = {
        name: part[2:]
        for name, part in zip(names, parts, strict=False)
        if part.startswith(f"{name}=")
    }
    if len(found) < len(names):
        raise ProtocolError(
            f"a SCRAM message has not the attributes {', '.join(names)}"
        )
    return found


def _encoded(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def _decoded(text: str, what: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (Base64Error, ValueError):
        raise ProtocolError(f"the {what} is not Base64") from None
