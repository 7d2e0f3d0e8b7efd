"""The options that all classes of aiokafka share, as options of kafkaio."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import ssl
import time
import traceback
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence

import kafkaio
from kafkaio.aiokafka.abc import AbstractTokenProvider
from kafkaio.security import Token

_PROTOCOLS = ("SSL", "PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS = ("PLAIN", "GSSAPI", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
#: The longest time that an option of kafkaio can have, in milliseconds.
_NEVER = 2**31 - 1
#: Seconds after which a token that does not tell its end is asked for again.
_TOKEN_LIFE = 60.0
#: The largest part of a token that is read for its end, in characters.
_LARGEST_CLAIMS = 65_536


class ConnectionOptions(kafkaio.ClientOptions, total=False):
    """Options of kafkaio, with the servers among them."""

    bootstrap_servers: str | Sequence[str]


def connection_options(  # noqa: PLR0913 - the options of aiokafka
    *,
    bootstrap_servers: str | Sequence[str] = "localhost",
    client_id: str,
    metadata_max_age_ms: int = 300_000,
    request_timeout_ms: int = 40_000,
    retry_backoff_ms: int = 100,
    api_version: str | None = None,
    security_protocol: str = "PLAINTEXT",
    ssl_context: ssl.SSLContext | None = None,
    connections_max_idle_ms: int | None = 540_000,
    sasl_mechanism: str = "PLAIN",
    sasl_plain_username: str | None = None,
    sasl_plain_password: str | None = None,
    sasl_kerberos_service_name: str = "kafka",
    sasl_kerberos_domain_name: str | None = None,
    sasl_oauth_token_provider: AbstractTokenProvider | None = None,
) -> ConnectionOptions:
    """Return the options of kafkaio for those of aiokafka.

    Options of TLS and of SASL that the protocol does not use are left out, as aiokafka
    does not look at them.

    Raises:
        ValueError: aiokafka would refuse the option, too, or kafkaio has nothing like
            it: then it is a `kafkaio.ConfigurationError`, which names the option.
    """
    if api_version is not None:
        warnings.warn(
            "api_version has no effect: the client asks each broker what it supports",
            DeprecationWarning,
            stacklevel=3,
        )
    options: ConnectionOptions = {
        "bootstrap_servers": bootstrap_servers,
        "client_id": client_id,
        "metadata_max_age_ms": metadata_max_age_ms,
        "request_timeout_ms": request_timeout_ms,
        "retry_backoff_ms": retry_backoff_ms,
        "retry_backoff_max_ms": max(1_000, retry_backoff_ms),
        "connections_max_idle_ms": connections_max_idle_ms or _NEVER,
    }
    match security_protocol:
        case "PLAINTEXT" | "SSL" | "SASL_PLAINTEXT" | "SASL_SSL":
            options["security_protocol"] = security_protocol
        case _:
            raise kafkaio.ConfigurationError(
                f"security_protocol is {security_protocol!r}: use one of "
                f"{', '.join(_PROTOCOLS)}"
            )
    if security_protocol.endswith("SSL"):
        if ssl_context is None:
            raise kafkaio.ConfigurationError(
                f"security_protocol={security_protocol!r} needs ssl_context; "
                "aiokafka.helpers.create_ssl_context() makes one"
            )
        options["ssl_context"] = ssl_context
    if security_protocol.startswith("SASL_"):
        login = _login(
            sasl_mechanism,
            user=sasl_plain_username,
            password=sasl_plain_password,
            service=sasl_kerberos_service_name,
            domain=sasl_kerberos_domain_name,
            provider=sasl_oauth_token_provider,
        )
        return {**options, **login}
    return options


def _login(
    mechanism: str,
    *,
    user: str | None,
    password: str | None,
    service: str,
    domain: str | None,
    provider: AbstractTokenProvider | None,
) -> kafkaio.ClientOptions:
    match mechanism:
        case "PLAIN" | "SCRAM-SHA-256" | "SCRAM-SHA-512":
            if user is None or password is None:
                raise kafkaio.ConfigurationError(
                    f"sasl_mechanism={mechanism!r} needs sasl_plain_username and "
                    "sasl_plain_password"
                )
            return {
                "sasl_mechanism": mechanism,
                "sasl_username": user,
                "sasl_password": password,
            }
        case "OAUTHBEARER":
            if provider is None:
                raise kafkaio.ConfigurationError(
                    "sasl_mechanism='OAUTHBEARER' needs sasl_oauth_token_provider"
                )
            return {
                "sasl_mechanism": mechanism,
                "sasl_oauth_token_provider": _asking(provider),
            }
        case "GSSAPI":
            if domain is not None:
                raise kafkaio.ConfigurationError(
                    "sasl_kerberos_domain_name: kafkaio always asks for the service by "
                    "the name of the broker that it connects to"
                )
            return {
                "sasl_mechanism": mechanism,
                "sasl_kerberos_service_name": service,
            }
        case _:
            raise kafkaio.ConfigurationError(
                f"sasl_mechanism is {mechanism!r}: use one of {', '.join(_MECHANISMS)}"
            )


def _asking(provider: AbstractTokenProvider) -> Callable[[], Awaitable[Token]]:
    """Return a function that asks a provider of aiokafka for a token of kafkaio."""

    async def ask() -> Token:
        value = await provider.token()
        # Providers need not inherit from the class of `kafkaio.aiokafka.abc`.
        extensions: Mapping[str, str] = getattr(provider, "extensions", dict)()
        now = time.time()  # noqa: TID251 - an hour of the calendar, as tokens have it
        ends = _end_of(value)
        return Token(
            value=value,
            expires=now + _TOKEN_LIFE if ends is None else ends,
            extensions={str(name): str(each) for name, each in extensions.items()},
        )

    return ask


def _end_of(token: str) -> float | None:
    """Return the claim ``exp`` of a JSON Web Token; None if it is none, or has none."""
    parts = token.split(".")
    if len(parts) != 3 or len(parts[1]) > _LARGEST_CLAIMS:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=="))
    except (binascii.Error, ValueError, RecursionError):
        return None
    ends = claims.get("exp") if isinstance(claims, dict) else None
    return float(ends) if isinstance(ends, int | float) else None


def loop_of(loop: asyncio.AbstractEventLoop | None) -> asyncio.AbstractEventLoop:
    """Return the event loop of a new object: the running one, unless one is given.

    Raises:
        RuntimeError: none is running.
    """
    if loop is not None:
        return loop
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "The object should be created within an async function, or be given a loop"
        ) from None


def deprecated_loop(
    loop: asyncio.AbstractEventLoop | None,
) -> asyncio.AbstractEventLoop:
    """Return `loop_of` for a constructor, and warn its caller of a given loop."""
    if loop is not None:
        warnings.warn(
            "The loop parameter is deprecated: the running event loop is used",
            DeprecationWarning,
            stacklevel=3,
        )
    return loop_of(loop)


def warn_unclosed(
    unclosed: object,
    kind: str,
    loop: asyncio.AbstractEventLoop,
    created: traceback.StackSummary | None,
    warn: Callable[..., None],
) -> None:
    """Warn, as aiokafka does, of an object that is collected and was never stopped.

    Args:
        unclosed: the object.
        kind: ``consumer`` or ``producer``.
        loop: its event loop, whose exception handler is called.
        created: where it was made, if the loop is in debug mode.
        warn: `warnings.warn`; modules may be gone when an object is collected.
    """
    message = f"Unclosed AIOKafka{kind.capitalize()}"
    warn(f"{message} {unclosed!r}", ResourceWarning, source=unclosed)
    context: dict[str, object] = {kind: unclosed, "message": message}
    if created is not None:
        context["source_traceback"] = created
    loop.call_exception_handler(context)


def check_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Check that an object is started on its event loop.

    Raises:
        AssertionError: it is not.
    """
    if asyncio.get_running_loop() is not loop:
        raise AssertionError("the object belongs to another event loop")
