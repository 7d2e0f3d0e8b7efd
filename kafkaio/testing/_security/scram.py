"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), the server's side.

As Kafka, it takes no channel binding, and knows one extension, ``tokenauth``, with
which a delegation token's id and HMAC are user and password (KIP-48).
"""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Final, TypeAlias

from kafkaio._runtime.clock import random_uuid
from kafkaio.testing._security.credentials import HASHES, StoredScramCredential
from kafkaio.testing._security.mechanism import Broken, Refused, SaslIdentity

#: Finds the credential for a user name or, if the flag is set, for a token's id, and
#: who that is; None if there is none.
Lookup: TypeAlias = Callable[
    [str, bool], tuple[StoredScramCredential, SaslIdentity] | None
]

_NAME: Final = r"(?:[^=,\0]|=2C|=3D)+"
_NONCE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64: Final = r"[A-Za-z0-9+/]*={0,2}"
_EXTENSIONS: Final = r"(?:,[A-Za-z]+=[^,\0]+)*"
_CLIENT_FIRST: Final = re.compile(
    rf"n,(?:a=(?P<authorized>{_NAME}))?,"
    rf"(?P<bare>(?:m=[^,\0]+,)?n=(?P<name>{_NAME}),r=(?P<nonce>{_NONCE})"
    rf"(?P<extensions>{_EXTENSIONS}))"
)
_CLIENT_FINAL: Final = re.compile(
    rf"(?P<unproven>c={_BASE64},r=(?P<nonce>{_NONCE}){_EXTENSIONS}),"
    rf"p=(?P<proof>{_BASE64})"
)
_EXTENSION: Final = ",tokenauth=true"


class ScramServer:
    """One authentication by SCRAM; a ServerMechanism.

    Args:
        name: the mechanism's name.
        find: finds the credential.
    """

    def __init__(self, name: str, find: Lookup) -> None:
        self.identity: SaslIdentity | None = None
        self._hash = HASHES[name]
        self._find = find
        self._credential: StoredScramCredential | None = None
        self._claimed: SaslIdentity | None = None
        # The messages of both sides so far, which the proofs sign.
        self._nonce = ""
        self._said = ""

    def evaluate(self, message: bytes) -> bytes:
        """See ServerMechanism."""
        try:
            text = message.decode()
        except UnicodeDecodeError:
            raise Refused from None
        # Without a credential it is the first message: an unknown user is refused in
        # it, as in Kafka.
        if self._credential is None:
            return self._first(text)
        return self._final(text, self._credential)

    def _first(self, text: str) -> bytes:
        found = _CLIENT_FIRST.fullmatch(text)
        if found is None:
            raise Refused
        name = found["name"].replace("=2C", ",").replace("=3D", "=")
        known = self._find(name, _EXTENSION in found["extensions"].lower())
        if known is None:
            raise Refused
        # After the user was found: a stranger does not learn more than that.
        if found["authorized"] not in {None, found["name"]}:
            raise Refused(
                "Authentication failed: Client requested an authorization id that is"
                " different from username"
            )
        self._credential, self._claimed = known
        # The client proves that it has seen this part, so that no message can be
        # replayed.
        self._nonce = found["nonce"] + random_uuid().hex
        salt = b64encode(self._credential.salt).decode()
        first = f"r={self._nonce},s={salt},i={self._credential.iterations}"
        self._said = f"{found['bare']},{first}"
        return first.encode()

    def _final(self, text: str, credential: StoredScramCredential) -> bytes:
        found = _CLIENT_FINAL.fullmatch(text)
        if found is None or found["nonce"] != self._nonce:
            raise Refused
        said = f"{self._said},{found['unproven']}".encode()
        signature = hmac.digest(credential.stored_key, said, self._hash)
        try:
            proof = b64decode(found["proof"], validate=True)
        except ValueError:
            raise Refused from None
        if len(proof) != len(signature):
            # Kafka fails with an error that it did not expect.
            raise Broken
        # The password is not stored: the proof gives the client's key, whose hash is
        # (RFC 5802).
        client_key = bytes(a ^ b for a, b in zip(signature, proof, strict=True))
        stored = hashlib.new(self._hash, client_key).digest()
        if not hmac.compare_digest(stored, credential.stored_key):
            raise Refused
        self.identity = self._claimed
        # The server proves in turn that it knows the credential.
        own = hmac.digest(credential.server_key, said, self._hash)
        return b"v=" + b64encode(own)
