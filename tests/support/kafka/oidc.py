"""An issuer of signed bearer tokens, and a token endpoint, for tests (RFC 7519, 6749).

Brokers read the public keys of an `Issuer` from a file, so that no server has to run
for them. A `TokenEndpoint` is what a client asks for tokens over HTTP.
"""

import base64
import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeAlias
from urllib.parse import parse_qs, unquote_plus

from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

from kafkaio.testing.kafka._launcher import Launcher
from kafkaio.testing.kafka._options import ClusterOptions
from kafkaio.testing.kafka._properties import JAAS, Properties, listener_prefix
from kafkaio.testing.kafka._sidecar import Sidecar
from kafkaio.types import Token

_ISSUER: Final = "https://issuer.test"
_AUDIENCE: Final = "kafka"
_KEY_BITS: Final = 2048
_PRINCIPAL: Final = "sub"

Claim: TypeAlias = str | int | float | list[str] | None


_VALIDATOR: Final = f"{JAAS}.oauthbearer.OAuthBearerValidatorCallbackHandler"
_ALLOWED_URLS: Final = "org.apache.kafka.sasl.oauthbearer.allowed.urls"


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


class Issuer:
    """Signs tokens by a key of its own.

    Args:
        directory: Where its public keys are written; made if missing.

    Attributes:
        rules: What brokers demand of its tokens.
    """

    def __init__(self, directory: Path):
        directory.mkdir(parents=True, exist_ok=True)
        keys = directory / "keys.json"
        self.rules: TokenRules = TokenRules(
            keys=keys, issuer=_ISSUER, audience=_AUDIENCE
        )
        self._key = _new_key("kafkaio-testing")
        public = KeySet([self._key]).as_dict(private=False)
        keys.write_text(json.dumps(public), "utf-8")

    def token(
        self, subject: str, *, lifetime: float = 3600.0, **claims: Claim
    ) -> Token:
        """Return a token.

        Args:
            subject: The principal, without ``User:``.
            lifetime: Seconds until it ends; it has ended if it is negative.
            **claims: Claims that take the place of the usual ones; None leaves one
                out.
        """
        return self._signed(self._key, subject, lifetime, claims)

    def foreign_token(self, subject: str, *, lifetime: float = 3600.0) -> Token:
        """Return a token like `token`, signed by a key that no broker knows."""
        return self._signed(_new_key("unknown"), subject, lifetime, {})

    def _signed(
        self, key: RSAKey, subject: str, lifetime: float, claims: Mapping[str, Claim]
    ) -> Token:
        now = time.time_ns() / 1e9
        end = now + lifetime
        content = {
            "iss": self.rules.issuer,
            "aud": self.rules.audience,
            _PRINCIPAL: subject,
            "iat": int(min(now, end - 1)),
            "exp": int(end),
            **claims,
        }
        given = {name: value for name, value in content.items() if value is not None}
        header = {"alg": "RS256", "kid": key.kid}
        value = jwt.encode(header, given, key, algorithms=["RS256"])
        return Token(value=value, expires=int(end), principal=subject)

    def endpoint(
        self, clients: Mapping[str, str], *, lifetime: float = 3600.0
    ) -> "TokenEndpoint":
        """Return a token endpoint for clients with secrets (client credentials).

        Args:
            clients: Secrets by client id; the id is the principal.
            lifetime: Of its tokens, in seconds.
        """
        return TokenEndpoint(self, clients, lifetime)


class TokenEndpoint:
    """An HTTP server on 127.0.0.1 that gives tokens; a context manager.

    It knows the grant ``client_credentials`` with HTTP's basic authentication or with
    the secret in the form (RFC 6749, section 4.4).

    Args:
        issuer: Signs the tokens.
        clients: Secrets by client id.
        lifetime: Of the tokens, in seconds.

    Attributes:
        asked: How often it was asked.
        scopes: The scope of each request that was answered with a token.
    """

    def __init__(self, issuer: Issuer, clients: Mapping[str, str], lifetime: float):
        self.asked: int = 0
        self.scopes: list[str] = []
        self._issuer = issuer
        self._clients = dict(clients)
        self._lifetime = lifetime
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="token endpoint", daemon=True
        )

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/token"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def revoke(self, client: str) -> None:
        """Refuse a client from now on."""
        del self._clients[client]

    def answer(self, authorization: str, form: Mapping[str, str]) -> dict[str, object]:
        """Return the answer to a request, with ``error`` if it is refused.

        Args:
            authorization: The header of that name, or nothing.
            form: The fields of the body.
        """
        self.asked += 1
        if form.get("grant_type") != "client_credentials":
            return {"error": "unsupported_grant_type"}
        client = form.get("client_id", "")
        secret = form.get("client_secret", "")
        if authorization.startswith("Basic "):
            pair = base64.b64decode(authorization.removeprefix("Basic ")).decode()
            client, _, secret = (unquote_plus(part) for part in pair.partition(":"))
        if not secret or self._clients.get(client) != secret:
            return {"error": "invalid_client", "error_description": "no such client"}
        self.scopes.append(form.get("scope", ""))
        token = self._issuer.token(client, lifetime=self._lifetime)
        return {
            "access_token": token.value,
            "token_type": "Bearer",
            "expires_in": int(self._lifetime),
        }

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        endpoint = self

        class _TokenHandler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers.get("Content-Length", "0"))
                fields = parse_qs(self.rfile.read(size).decode())
                form = {name: values[0] for name, values in fields.items()}
                given = self.headers.get("Authorization", "")
                answer = endpoint.answer(given, form)
                body = json.dumps(answer).encode()
                self.send_response(401 if "error" in answer else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                """Write nothing."""

        return _TokenHandler


def _new_key(name: str) -> RSAKey:
    return RSAKey.generate_key(_KEY_BITS, {"kid": name, "use": "sig", "alg": "RS256"})


class IssuerSidecar(Sidecar):
    """An issuer of signed tokens, which OAUTHBEARER takes in place of unsecured ones.

    Attributes:
        issuer: The issuer, once the cluster is open.
    """

    def __init__(self) -> None:
        self.issuer: Issuer | None = None

    def start(self, launcher: Launcher, options: ClusterOptions) -> None:
        """Make the issuer and its keys."""
        del options
        if self.issuer is not None:
            return
        with launcher.step():
            self.issuer = Issuer(launcher.directory / "oidc")
        # Without it a broker takes no address of a file for its keys.
        launcher.add_flag(f"-D{_ALLOWED_URLS}={self.issuer.rules.keys_url}")

    def configure(self, properties: Properties, listeners: Sequence[str]) -> Properties:
        """Return what makes listeners check the signature of a token (KIP-768)."""
        del properties
        assert self.issuer is not None
        return token_properties(listeners, self.issuer.rules)


def token_properties(listeners: Sequence[str], rules: TokenRules) -> Properties:
    """Return what makes listeners check the signature of a token (KIP-768)."""
    found: Properties = {}
    for listener in listeners:
        oauth = f"{listener_prefix(listener)}oauthbearer.sasl"
        found |= {
            f"{oauth}.jaas.config": f"{JAAS}.oauthbearer.OAuthBearerLoginModule"
            " required;",
            f"{oauth}.server.callback.handler.class": _VALIDATOR,
            f"{oauth}.oauthbearer.jwks.endpoint.url": rules.keys_url,
            f"{oauth}.oauthbearer.expected.issuer": rules.issuer,
            f"{oauth}.oauthbearer.expected.audience": rules.audience,
        }
    return found
