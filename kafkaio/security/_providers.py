"""Ready providers of bearer tokens, for ``sasl_oauth_token_provider``.

A provider is called for each token. It keeps no token, no connection and no event loop,
so one instance may serve several clients and can be pickled. `TokenSource` decides when
to call it. The libraries behind the providers are extras, loaded on first use.

Invariant: the ``repr`` and the errors of a provider contain no secret. Of the answers
of an identity provider, errors show only the two fields of an OAuth error, without the
secrets that were sent.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import math
import os
import re
import ssl
import sys
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypedDict, Unpack
from urllib.parse import urlsplit
from uuid import uuid4

from kafkaio._config import TokenProvider
from kafkaio._config.declaration import wrong_value
from kafkaio._config.login_properties import AssertionFacts, TokenRequest
from kafkaio._config.msk import MskFacts
from kafkaio._config.shown import shown_file, shown_path
from kafkaio._machines.backoff import Backoff
from kafkaio._public import public
from kafkaio._runtime.clock import roll, wall_ms
from kafkaio._runtime.own_thread import start_thread
from kafkaio.errors import ConfigurationError
from kafkaio.security._loopback import is_loopback
from kafkaio.security._tokens import is_token, name_of, no_token
from kafkaio.types import Token

if TYPE_CHECKING:
    import httpx

#: The largest answer of an identity provider, and the largest file with a JWT.
_MAX_BYTES: Final = 64 * 1024
#: The wait before the next attempt, in milliseconds: the first, and the longest.
_BACKOFF: Final = Backoff(100, 2_000)
_TOO_MANY_REQUESTS: Final = 429
_SERVER_ERROR: Final = 500
#: The longest text that is taken from an OAuth error.
_MAX_REASON: Final = 500
#: A hundred years: a longer lifetime is a mistake, such as milliseconds for seconds.
_LONGEST_LIFE: Final = 100 * 365 * 86_400
#: How an assertion is signed.
Algorithm: TypeAlias = Literal["RS256", "ES256"]
#: By algorithm, the class of joserfc that reads its keys.
_KEY_TYPES: Final[Mapping[Algorithm, str]] = {"RS256": "RSAKey", "ES256": "ECKey"}
_MSK_MODULE: Final = "aws_msk_iam_sasl_signer"

#: A file with a signed JWT, or an async callable that returns one.
Assertion = str | os.PathLike[str] | Callable[[], Awaitable[str]]


@public("kafkaio.security")
class TokenEndpointOptions(TypedDict, total=False):
    """The keyword arguments that every provider with a token endpoint takes.

    Attributes:
        scope: the scopes to ask for, with spaces between them.
        extensions: the SASL extensions of the tokens (RFC 7628).
        ca_file: certificates to trust, in PEM; None, the default, for those of the
            system.
        timeout: the seconds for one token, with all attempts; 10 by default.
        allow_http: whether ``http`` to another machine is allowed. Everybody on the way
            can read the secret and the token.
    """

    scope: str
    extensions: Mapping[str, str] | None
    ca_file: str | os.PathLike[str] | None
    timeout: float
    allow_http: bool


@public("kafkaio.security")
class ClientCredentials:
    """Gets tokens by the client's id and secret (RFC 6749, 4.4; KIP-768).

    The secret is sent by HTTP Basic authentication, as Java's client does it. A failed
    connection and the status 429 or 5xx are tried again within ``timeout``. Redirects
    are not followed. ``https`` goes through the proxy of the environment, if any.

    Args:
        token_url: the token endpoint. ``https``, or ``http`` to this machine.
        client_id: the client's id.
        client_secret: the client's secret.
        endpoint: ``scope``, ``extensions``, ``ca_file``, ``timeout`` and
            ``allow_http``; see `TokenEndpointOptions`.

    Raises:
        ConfigurationError: an argument cannot be used, or the extra ``oauth`` is not
            installed.
    """

    def __init__(
        self,
        token_url: str,
        client_id: str,
        client_secret: str,
        **endpoint: Unpack[TokenEndpointOptions],
    ) -> None:
        if not client_id or not client_secret:
            raise ConfigurationError("client_id and client_secret may not be empty")
        self._endpoint = _Endpoint(token_url, **endpoint)
        self._client_id = client_id
        self._client_secret = client_secret

    def __repr__(self) -> str:
        client = f"client_id={self._client_id!r}"
        return f"<ClientCredentials {self._endpoint.url} {client}>"

    async def __call__(self) -> Token:
        """Return a new token; can be cancelled.

        Raises:
            AuthenticationError: the identity provider refused, failed or was late.
        """
        return await self._endpoint.ask(self._form)

    async def _form(self) -> _Form:
        # Not form-encoded first, as RFC 6749 (2.3.1) demands: Java's client sends both
        # as they are by default, and many identity providers expect that.
        pair = f"{self._client_id}:{self._client_secret}".encode()
        basic = base64.b64encode(pair).decode()
        fields = {"grant_type": "client_credentials"}
        # An identity provider may repeat the header in its error: hide both forms.
        return _Form(fields, (self._client_secret, basic), basic=basic)


@public("kafkaio.security")
class JwtBearer:
    """Exchanges a signed JWT for tokens (RFC 7523, 2.1; KIP-1139).

    Args:
        token_url: as in `ClientCredentials`, as is ``endpoint``.
        assertion: a file with the JWT, which is read for each token, or an async
            callable that returns one.
        endpoint: keyword arguments.

    Raises:
        ConfigurationError: as in `ClientCredentials`.
    """

    def __init__(
        self,
        token_url: str,
        assertion: Assertion,
        **endpoint: Unpack[TokenEndpointOptions],
    ) -> None:
        self._endpoint = _Endpoint(token_url, **endpoint)
        self._assertion = assertion

    def __repr__(self) -> str:
        return f"<JwtBearer {self._endpoint.url}>"

    async def __call__(self) -> Token:
        """Return a new token; see `ClientCredentials`."""
        return await self._endpoint.ask(self._form)

    async def _form(self) -> _Form:
        signed = await _signed(self._assertion)
        fields = {
            "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
            "assertion": signed,
        }
        return _Form(fields, (signed,))


@public("kafkaio.security")
class ClientAssertion:
    """Gets tokens by the client's id and a signed JWT (RFC 7523, 2.2; KIP-1258).

    Args:
        token_url: as in `ClientCredentials`, as is ``endpoint``.
        client_id: the client's id.
        assertion: as in `JwtBearer`.
        endpoint: keyword arguments.

    Raises:
        ConfigurationError: as in `ClientCredentials`.
    """

    def __init__(
        self,
        token_url: str,
        client_id: str,
        assertion: Assertion,
        **endpoint: Unpack[TokenEndpointOptions],
    ) -> None:
        if not client_id:
            raise ConfigurationError("client_id may not be empty")
        self._endpoint = _Endpoint(token_url, **endpoint)
        self._client_id = client_id
        self._assertion = assertion

    def __repr__(self) -> str:
        client = f"client_id={self._client_id!r}"
        return f"<ClientAssertion {self._endpoint.url} {client}>"

    async def __call__(self) -> Token:
        """Return a new token; see `ClientCredentials`."""
        return await self._endpoint.ask(self._form)

    async def _form(self) -> _Form:
        signed = await _signed(self._assertion)
        kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        fields = {
            "grant_type": "client_credentials",
            "client_id": self._client_id,
            "client_assertion_type": kind,
            "client_assertion": signed,
        }
        return _Form(fields, (signed,))


@public("kafkaio.security")
class SignedAssertion:
    """Signs a JWT by a private key, as the ``assertion`` of the two classes above.

    The key is read for each JWT, so that it can be replaced.

    Args:
        key_file: the file with the private key in PEM: RSA or elliptic curve P-256.
        passphrase: of an encrypted key.
        algorithm: ``RS256`` or ``ES256``.
        audience: the claim ``aud``: as a rule the token endpoint.
        issuer: the claim ``iss``: the client's id, as a rule.
        subject: the claim ``sub``; None for ``issuer``.
        lifetime: seconds from now to the claim ``exp``.
        leeway: seconds from the claim ``nbf`` to now, for clocks that differ.
        has_id: whether to add a random claim ``jti``.
        template_file: a file of JSON with ``header`` and ``payload``, which are added.

    Raises:
        ConfigurationError: an argument cannot be used, or the extra ``oauth`` is not
            installed.
    """

    def __init__(  # noqa: PLR0913 - each of them is a fact of the JWT
        self,
        key_file: str | os.PathLike[str],
        *,
        passphrase: str | None = None,
        algorithm: Algorithm = "RS256",
        audience: str | None = None,
        issuer: str | None = None,
        subject: str | None = None,
        lifetime: float = 300.0,
        leeway: float = 60.0,
        has_id: bool = False,
        template_file: str | os.PathLike[str] | None = None,
    ) -> None:
        signing = _known_algorithm(algorithm)
        if not 0 < lifetime <= _LONGEST_LIFE or not 0 <= leeway <= _LONGEST_LIFE:
            raise wrong_value("lifetime", lifetime, "is not a possible lifetime")
        if find_spec("joserfc") is None:
            raise _missing("SignedAssertion", "joserfc", "oauth")
        self._key_file = os.fspath(key_file)
        self._passphrase = passphrase
        self._algorithm = signing
        self._lifetime = lifetime
        self._leeway = leeway
        self._has_id = has_id
        self._template_file = template_file and os.fspath(template_file)
        given = {"aud": audience, "iss": issuer, "sub": subject or issuer}
        self._claims = {name: value for name, value in given.items() if value}

    def __repr__(self) -> str:
        return f"<SignedAssertion {self._algorithm} {self._key_file}>"

    async def __call__(self) -> str:
        """Return a new signed JWT; a caller that is cancelled leaves a thread behind.

        Raises:
            AuthenticationError: the key or the template cannot be read.
        """
        return await start_thread(self._sign, "kafkaio signs an assertion")

    def _sign(self) -> str:
        from joserfc import jwk, jwt

        template = self._template()
        # Arguments win over the template, and ``alg`` is that of the key in any case.
        now = wall_ms() // 1000
        times = {"iat": now, "nbf": now - self._leeway, "exp": now + self._lifetime}
        claims = {**template["payload"], **times, **self._claims}
        if self._has_id:
            claims["jti"] = str(uuid4())
        header = {"typ": "JWT", **template["header"], "alg": self._algorithm}
        kind = getattr(jwk, _KEY_TYPES[self._algorithm])
        try:
            text = Path(self._key_file).read_bytes()
            key = kind.import_key(text, password=self._passphrase)
            value: str = jwt.encode(header, claims, key, algorithms=[self._algorithm])
        except OSError as error:
            what = error.strerror or type(error).__name__
            raise no_token(f"{shown_file(self._key_file)}: {what}") from None
        except Exception as error:
            # The text may quote the key: only the cause keeps it.
            what = f"no private key for {self._algorithm}, or another passphrase"
            raise no_token(f"{shown_file(self._key_file)}: {what}") from error
        return value

    def _template(self) -> dict[str, dict[str, object]]:
        found: dict[str, object] | None = {}
        if self._template_file:
            try:
                found = _object(Path(self._template_file).read_bytes())
            except OSError as error:
                what = error.strerror or type(error).__name__
                raise no_token(f"{shown_file(self._template_file)}: {what}") from None
        parts: dict[str, dict[str, object]] = {}
        for name in ("header", "payload"):
            part = None if found is None else found.get(name, {})
            if not isinstance(part, dict):
                raise no_token(
                    f"{self._template_file} has no JSON object with header and payload"
                )
            parts[name] = part
        return parts


@public("kafkaio.security")
class FileToken:
    """Takes the JWT in a file as the token; reads the file for each token.

    Kubernetes keeps the token of a service account in such a file, and replaces it
    before it ends. The token is valid until its claim ``exp``.

    Args:
        path: the file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)

    def __repr__(self) -> str:
        return f"<FileToken {shown_file(self._path)}>"

    async def __call__(self) -> Token:
        """Return the token that is in the file now; can be cancelled.

        Raises:
            AuthenticationError: the file cannot be read, or holds no JWT with ``exp``.
        """
        value = await _from_file(self._path)
        claims = _claims(value)
        end = _end(claims)
        if end is None:
            # Error reports may show the variables of this frame.
            del value, claims
            raise no_token(f"{shown_file(self._path)} has no JWT with a claim exp")
        return Token(value=value, expires=end, principal=_principal(claims))


