"""The properties of Confluent's clients of a registry, as arguments of `Registry`.

Names are those of the Java client and of confluent-kafka for Python, with the prefix
``schema.registry.`` or without. A property that has no effect here is an error that
says where it belongs. No error shows a secret.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from kafkaio._config import ConsumerConfig, ProducerConfig
from kafkaio._config.declaration import wrong_value
from kafkaio._config.login_properties import TokenRequest, read_login
from kafkaio._config.shown import shown_name
from kafkaio._config.unknown import nearest
from kafkaio.errors import ConfigurationError
from kafkaio.registry._tls import RegistryTls
from kafkaio.security._providers import ClientCredentials, provider_for

_PREFIX: Final = "schema.registry."
_SSL: Final = "ssl."
_SASL: Final = "sasl."
_HEADER: Final = "request.header."
#: Other names of the same.
_ALIASES: Final = {
    "latest.cache.ttl.sec": "cache.latest.ttl.sec",
    "missing.id.cache.ttl.sec": "cache.unknown.ttl.sec",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.certificates",
}
_SOURCES: Final = ("USER_INFO", "URL", "SASL_INHERIT")
_BEARER_SOURCES: Final = ("STATIC_TOKEN", "OAUTHBEARER", "SASL_OAUTHBEARER_INHERIT")
_OWN_PROVIDER: Final = "pass bearer_token= an async callable that returns a Token"
_TIMEOUT: Final = "use request.timeout.ms, for a call with all its attempts, instead"
_PAUSES: Final = "leave it out: pauses between attempts grow from 0.1 s to 2 s"
_STRATEGY: Final = "use subject= of Avro, JsonSchema and Protobuf"
#: Properties that are not for `Registry`, and what to use.
_ELSEWHERE: Final = {
    "auto.register.schemas": "use register= of Avro, JsonSchema and Protobuf",
    "use.latest.version": "use use_latest= of Avro, JsonSchema and Protobuf",
    "use.latest.with.metadata": "it is not in kafkaio",
    "latest.compatibility.strict": "it is not in kafkaio",
    "id.compatibility.strict": "it is not in kafkaio",
    "normalize.schemas": "use normalize= of Avro, JsonSchema and Protobuf",
    "use.schema.id": "use schema_id= of Avro, JsonSchema and Protobuf",
    "subject.name.strategy": _STRATEGY,
    "subject.name.strategy.type": _STRATEGY,
    "key.subject.name.strategy": _STRATEGY,
    "value.subject.name.strategy": _STRATEGY,
    "specific.avro.reader": "pass a class to Avro, and values have this type",
    "avro.reader.schema": "use reader_schema= of Avro",
    "schema.format": "pass a class or a schema to Avro, JsonSchema and Protobuf",
    "key.schema.id.serializer": "use wire= of Avro, JsonSchema and Protobuf",
    "value.schema.id.serializer": "use wire= of Avro, JsonSchema and Protobuf",
    "http.connect.timeout.ms": _TIMEOUT,
    "http.read.timeout.ms": _TIMEOUT,
    "retries.wait.ms": _PAUSES,
    "retries.max.wait.ms": _PAUSES,
    "max.schemas.per.subject": "use cache.capacity instead",
    "latest.cache.size": "use cache.capacity instead",
    "missing.cache.size": "use cache.capacity instead",
    "bearer.auth.custom.provider.class": _OWN_PROVIDER,
    "bearer.auth.custom.provider.function": _OWN_PROVIDER,
    "bearer.auth.cache.expiry.buffer.seconds": (
        "leave it out: a token is used for 0.72 to 0.8 of its life"
    ),
}
_KNOWN: Final = (
    *("url", "basic.auth.credentials.source", "basic.auth.user.info"),
    *("bearer.auth.credentials.source", "bearer.auth.token"),
    *("bearer.auth.issuer.endpoint.url", "bearer.auth.client.id"),
    *("bearer.auth.client.secret", "bearer.auth.scope"),
    *("bearer.auth.logical.cluster", "bearer.auth.identity.pool.id"),
    *("request.timeout.ms", "timeout", "max.retries", "cache.capacity"),
    *("cache.latest.ttl.sec", "cache.unknown.ttl.sec"),
    *("proxy", "proxy.host", "proxy.port"),
)
_TLS: Final = tuple(
    f"{_SSL}{each.name.replace('_', '.')}" for each in fields(RegistryTls)
)


def read_properties(properties: Mapping[str, object]) -> dict[str, Any]:
    """Return the arguments of `Registry` that properties describe.

    Raises:
        ConfigurationError: a property is unknown, belongs elsewhere or cannot be read.
    """
    given: object = properties
    if not isinstance(given, Mapping):
        kind = type(given).__name__
        raise ConfigurationError(f"properties must be a mapping, not {kind}")
    asked = _Properties(given)
    url = asked.text("url")
    if not url:
        raise ConfigurationError("schema.registry.url is missing")
    arguments: dict[str, Any] = {
        "url": url,
        **_numbers(asked),
        **_logins(asked),
        **_headers(asked),
        "proxy": _proxy(asked),
        "tls": _tls(asked),
    }
    asked.check_all_read()
    return {name: value for name, value in arguments.items() if value is not None}


class _Properties:
    """Properties by their short names; each is read once."""

    def __init__(self, properties: Mapping[object, object]) -> None:
        self._values: dict[str, object] = {}
        for name, value in properties.items():
            if not isinstance(name, str):
                kind = type(name).__name__
                raise ConfigurationError(f"properties: a name is {kind}, not str")
            short = name.removeprefix(_PREFIX)
            short = _ALIASES.get(short, short)
            if short in self._values:
                raise ConfigurationError(f"{_PREFIX}{short} is given twice")
            self._values[short] = value

    def text(self, name: str) -> str:
        """Return the text of a property; empty if it is not there."""
        value = self._values.pop(name, None)
        if value is None:
            return ""
        if isinstance(value, list | tuple) and name == "url":
            return ",".join(map(str, value))
        if not isinstance(value, str):
            raise wrong_value(name, value, "is not a text")
        return value.strip()

    def number(self, name: str) -> float | None:
        """Return the number of a property; None if it is not there."""
        value = self._values.pop(name, None)
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                raise wrong_value(name, value, "is not a number") from None
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise wrong_value(name, value, "is not a number")
        if math.isnan(value):
            raise wrong_value(name, value, "is not a number")
        return value

    def integer(self, name: str) -> int | None:
        """Return the integer of a property; None if it is not there."""
        value = self.number(name)
        if value is not None and not float(value).is_integer():
            raise wrong_value(name, value, "is not an integer")
        return None if value is None else int(value)

    def take(self, prefix: str) -> dict[str, object]:
        """Return all properties with a prefix."""
        names = [name for name in self._values if name.startswith(prefix)]
        return {name: self._values.pop(name) for name in names}

    def check_all_read(self) -> None:
        """See that nothing was given that has no effect.

        Raises:
            ConfigurationError: names the property, and what may be meant.
        """
        for name in self._values:
            if name in _KNOWN:
                raise ConfigurationError(f"{name} has no effect beside the others")
            raise _unknown(name)


def _unknown(name: str) -> ConfigurationError:
    hint = _ELSEWHERE.get(name)
    if hint is not None:
        return ConfigurationError(f"{name} is not a property of Registry: {hint}")
    option = name.replace(".", "_")
    if any(option in {f.name for f in fields(c)} for c in _CLIENTS):
        return ConfigurationError(
            f"{name} is not a property of Registry: pass it to from_properties() of "
            "Producer, Consumer or Client"
        )
    near = nearest(name, (*_KNOWN, *_TLS, *_ALIASES, *_ELSEWHERE))
    meant = f"; did you mean {near!r}?" if near else ""
    return ConfigurationError(f"unknown property {shown_name(name)}{meant}")


_CLIENTS: Final = (ProducerConfig, ConsumerConfig)


def _numbers(asked: _Properties) -> dict[str, object]:
    milliseconds, seconds = asked.number("request.timeout.ms"), asked.number("timeout")
    if milliseconds is not None and seconds is not None:
        raise ConfigurationError("give one of request.timeout.ms and timeout")
    latest = asked.number("cache.latest.ttl.sec")
    return {
        "timeout": seconds if milliseconds is None else milliseconds / 1000,
        "retries": asked.integer("max.retries"),
        "cache_size": asked.integer("cache.capacity"),
        # Java's client keeps it for ever if the number is negative.
        "latest_ttl": math.inf if latest is not None and latest < 0 else latest,
        "unknown_ttl": asked.number("cache.unknown.ttl.sec"),
    }


def _headers(asked: _Properties) -> dict[str, object]:
    found = {
        name.removeprefix(_HEADER): value for name, value in asked.take(_HEADER).items()
    }
    cluster = asked.text("bearer.auth.logical.cluster")
    pool = asked.text("bearer.auth.identity.pool.id")
    if cluster:
        found["target-sr-cluster"] = cluster
    if pool:
        found["Confluent-Identity-Pool-Id"] = pool
    return {"headers": found} if found else {}


def _proxy(asked: _Properties) -> str | None:
    url, host = asked.text("proxy"), asked.text("proxy.host")
    port = asked.integer("proxy.port")
    if url and (host or port is not None):
        raise ConfigurationError("give one of proxy, and proxy.host with proxy.port")
    if not host and port is None:
        return url or None
    if not host or port is None:
        raise ConfigurationError("proxy.host and proxy.port need each other")
    return f"http://{host}:{port}"


def _tls(asked: _Properties) -> RegistryTls | None:
    given = asked.take(_SSL)
    for name in given:
        if name not in _TLS:
            raise _unknown(name)
    # confluent-kafka takes a file that has both.
    if "ssl.certificate.location" in given and "ssl.key.location" not in given:
        given["ssl.keystore.location"] = given.pop("ssl.certificate.location")
    values: dict[str, Any] = {
        name.removeprefix(_SSL).replace(".", "_"): value
        for name, value in given.items()
    }
    return RegistryTls(**values) if values else None


# ---- logins --------------------------------------------------------------------------


def _logins(asked: _Properties) -> dict[str, object]:
    source = asked.text("basic.auth.credentials.source").upper()
    bearer = asked.text("bearer.auth.credentials.source").upper()
    if source and bearer:
        raise ConfigurationError(
            "give one of basic.auth.credentials.source and "
            "bearer.auth.credentials.source"
        )
    sasl = asked.take(_SASL)
    inherits = "SASL_INHERIT" in source or "_INHERIT" in bearer
    if sasl and not inherits:
        raise _unknown(next(iter(sasl)))
    found = _basic(asked, source, sasl)
    if not source:
        found |= _bearer(asked, bearer, sasl)
    return found


def _basic(
    asked: _Properties, source: str, sasl: Mapping[str, object]
) -> dict[str, object]:
    if source and source not in _SOURCES:
        raise ConfigurationError(
            f"basic.auth.credentials.source is not one of {', '.join(_SOURCES)}"
        )
    info = asked.text("basic.auth.user.info")
    if source == "SASL_INHERIT":
        return {"basic_auth": _of_sasl(sasl)}
    if source == "URL" and info:
        raise ConfigurationError(
            "basic.auth.user.info has no effect with basic.auth.credentials.source=URL"
        )
    if not info:
        if source == "USER_INFO":
            raise ConfigurationError("basic.auth.user.info is missing")
        return {}
    user, colon, password = info.partition(":")
    if not colon:
        raise ConfigurationError("basic.auth.user.info has not the form user:password")
    return {"basic_auth": (user, password)}


def _of_sasl(sasl: Mapping[str, object]) -> tuple[str, str]:
    options, rest = read_login(sasl)
    user = options.get("sasl_username", rest.get("sasl.username"))
    password = options.get("sasl_password", rest.get("sasl.password"))
    if not isinstance(user, str) or not isinstance(password, str):
        raise ConfigurationError(
            "basic.auth.credentials.source=SASL_INHERIT needs sasl.username and "
            "sasl.password, or sasl.jaas.config with sasl.mechanism"
        )
    return user, password


def _bearer(
    asked: _Properties, source: str, sasl: Mapping[str, object]
) -> dict[str, object]:
    if source and source not in _BEARER_SOURCES:
        raise ConfigurationError(
            f"bearer.auth.credentials.source is not one of "
            f"{', '.join(_BEARER_SOURCES)}: {_OWN_PROVIDER} for others"
        )
    token = asked.text("bearer.auth.token")
    url = asked.text("bearer.auth.issuer.endpoint.url")
    client = asked.text("bearer.auth.client.id")
    secret = asked.text("bearer.auth.client.secret")
    scope = asked.text("bearer.auth.scope")
    if source == "SASL_OAUTHBEARER_INHERIT":
        options, _ = read_login(sasl)
        request = options.get("sasl_oauth_token_provider")
        if not isinstance(request, TokenRequest):
            raise ConfigurationError(
                f"bearer.auth.credentials.source={source} needs "
                "sasl.mechanism=OAUTHBEARER and sasl.oauthbearer.*"
            )
        return {"bearer_token": provider_for(request)}
    if source == "STATIC_TOKEN" or (token and not source):
        if not token:
            raise ConfigurationError("bearer.auth.token is missing")
        return {"bearer_token": token}
    if not source and not url:
        return {}
    if not (url and client and secret):
        raise ConfigurationError(
            "bearer.auth.credentials.source=OAUTHBEARER needs "
            "bearer.auth.issuer.endpoint.url, bearer.auth.client.id and "
            "bearer.auth.client.secret"
        )
    return {"bearer_token": ClientCredentials(url, client, secret, scope=scope)}
