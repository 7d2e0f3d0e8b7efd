"""How Java's clients and librdkafka say how to log in, where kafkaio has other options.

``sasl.jaas.config`` has user and password (KIP-85), and ``sasl.oauthbearer.*`` says
where tokens come from (KIP-768, KIP-1139, KIP-1258; the names of librdkafka for the
same, and AWS's own for MSK). `read_login` turns them into options of kafkaio. What
tokens need is a `TokenRequest`, of which the client makes a provider of
``kafkaio.security``: this package is below that one.

No error and no ``repr`` shows a secret. State: none; everything here is immutable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Final, Literal, TypeAlias

from kafkaio._config.declaration import wrong_value
from kafkaio._config.jaas import LoginModule, parse_jaas
from kafkaio._config.msk import (
    CLIENT_HANDLERS,
    LOGIN_HANDLER,
    LOGIN_MODULE,
    MECHANISM,
    MskFacts,
    read_msk,
)
from kafkaio._dataclass import dataclass
from kafkaio.errors import ConfigurationError

TokenKind: TypeAlias = Literal[
    "client credentials",
    "client assertion",
    "JWT bearer",
    "file",
    "msk",
    "unsecured",
]

_JAAS: Final = "sasl.jaas.config"
_HANDLER: Final = "sasl.login.callback.handler.class"
_CLIENT_HANDLER: Final = "sasl.client.callback.handler.class"
_OAUTH: Final = "sasl.oauthbearer."
#: How the properties begin, behind that, by which brokers verify tokens.
_OF_BROKERS: Final = ("allow.unverified.", "clock.skew.", "expected.", "jwks.")
_ASSERTION: Final = f"{_OAUTH}assertion."
_PROVIDER: Final = "use sasl_oauth_token_provider instead"
_MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "PlainLoginModule": ("PLAIN",),
    "ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
    "OAuthBearerLoginModule": ("OAUTHBEARER",),
    "Krb5LoginModule": ("GSSAPI",),
    LOGIN_MODULE: (MECHANISM,),
}
#: Java's handlers of OAUTHBEARER, without their packages: whether tokens are signed.
_HANDLERS: Final = {
    "OAuthBearerLoginCallbackHandler": True,
    "OAuthBearerUnsecuredLoginCallbackHandler": False,
}
#: The same option takes the classes of ``kafkaio.security``, by the kind of request.
_PROVIDERS: Final[Mapping[str, TokenKind]] = {
    "ClientAssertion": "client assertion",
    "ClientCredentials": "client credentials",
    "FileToken": "file",
    "JwtBearer": "JWT bearer",
    "MskToken": "msk",
    "UnsecuredToken": "unsecured",
}
#: What each kind cannot do without.
_NEEDS: Final[Mapping[TokenKind, str]] = {
    "client assertion": (
        "sasl.oauthbearer.token.endpoint.url, "
        "sasl.oauthbearer.client.credentials.client.id and "
        "sasl.oauthbearer.assertion.*"
    ),
    "client credentials": (
        "sasl.oauthbearer.token.endpoint.url and sasl.oauthbearer.client.credentials.*"
    ),
    "file": "sasl.oauthbearer.token.endpoint.url=file:///path",
    "JWT bearer": (
        "sasl.oauthbearer.token.endpoint.url and sasl.oauthbearer.assertion.*"
    ),
    "msk": "no other property of sasl.oauthbearer.*",
    "unsecured": "unsecuredLoginStringClaim_sub in sasl.jaas.config",
}
_BEARER_GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_UNSECURED: Final = "unsecuredLogin"


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertionFacts:
    """A JWT by which a client proves who it is: a file, or how to sign one.

    Attributes:
        file: the file with a signed JWT; empty if one is to be signed.
        key_file: the file with the private key, in PEM.
        passphrase: of an encrypted key; empty for none.
        algorithm: ``RS256`` or ``ES256``.
        claims: the claims ``aud``, ``iss`` and ``sub`` that were given.
        lifetime: seconds from now to the claim ``exp``.
        leeway: seconds from the claim ``nbf`` to now.
        has_id: whether it has a random claim ``jti``.
        template_file: a file of JSON with further claims and headers; empty for none.
    """

    file: str = ""
    key_file: str = ""
    passphrase: str = field(default="", repr=False)
    algorithm: str = "RS256"
    claims: tuple[tuple[str, str], ...] = ()
    lifetime: int = 300
    leeway: int = 60
    has_id: bool = False
    template_file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    """Where tokens come from, for ``sasl_oauth_token_provider``. Can be pickled.

    Attributes:
        kind: how the client gets them.
        url: the token endpoint; of a file its path.
        client_id: the client's id.
        client_secret: its secret.
        scope: the scopes to ask for, with spaces between them.
        extensions: SASL extensions, by name.
        assertion: what proves who the client is; None for its secret.
        principal: whom an unsecured token stands for.
        lifetime: seconds that an unsecured token lives.
        msk: who signs tokens of AWS MSK; None for other tokens.
    """

    kind: TokenKind
    url: str = field(default="", repr=False)
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""
    extensions: tuple[tuple[str, str], ...] = ()
    assertion: AssertionFacts | None = None
    principal: str = ""
    lifetime: int = 3600
    msk: MskFacts | None = None


def read_login(
    properties: Mapping[str, object],
) -> tuple[dict[str, object], dict[str, object]]:
    """Read the properties that are not options of kafkaio.

    Args:
        properties: values by dotted name. ``sasl.jaas.config`` may be a `LoginModule`.

    Returns:
        Options of kafkaio by name, and the properties that were not read.

    Raises:
        ConfigurationError: a value cannot be read, or contradicts another one.
    """
    given = {n: v for n, v in properties.items() if _is_about_login(n)}
    rest = {n: v for n, v in properties.items() if n not in given}
    module = _module(given.pop(_JAAS, None))
    mechanism = rest.get("sasl.mechanism", rest.get("sasl.mechanisms"))
    if isinstance(mechanism, str):
        mechanism = mechanism.strip().upper()
    if module is not None:
        _check_mechanism(module, mechanism)
    asked = _Properties(given, {} if module is None else module.options, rest)
    options: dict[str, object] = {}
    is_by_token = mechanism in ("OAUTHBEARER", MECHANISM)
    if module is not None and not is_by_token:
        options = _READERS[module.kind](module.options)
    if mechanism == MECHANISM:
        options = {"sasl_oauth_token_provider": _msk_by_its_mechanism(asked)}
        rest = _with_mechanism(rest, "OAUTHBEARER")
    elif is_by_token and (module is not None or given):
        options = {"sasl_oauth_token_provider": _request(asked)}
    asked.check_all_read()
    _check_apart(options, rest)
    return {n: v for n, v in options.items() if v is not None}, rest


def _is_about_login(name: str) -> bool:
    names = {_JAAS, _HANDLER, _CLIENT_HANDLER}
    return name in names or name.startswith(_OAUTH)


def _with_mechanism(
    properties: Mapping[str, object], mechanism: str
) -> dict[str, object]:
    names = ("sasl.mechanism", "sasl.mechanisms")
    rest = {name: v for name, v in properties.items() if name not in names}
    return rest | {"sasl.mechanism": mechanism}


def _module(value: object) -> LoginModule | None:
    if value is None or isinstance(value, LoginModule):
        return value
    if not isinstance(value, str):
        raise ConfigurationError(f"{_JAAS} is a {type(value).__name__}: text is needed")
    return parse_jaas(value)


def _check_mechanism(module: LoginModule, mechanism: object) -> None:
    fitting = _MODULES.get(module.kind)
    if fitting is None:
        known = ", ".join(_MODULES)
        # A text without dots is not a class of Java, and may be a password.
        name = module.name if "." in module.name else "such login module"
        raise ConfigurationError(f"{_JAAS}: kafkaio has no {name}; it has {known}")
    if mechanism not in fitting:
        every = {name for names in _MODULES.values() for name in names}
        what = "is missing" if mechanism is None else "is another one"
        if isinstance(mechanism, str) and mechanism in every:
            what = f"is {mechanism}"
        raise ConfigurationError(
            f"{_JAAS}: {module.kind} is for sasl.mechanism={' or '.join(fitting)}, "
            f"and sasl.mechanism {what}"
        )


def _check_apart(options: Mapping[str, object], rest: Mapping[str, object]) -> None:
    for name, value in options.items():
        dotted = name.replace("_", ".")
        for other in (dotted, name):
            if value is not None and other in rest and rest[other] != value:
                raise ConfigurationError(
                    f"{dotted} and {_JAAS} or {_OAUTH}* differ: give one of them"
                )


# ---- login modules -------------------------------------------------------------------


def _needed(options: Mapping[str, str], module: str, name: str) -> str:
    if not options.get(name):
        raise ConfigurationError(f"{_JAAS}: {module} needs {name}")
    return options[name]


def _flag(options: Mapping[str, str], name: str) -> bool:
    text = options.get(name, "false")
    if text.lower() not in {"true", "false"}:
        raise ConfigurationError(f"{_JAAS}: {name} is neither true nor false")
    return text.lower() == "true"


def _read_plain(options: Mapping[str, str]) -> dict[str, object]:
    return {
        "sasl_username": _needed(options, "PlainLoginModule", "username"),
        "sasl_password": _needed(options, "PlainLoginModule", "password"),
    }


def _read_scram(options: Mapping[str, str]) -> dict[str, object]:
    return {
        "sasl_username": _needed(options, "ScramLoginModule", "username"),
        "sasl_password": _needed(options, "ScramLoginModule", "password"),
        "sasl_delegation_token": _flag(options, "tokenauth") or None,
    }


def _read_kerberos(options: Mapping[str, str]) -> dict[str, object]:
    """Read Krb5LoginModule of Java; what it does with a ticket is Kerberos' own here.

    Raises:
        ConfigurationError: it neither has a keytab nor takes the cache of tickets.
    """
    found: dict[str, object] = {
        "sasl_kerberos_service_name": options.get("serviceName")
    }
    if _flag(options, "useKeyTab"):
        return found | {
            "sasl_kerberos_keytab": _needed(options, "Krb5LoginModule", "keyTab"),
            "sasl_kerberos_principal": _needed(options, "Krb5LoginModule", "principal"),
        }
    if options.get("ticketCache"):
        raise ConfigurationError(
            f"{_JAAS}: ticketCache is not in kafkaio: set the environment variable "
            "KRB5CCNAME"
        )
    if not _flag(options, "useTicketCache"):
        raise ConfigurationError(
            f"{_JAAS}: Krb5LoginModule needs useKeyTab=true with keyTab and principal, "
            "or useTicketCache=true"
        )
    return found | {"sasl_kerberos_principal": options.get("principal")}


_READERS: Final[Mapping[str, Callable[[Mapping[str, str]], dict[str, object]]]] = {
    "PlainLoginModule": _read_plain,
    "ScramLoginModule": _read_scram,
    "Krb5LoginModule": _read_kerberos,
}


# ---- tokens --------------------------------------------------------------------------


class _Properties:
    """The properties of tokens, and the options of the login module beside them.

    Args:
        given: values by dotted name.
        module: the options of the login module.
        others: properties that are about something else.
    """

    def __init__(
        self,
        given: Mapping[str, object],
        module: Mapping[str, str],
        others: Mapping[str, object],
    ) -> None:
        self._given = dict(given)
        self._module = module
        self._others = others

    def msk(self) -> TokenRequest:
        """Return the request for tokens of AWS MSK."""
        names = ("bootstrap.servers", "metadata.broker.list")
        servers = next((self._others[n] for n in names if n in self._others), "")
        return TokenRequest(kind="msk", msk=read_msk(self._module, servers))

    def take(self, *names: str, module: str = "") -> str:
        """Return the first of these that was given, else an option of the module."""
        found = [str(self._given.pop(name)) for name in names if name in self._given]
        return found[0] if found else self._module.get(module, "")

    def number(self, name: str, default: int) -> int:
        """Return an integer number of seconds."""
        text = self.take(name)
        if text and not text.isdecimal():
            raise wrong_value(name, text, "is not an integer")
        return int(text) if text else default

    def flag(self, name: str) -> bool:
        """Return whether a flag is set."""
        text = self.take(name).lower()
        if text not in {"", "true", "false"}:
            raise wrong_value(name, text, "is neither true nor false")
        return text == "true"

    def of_module(self, prefix: str) -> dict[str, str]:
        """Return the options of the module that begin so, without the beginning."""
        return {
            name.removeprefix(prefix): value
            for name, value in self._module.items()
            if name.startswith(prefix)
        }

    def check_all_read(self) -> None:
        """See that nothing was given that has no effect.

        Raises:
            ConfigurationError: names the property.
        """
        for name in sorted(self._given):
            if name.removeprefix(_OAUTH).startswith(_OF_BROKERS):
                raise ConfigurationError(
                    f"{name} is a broker's: a client does not verify tokens; leave it "
                    "out"
                )
            raise ConfigurationError(
                f"{name} has no meaning here: kafkaio does not have it, or it needs "
                "sasl.mechanism=OAUTHBEARER"
            )


def _msk_by_its_mechanism(asked: _Properties) -> TokenRequest:
    handler = asked.take(_CLIENT_HANDLER).rpartition(".")[2]
    if handler and handler not in CLIENT_HANDLERS:
        names = " and ".join(sorted(CLIENT_HANDLERS))
        raise ConfigurationError(f"{_CLIENT_HANDLER}: {MECHANISM} has {names}")
    return asked.msk()


def _request(asked: _Properties) -> TokenRequest:
    handler = asked.take(_HANDLER).rpartition(".")[2]
    wanted = "msk" if handler == LOGIN_HANDLER else _PROVIDERS.get(handler)
    if wanted is None and handler and handler not in _HANDLERS:
        known = ", ".join((*_PROVIDERS, *_HANDLERS, LOGIN_HANDLER))
        raise ConfigurationError(
            f"{_HANDLER}: kafkaio has no classes of Java, and none of this name; it "
            f"has {known}; {_PROVIDER} for your own"
        )
    if wanted == "msk":
        asked.take(_CLIENT_HANDLER)  # the same class, which serves both sides in Java
        return asked.msk()
    found = _by_oauth(asked, handler)
    if wanted is not None and found.kind != wanted:
        raise ConfigurationError(
            f"{_HANDLER}: {handler} needs {_NEEDS[wanted]}, and what is given is for "
            f"{next(name for name, kind in _PROVIDERS.items() if kind == found.kind)}"
        )
    return found


def _by_oauth(asked: _Properties, handler: str) -> TokenRequest:
    method = asked.take(f"{_OAUTH}method").lower() or "oidc"
    if method != "oidc":
        raise ConfigurationError(f"{_OAUTH}method is not oidc: {_PROVIDER}")
    url = asked.take(f"{_OAUTH}token.endpoint.url")
    if not url:
        if _HANDLERS.get(handler, False):
            raise ConfigurationError(f"{_OAUTH}token.endpoint.url is missing")
        wanted = _PROVIDERS.get(handler, "unsecured")
        if wanted != "unsecured":
            raise ConfigurationError(f"{_HANDLER}: {handler} needs {_NEEDS[wanted]}")
        return _unsecured(asked)
    if asked.flag(f"{_OAUTH}header.urlencode"):
        raise ConfigurationError(
            f"{_OAUTH}header.urlencode: kafkaio sends id and secret as they are; "
            f"{_PROVIDER}"
        )
    return _from_url(asked, url)


def _unsecured(asked: _Properties) -> TokenRequest:
    claims = asked.of_module(_UNSECURED)
    principal = claims.get("StringClaim_sub")
    if not principal:
        raise ConfigurationError(
            f"OAUTHBEARER needs {_OAUTH}token.endpoint.url, or {_JAAS} with "
            f"{_UNSECURED}StringClaim_sub for tokens that nobody signed"
        )
    life = claims.get("LifetimeSeconds", "3600")
    if not life.isdecimal():
        raise ConfigurationError(f"{_UNSECURED}LifetimeSeconds is not an integer")
    return TokenRequest(kind="unsecured", principal=principal, lifetime=int(life))


def _from_url(asked: _Properties, url: str) -> TokenRequest:
    retriever = asked.take(f"{_OAUTH}jwt.retriever.class").rpartition(".")[2]
    scope = asked.take(f"{_OAUTH}scope", module="scope")
    extensions = _extensions(asked)
    assertion = _assertion(asked)
    client_id, client_secret = (
        asked.take(
            f"{_OAUTH}client.credentials.client.{name}",
            f"{_OAUTH}client.{name}",
            module=f"client{name.capitalize()}",
        )
        for name in ("id", "secret")
    )
    kind = _kind(asked, retriever, url, has_assertion=assertion is not None)
    if kind == "file":
        return TokenRequest(kind=kind, url=url.removeprefix("file://"))
    if kind in {"client credentials", "client assertion"} and not client_id:
        raise ConfigurationError(f"{_OAUTH}client.credentials.client.id is missing")
    if kind == "client credentials" and not client_secret:
        raise ConfigurationError(f"{_OAUTH}client.credentials.client.secret is missing")
    return TokenRequest(
        kind=kind,
        url=url,
        client_id=client_id,
        client_secret=client_secret,
        scope=scope,
        extensions=extensions,
        assertion=assertion,
    )


def _kind(
    asked: _Properties, retriever: str, url: str, *, has_assertion: bool
) -> TokenKind:
    grant = asked.take(f"{_OAUTH}grant.type").lower()
    if grant not in {"", "client_credentials", _BEARER_GRANT}:
        raise ConfigurationError(
            f"{_OAUTH}grant.type is neither client_credentials nor {_BEARER_GRANT}: "
            f"{_PROVIDER}"
        )
    if grant == _BEARER_GRANT or retriever == "JwtBearerJwtRetriever":
        if not has_assertion:
            raise ConfigurationError(
                f"{_ASSERTION}file or {_ASSERTION}private.key.file is missing"
            )
        return "JWT bearer"
    known = {"", "DefaultJwtRetriever", "FileJwtRetriever"}
    if retriever not in {*known, "ClientCredentialsJwtRetriever"}:
        raise ConfigurationError(f"{_OAUTH}jwt.retriever.class: {_PROVIDER}")
    if retriever in known and url.startswith("file:"):
        return "file"
    return "client assertion" if has_assertion else "client credentials"


def _extensions(asked: _Properties) -> tuple[tuple[str, str], ...]:
    found = asked.of_module("extension_")
    text = asked.take(f"{_OAUTH}extensions")
    for pair in filter(None, text.split(",")):
        name, sign, value = pair.partition("=")
        if not sign:
            raise ConfigurationError(f"{_OAUTH}extensions: use name=value,name=value")
        found[name.strip()] = value.strip()
    return tuple(found.items())


def _assertion(asked: _Properties) -> AssertionFacts | None:
    facts = AssertionFacts(
        file=asked.take(f"{_ASSERTION}file"),
        key_file=asked.take(f"{_ASSERTION}private.key.file"),
        passphrase=asked.take(f"{_ASSERTION}private.key.passphrase"),
        algorithm=asked.take(f"{_ASSERTION}algorithm").upper() or "RS256",
        claims=tuple(
            (name, value)
            for name in ("aud", "iss", "sub")
            if (value := asked.take(f"{_ASSERTION}claim.{name}"))
        ),
        lifetime=asked.number(f"{_ASSERTION}claim.exp.seconds", 300),
        leeway=asked.number(f"{_ASSERTION}claim.nbf.seconds", 60),
        has_id=asked.flag(f"{_ASSERTION}claim.jti.include"),
        template_file=asked.take(f"{_ASSERTION}template.file"),
    )
    if facts.file and facts.key_file:
        raise ConfigurationError(
            f"give {_ASSERTION}file or {_ASSERTION}private.key.file, not both"
        )
    return facts if facts.file or facts.key_file else None