@public("kafkaio.security")
class UnsecuredToken:
    """Makes unsigned tokens (KIP-255), **for tests only**.

    Brokers accept them with Kafka's default settings of OAUTHBEARER: every client can
    then act as any principal.

    Args:
        principal: the claim ``sub``: whom the token stands for.
        seconds: how long each token lives.
    """

    def __init__(self, principal: str, *, seconds: float = 3600) -> None:
        if not principal:
            raise ConfigurationError("principal may not be empty")
        if not 0 < seconds <= _LONGEST_LIFE:
            raise wrong_value("seconds", seconds, "is not a possible lifetime")
        self._principal = principal
        self._seconds = seconds

    def __repr__(self) -> str:
        return f"<UnsecuredToken {self._principal!r}>"

    async def __call__(self) -> Token:
        """Return a new token, at once."""
        now = wall_ms() / 1000
        end = now + self._seconds
        claims = {"sub": self._principal, "iat": now, "exp": end}
        head, body = (
            base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
            for part in ({"alg": "none"}, claims)
        )
        value = f"{head}.{body}."
        return Token(value=value, expires=end, principal=self._principal)


@public("kafkaio.security")
class MskToken:
    """Makes tokens of AWS MSK by IAM, with the credentials that boto finds.

    A token lives for 15 minutes. It is signed in a thread: loading AWS's library alone
    takes seconds.

    Args:
        region: the region of the cluster, such as ``eu-central-1``.
        profile: a profile of AWS's configuration; None for the default.
        role_arn: a role to assume instead.
        role_session_name: the name of the role's session; None for that of AWS's
            library.
        role_external_id: the external id that the role demands; None for none.
        role_keys: the access key id, the secret access key, and for a session its
            token, by which the role is assumed; None for the default credentials.
        sts_region: the region of the service that gives the role; None for boto's.
        logs_identity: whether AWS's library logs at DEBUG whose credentials sign; only
            with the default credentials.

    Raises:
        ConfigurationError: both ``profile`` and ``role_arn`` are given, or something of
            a role without one, or the extra ``aws`` is not installed.
    """

    def __init__(  # noqa: PLR0913 - each of them is a fact of AWS
        self,
        region: str,
        *,
        profile: str | None = None,
        role_arn: str | None = None,
        role_session_name: str | None = None,
        role_external_id: str | None = None,
        role_keys: tuple[str, ...] | None = None,
        sts_region: str | None = None,
        logs_identity: bool = False,
    ) -> None:
        if not region:
            raise ConfigurationError("region may not be empty")
        if profile is not None and role_arn is not None:
            raise ConfigurationError("give profile or role_arn, not both")
        of_role = (role_session_name, role_external_id, role_keys, sts_region)
        if role_arn is None and any(fact is not None for fact in of_role):
            raise ConfigurationError("the arguments of a role need role_arn")
        if role_keys is not None and len(role_keys) not in {2, 3}:
            raise ConfigurationError(
                "role_keys is an access key id, a secret access key, and perhaps the "
                "token of a session"
            )
        if _MSK_MODULE not in sys.modules and find_spec(_MSK_MODULE) is None:
            raise _missing("MskToken", "aws-msk-iam-sasl-signer-python", "aws")
        self._region = region
        self._profile = profile
        self._role_arn = role_arn
        self._role_session_name = role_session_name
        self._role_external_id = role_external_id
        self._role_keys = role_keys
        self._sts_region = sts_region
        self._logs_identity = logs_identity

    def __repr__(self) -> str:
        return f"<MskToken {self._region}>"

    async def __call__(self) -> Token:
        """Return a new token; a caller that is cancelled leaves the thread behind.

        Raises:
            AuthenticationError: AWS's library failed; its error is the cause.
        """
        try:
            value, end_ms = await start_thread(self._sign, "kafkaio signs a token")
        except ImportError:
            raise _missing(
                "MskToken", "aws-msk-iam-sasl-signer-python", "aws"
            ) from None
        except Exception as error:
            # The text of another library may have a secret: only the cause keeps it.
            what = f"{self!r}: AWS's library failed with {type(error).__name__}"
            hint = "does it find credentials (environment, profile or role)?"
            raise no_token(f"{what}; {hint}") from error
        return Token(value=value, expires=end_ms / 1000)

    def _sign(self) -> tuple[str, int]:
        # The library has one function for each source of credentials. `_role` is for
        # the facts of a role that these functions do not take.
        signer = import_module(f"{_MSK_MODULE}.MSKAuthTokenProvider")
        made: tuple[str, int]
        more: tuple[str, ...] = ()
        if self._role_external_id or self._role_keys or self._sts_region:
            made = signer.generate_auth_token_from_credentials_provider(
                self._region, self._role()
            )
        elif self._role_arn is not None:
            if self._role_session_name is not None:
                more = (self._role_session_name,)
            made = signer.generate_auth_token_from_role_arn(
                self._region, self._role_arn, *more
            )
        elif self._profile is not None:
            made = signer.generate_auth_token_from_profile(self._region, self._profile)
        elif self._logs_identity:
            made = signer.generate_auth_token(self._region, aws_debug_creds=True)
        else:
            made = signer.generate_auth_token(self._region)
        return made

    def _role(self) -> object:
        """Return the object that AWS's library asks for the role's credentials."""
        credentials = import_module("botocore.credentials")
        key, secret, session = (*(self._role_keys or (None, None)), None)[:3]
        about = {
            "RoleArn": self._role_arn,
            "RoleSessionName": self._role_session_name or "kafkaio",
        }
        if self._role_external_id:
            about["ExternalId"] = self._role_external_id

        def load(provider: object) -> object:
            del provider
            sts = import_module("boto3").client(
                "sts",
                region_name=self._sts_region,
                aws_access_key_id=key,
                aws_secret_access_key=secret,
                aws_session_token=session,
            )
            given = sts.assume_role(**about)["Credentials"]
            return credentials.Credentials(
                given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"]
            )

        # AWS's library demands a subclass, and botocore is loaded here alone.
        made: object = type(
            "_Role", (credentials.CredentialProvider,), {"load": load}
        )()
        return made


