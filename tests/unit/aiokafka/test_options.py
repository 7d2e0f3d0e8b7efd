"""The options that all classes share."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import Mapping
from typing import Any

import pytest

import kafkaio
from kafkaio.aiokafka._options import check_loop, connection_options, loop_of
from kafkaio.aiokafka.abc import AbstractTokenProvider


def config(**options: Any) -> kafkaio.ClientConfig:
    """What a client of kafkaio makes of options of aiokafka."""
    found = dict(connection_options(client_id="c", **options))
    servers: Any = found.pop("bootstrap_servers")
    return kafkaio.ClientConfig.of(servers, found)


def test_defaults() -> None:
    found = config()
    assert found.bootstrap_servers == (("localhost", 9092),)
    assert found.client_id == "c"
    assert found.request_timeout_ms == 40_000
    assert found.metadata_max_age_ms == 300_000
    assert found.retry_backoff_ms == 100
    assert found.connections_max_idle_ms == 540_000
    assert found.security_protocol == "PLAINTEXT"


@pytest.mark.parametrize(
    ("servers", "expected"),
    [
        ("one", (("one", 9092),)),
        ("one:1,two:2", (("one", 1), ("two", 2))),
        (["one:1", "two"], (("one", 1), ("two", 9092))),
        ("[::1]:3", (("::1", 3),)),
    ],
)
def test_servers(servers: object, expected: object) -> None:
    assert config(bootstrap_servers=servers).bootstrap_servers == expected


def test_times() -> None:
    found = config(
        metadata_max_age_ms=1_000,
        request_timeout_ms=2_000,
        retry_backoff_ms=3_000,
        connections_max_idle_ms=None,
    )
    assert found.metadata_max_age_ms == 1_000
    assert found.request_timeout_ms == 2_000
    assert (found.retry_backoff_ms, found.retry_backoff_max_ms) == (3_000, 3_000)
    assert found.connections_max_idle_ms == 2**31 - 1


def test_row_api_version() -> None:
    """``api_version`` has no effect, as in aiokafka, and is warned of."""
    with pytest.warns(DeprecationWarning, match="api_version"):
        assert "api_version" not in connection_options(
            client_id="c", api_version="auto"
        )


# ---- security ------------------------------------------------------------------------


def test_tls() -> None:
    context = ssl.create_default_context()
    found = config(security_protocol="SSL", ssl_context=context)
    assert (found.security_protocol, found.ssl_context) == ("SSL", context)


def test_options_that_the_protocol_does_not_use_are_left_out() -> None:
    found = config(
        ssl_context=ssl.create_default_context(),
        sasl_plain_username="user",
        sasl_plain_password="secret",
    )
    assert (found.ssl_context, found.sasl_username) == (None, None)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_passwords(mechanism: str) -> None:
    found = config(
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_plain_username="user",
        sasl_plain_password="secret",
    )
    assert found.sasl_mechanism == mechanism
    assert (found.sasl_username, found.sasl_password) == ("user", "secret")


def test_kerberos() -> None:
    found = config(
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="GSSAPI",
        sasl_kerberos_service_name="broker",
    )
    assert found.sasl_kerberos_service_name == "broker"


def test_row_sasl_kerberos_domain_name() -> None:
    """``sasl_kerberos_domain_name`` is refused: the broker's own name is used."""
    with pytest.raises(kafkaio.ConfigurationError, match="sasl_kerberos_domain_name"):
        config(
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="GSSAPI",
            sasl_kerberos_domain_name="elsewhere",
        )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"security_protocol": "TLS"}, "security_protocol"),
        ({"security_protocol": "SSL"}, "ssl_context"),
        ({"security_protocol": "SASL_SSL"}, "ssl_context"),
        (
            {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "NTLM"},
            "sasl_mechanism",
        ),
        ({"security_protocol": "SASL_PLAINTEXT"}, "sasl_plain_username"),
        (
            {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"},
            "sasl_oauth_token_provider",
        ),
    ],
)
def test_impossible_options_are_a_value_error(
    options: Mapping[str, str], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        config(**options)


# ---- tokens --------------------------------------------------------------------------


class Provider(AbstractTokenProvider):
    def __init__(self, token: str, extensions: Mapping[str, str] | None = None) -> None:
        self._token = token
        self._extensions = extensions

    async def token(self) -> str:
        return self._token

    def extensions(self) -> Mapping[str, str]:
        if self._extensions is None:
            return super().extensions()
        return self._extensions


class LooksLikeOne:
    """Providers need not inherit, and need no extensions."""

    async def token(self) -> str:
        return "opaque"


async def token(provider: object) -> kafkaio.types.Token:
    found = config(
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=provider,
    )
    ask = found.sasl_oauth_token_provider
    assert callable(ask)
    return await ask()


def jwt(claims: object) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode()
    return f"e30.{body.rstrip('=')}.sig"


async def test_a_token_tells_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    found = await token(Provider(jwt({"exp": 2_000_000_000}), {"cluster": "one"}))
    assert found.expires == 2_000_000_000
    assert found.extensions == {"cluster": "one"}
    assert found.value.startswith("e30.")


@pytest.mark.parametrize(
    "value",
    [
        *("opaque", "a.b", "a.!!!.c", "a.e30.c", jwt([1]), jwt({"exp": "soon"})),
        f"a.{'A' * 70_000}.c",
    ],
)
async def test_a_token_that_does_not(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: 1_000.0)
    found = await token(Provider(value))
    assert (found.value, found.expires, found.extensions) == (value, 1_060.0, {})


async def test_a_provider_that_only_looks_like_one() -> None:
    assert (await token(LooksLikeOne())).value == "opaque"


# ---- event loops ---------------------------------------------------------------------


def test_no_loop_runs() -> None:
    with pytest.raises(RuntimeError, match="async function"):
        loop_of(None)


async def test_loops() -> None:
    running = asyncio.get_running_loop()
    assert loop_of(None) is running
    check_loop(running)
    other = asyncio.new_event_loop()
    try:
        assert loop_of(other) is other
        with pytest.raises(AssertionError, match="another event loop"):
            check_loop(other)
    finally:
        other.close()