def provider_for(request: TokenRequest) -> TokenProvider:
    """Make the provider that properties of Java's clients or librdkafka describe.

    Raises:
        ConfigurationError: an argument cannot be used, or an extra is not installed.
    """
    if request.kind == "file":
        return FileToken(request.url)
    if request.kind == "unsecured":
        return UnsecuredToken(request.principal, seconds=request.lifetime)
    if request.msk is not None:
        return _msk_for(request.msk)
    more: TokenEndpointOptions = {
        "scope": request.scope,
        "extensions": dict(request.extensions),
    }
    if request.kind == "client credentials":
        secret = request.client_secret
        return ClientCredentials(request.url, request.client_id, secret, **more)
    assert request.assertion is not None  # read with the kind
    assertion = _assertion_for(request.assertion)
    if request.kind == "JWT bearer":
        return JwtBearer(request.url, assertion, **more)
    return ClientAssertion(request.url, request.client_id, assertion, **more)


def _msk_for(facts: MskFacts) -> MskToken:
    names = ("AWS_REGION", "AWS_DEFAULT_REGION")
    regions = (facts.region, *map(os.environ.get, names))
    region = next(filter(None, regions), None)
    if region is None:
        raise ConfigurationError(
            "the region of the MSK cluster is not known: no bootstrap server has it in "
            'its name; set awsRegion="..." in sasl.jaas.config, or the environment '
            "variable AWS_REGION"
        )
    keys = (facts.role_access_key_id, facts.role_secret_access_key)
    session = (facts.role_session_token,) if facts.role_session_token else ()
    return MskToken(
        region,
        profile=facts.profile or None,
        role_arn=facts.role_arn or None,
        role_session_name=facts.role_session_name or None,
        role_external_id=facts.role_external_id or None,
        role_keys=(*keys, *session) if keys[0] else None,
        sts_region=facts.sts_region or None,
        logs_identity=facts.logs_identity,
    )


def _known_algorithm(name: str) -> Algorithm:
    for known in _KEY_TYPES:
        if name == known:
            return known
    raise wrong_value("algorithm", name, f"is none of {', '.join(_KEY_TYPES)}")


def _assertion_for(facts: AssertionFacts) -> Assertion:
    if facts.file:
        return facts.file
    claims = dict(facts.claims)
    return SignedAssertion(
        facts.key_file,
        passphrase=facts.passphrase or None,
        algorithm=_known_algorithm(facts.algorithm),
        audience=claims.get("aud"),
        issuer=claims.get("iss"),
        subject=claims.get("sub"),
        lifetime=facts.lifetime,
        leeway=facts.leeway,
        has_id=facts.has_id,
        template_file=facts.template_file or None,
    )


class _Form:
    """The form for a token endpoint, and the secrets that no error may show."""

    __slots__ = ("basic", "fields", "secrets")

    def __init__(
        self, fields: Mapping[str, str], secrets: tuple[str, ...], *, basic: str = ""
    ) -> None:
        self.fields = fields
        self.secrets = secrets
        self.basic = basic

    def __repr__(self) -> str:
        return "<_Form>"

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the request."""
        headers = {
            "Accept": "application/json",
            # No compression, so that a small answer cannot become a large one.
            "Accept-Encoding": "identity",
            "Cache-Control": "no-cache",
        }
        return headers | (
            {"Authorization": f"Basic {self.basic}"} if self.basic else {}
        )


class _TokenAnswer:
    """A status and a body; without a status, why there is none."""

    __slots__ = ("body", "may_retry", "problem", "status")

    def __init__(
        self,
        status: int = 0,
        body: bytes = b"",
        *,
        problem: str = "",
        may_retry: bool = False,
    ) -> None:
        self.status = status
        self.body = body
        self.problem = problem
        self.may_retry = may_retry

    def __repr__(self) -> str:
        return f"<_Answer {self.status}>"


class _Endpoint:
    """A token endpoint: requests tokens, and checks the answers.

    Errors of the HTTP library are never the cause or the context of ours: the frames of
    their tracebacks hold the request.
    """

    def __init__(
        self,
        url: str,
        *,
        scope: str = "",
        extensions: Mapping[str, str] | None = None,
        ca_file: str | os.PathLike[str] | None = None,
        timeout: float = 10.0,
        allow_http: bool = False,
    ) -> None:
        self._url = url
        self._scope = {"scope": scope.strip()} if scope.strip() else {}
        self._extensions = dict(extensions or {})
        self._is_secure = _check_url(url, allow_http=allow_http)
        self._ca_file = None if ca_file is None else os.fspath(ca_file)
        if not 0 < timeout < math.inf:
            raise wrong_value("timeout", timeout, "is not a positive number of seconds")
        self._timeout = timeout
        if self._is_secure:
            # Raises now if `ca_file` cannot be used, and not with the first token.
            self._context()

    @property
    def url(self) -> str:
        """The address for texts: without a query, which may hold a key."""
        return self._url.partition("?")[0]

    def __repr__(self) -> str:
        return f"<_Endpoint {self.url}>"

    async def ask(self, form: Callable[[], Awaitable[_Form]]) -> Token:
        """Return a new token.

        Raises:
            AuthenticationError: there is none within the time limit.
        """
        limit = asyncio.timeout(self._timeout)
        last = _TokenAnswer(problem="it does not answer")
        sent: _Form | None = None
        began, attempt = wall_ms() / 1000, 0
        try:
            async with limit:
                sent = await form()
                while True:
                    began = wall_ms() / 1000
                    last = await self._post(sent)
                    if not last.may_retry:
                        break
                    await asyncio.sleep(_BACKOFF.delay(attempt, roll()))
                    attempt += 1
        except TimeoutError:
            # The user's assertion may raise one of its own.
            if not limit.expired():
                raise
        # Outside of the handler, so that the timeout is not the error's context.
        if limit.expired():
            late = f"{self.url}: no token within {self._timeout:.3g} s"
            reason = _reason(last, sent)
            # Error reports may show the variables of this frame.
            del sent
            raise no_token(f"{late}: {reason}", reason)
        assert sent is not None
        reason = _reason(last, sent)
        del sent
        if reason:
            raise no_token(f"{self.url}: {reason}", reason)
        return self._token(last, began)

    async def _post(self, form: _Form) -> _TokenAnswer:
        """Send the form once; return a failure as an answer with a problem."""
        httpx = _httpx()
        try:
            verify: ssl.SSLContext | bool = True
            if self._is_secure:
                verify = await start_thread(self._context, "kafkaio reads authorities")
            async with (
                # A client for each request: it belongs to the loop that runs now, and
                # a token is needed once in many minutes. Without encryption, no proxy
                # of the environment may see the secret.
                httpx.AsyncClient(
                    verify=verify,
                    trust_env=self._is_secure,
                    timeout=None,
                    follow_redirects=False,
                ) as client,
                client.stream(
                    "POST",
                    self._url,
                    data={**form.fields, **self._scope},
                    headers=form.headers,
                ) as response,
            ):
                return await _read(response)
        except httpx.TransportError as error:
            text = f"{type(error).__name__}: {error}"
            # A certificate that is not trusted will not be trusted a second later.
            is_final = "CERTIFICATE_VERIFY_FAILED" in text
            return _TokenAnswer(problem=text, may_retry=not is_final)
        except ConfigurationError as error:
            return _TokenAnswer(problem=str(error))

    def _context(self) -> ssl.SSLContext:
        # Made for each token: the file is replaced when certificates expire.
        try:
            return ssl.create_default_context(cafile=self._ca_file)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            what = shown_path("ca_file", self._ca_file or "")
            raise ConfigurationError(f"{what}: {reason}") from None

    def _token(self, answer: _TokenAnswer, began: float) -> Token:
        given = _object(answer.body)
        value = None if given is None else given.get("access_token")
        problem = ""
        life: float | None = None
        end: float | None = None
        claims: dict[str, object] = {}
        if given is None:
            problem = "the answer is not a JSON object"
        elif not isinstance(value, str) or not is_token(value):
            problem = "the answer has no access_token that can be used"
        else:
            claims = _claims(value)
            end = _end(claims)
            said = given.get("expires_in")
            life = _life(said)
            if said is not None and life is None:
                problem = "expires_in is not a positive number of seconds"
            elif life is None and end is None:
                problem = "neither expires_in nor a claim exp says when the token ends"
        if problem or not isinstance(value, str):
            # Error reports may show the variables of this frame.
            del given, value, answer, claims
            raise no_token(f"{self.url}: {problem}", problem)
        ends = [] if end is None else [end]
        if life is not None:
            # From the request on: the answer may have been under way for seconds.
            ends.append(began + life)
        return Token(
            value=value,
            expires=min(ends),
            principal=_principal(claims),
            extensions=self._extensions,
        )


async def _read(response: httpx.Response) -> _TokenAnswer:
    """Read an answer, or refuse one that does not end."""
    body = bytearray()
    # Raw, and in chunks: `aread` would take any number of bytes into memory.
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > _MAX_BYTES:
            return _TokenAnswer(problem=f"the answer has more than {_MAX_BYTES} bytes")
    status = response.status_code
    is_busy = status == _TOO_MANY_REQUESTS or status >= _SERVER_ERROR
    return _TokenAnswer(status, bytes(body), may_retry=is_busy)


def _httpx() -> ModuleType:
    try:
        return import_module("httpx")
    except ImportError:
        raise _missing("the token endpoint", "httpx", "oauth") from None


def _missing(what: str, package: str, extra: str) -> ConfigurationError:
    return ConfigurationError(
        f"{what} needs the package {package}: pip install kafkaio[{extra}]"
    )


def _check_url(url: str, *, allow_http: bool) -> bool:
    """Check the address of a token endpoint; return whether it is encrypted."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
        _httpx().URL(url)
    # The URL is not repeated in errors: it may have a password.
    except (ValueError, _httpx().InvalidURL):
        raise ConfigurationError("token_url is not a URL") from None
    if parts.scheme not in {"http", "https"} or not host:
        raise ConfigurationError("token_url is not a URL with https and a host")
    if "@" in parts.netloc or parts.fragment:
        raise ConfigurationError("token_url may have no user and no fragment")
    if parts.scheme == "http" and not allow_http and not is_loopback(host):
        raise ConfigurationError(
            f"token_url is http to {host}: everybody on the way could read the secret; "
            "use https, or say allow_http=True"
        )
    return parts.scheme == "https"


def _reason(answer: _TokenAnswer, form: _Form | None) -> str:
    """Return why an answer is an error; empty for a success."""
    if answer.problem or answer.status == 200:
        text = answer.problem
    elif 300 <= answer.status < 400:
        text = f"status {answer.status}: redirects are not followed"
    else:
        given = _object(answer.body) or {}
        said = (given.get("error"), given.get("error_description"))
        words = [word for word in said if isinstance(word, str) and word]
        text = ": ".join(words) or f"status {answer.status}"
    # An endpoint may repeat the request in its error.
    for secret in form.secrets if form else ():
        text = text.replace(secret, "[hidden]")
    # No line breaks or terminal codes of another server in our log.
    printable = "".join(c if c.isprintable() else " " for c in text)
    return printable[:_MAX_REASON]


async def _signed(assertion: Assertion) -> str:
    """Return the signed JWT that a file or a callable has now."""
    if not callable(assertion):
        return await _from_file(os.fspath(assertion))
    name = name_of(assertion)
    try:
        given: object = await assertion()
    except Exception as error:
        # The text may quote a secret: only the cause keeps it.
        failure = f"assertion {name} failed with {type(error).__name__}"
        raise no_token(failure) from error
    if isinstance(given, str) and is_token(given):
        return given
    kind = type(given).__name__
    del given
    raise no_token(f"assertion {name} returned {kind} that is not a JWT")


async def _from_file(path: str) -> str:
    def read() -> bytes:
        with Path(path).open("rb") as file:
            return file.read(_MAX_BYTES + 1)

    try:
        data = await start_thread(read, "kafkaio reads a token")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise no_token(f"{shown_file(path)}: {reason}") from None
    text = data.decode("latin-1").strip()
    problem = "" if is_token(text) else "has no token of printable ASCII alone"
    if len(data) > _MAX_BYTES:
        problem = f"has more than {_MAX_BYTES} bytes"
    if problem:
        del data, text
        raise no_token(f"{shown_file(path)} {problem}")
    return text


def _object(text: bytes) -> dict[str, object] | None:
    """Return a JSON object, or None for all else."""
    try:
        given: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, dict) else None


def _claims(token: str) -> dict[str, object]:
    """Return the claims of a JWT, unverified; an empty dict for another format.

    The broker verifies the token. Here the claims only say when to renew it.
    """
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    # JWTs leave the padding of base64 out (RFC 7515, 2).
    padded = parts[1] + "=" * (-len(parts[1]) % 4)
    try:
        return _object(base64.urlsafe_b64decode(padded)) or {}
    except (binascii.Error, ValueError):
        return {}


def _end(claims: Mapping[str, object]) -> float | None:
    return _number(claims.get("exp"))


def _principal(claims: Mapping[str, object]) -> str:
    subject = claims.get("sub")
    return subject if isinstance(subject, str) else ""


def _life(said: object) -> float | None:
    """Return the seconds of ``expires_in``, which some providers send as text."""
    if isinstance(said, str):
        said = int(said) if re.fullmatch("[0-9]{1,11}", said) else None
    life = _number(said)
    return life if life is not None and life <= _LONGEST_LIFE else None


def _number(given: object) -> float | None:
    """Return a positive number of a sane size, or None."""
    # JSON of Python has NaN and Infinity; the comparison below refuses both.
    if isinstance(given, bool) or not isinstance(given, int | float):
        return None
    return float(given) if 0 < given < 1e12 else None
