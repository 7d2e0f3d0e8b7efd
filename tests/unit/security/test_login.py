"""The login of a client: what it is made of, and what a provider may do wrong."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable

import pytest

from kafkaio._config import ClientConfig, ConsumerConfig, ProducerConfig
from kafkaio._machines.sasl.plain import Plain
from kafkaio._machines.sasl.scram import Scram
from kafkaio.errors import AuthenticationError, ConfigurationError
from kafkaio.security._gssapi import explain
from kafkaio.security._login import LoginPort, login_for
from kafkaio.types import Token

SECRET = "pencil-0451"


def config(**given: object) -> ClientConfig:
    options: dict[str, object] = {"security_protocol": "SASL_SSL", **given}
    return ClientConfig(**options)  # type: ignore[arg-type]


def logged_in(**given: object) -> LoginPort:
    return login_for(config(**given))


PASSWORD = {"sasl_username": "user", "sasl_password": SECRET}


async def test_plain() -> None:
    login = logged_in(sasl_mechanism="PLAIN", **PASSWORD)
    assert login.mechanism == "PLAIN"
    mechanism = await login.begin("host")
    assert isinstance(mechanism, Plain)
    assert mechanism.begin() == f"\0user\0{SECRET}".encode()
    assert SECRET not in repr(login) + repr(mechanism)


@pytest.mark.parametrize("name", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_scram(name: str) -> None:
    login = logged_in(sasl_mechanism=name, **PASSWORD)
    one, other = await login.begin("host"), await login.begin("host")
    assert isinstance(one, Scram)
    assert (login.mechanism, one.name) == (name, name)
    first = one.begin()
    assert isinstance(first, bytes)
    assert first.startswith(b"n,,n=user,r=")
    assert first != other.begin(), "a nonce is used once"
    assert SECRET not in repr(login) + repr(one)


async def test_a_delegation_token() -> None:
    login = logged_in(
        sasl_mechanism="SCRAM-SHA-256", sasl_delegation_token=True, **PASSWORD
    )
    first = (await login.begin("host")).begin()
    assert isinstance(first, bytes)
    assert first.endswith(b",tokenauth=true")


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("name", ["sasl_username", "sasl_password"])
def test_a_text_that_utf_8_cannot_encode(mechanism: str, name: str) -> None:
    broken = f"{SECRET}\ud800"
    options = {**PASSWORD, name: broken}
    with pytest.raises(
        ConfigurationError, match=f"{name} .*not Unicode text"
    ) as caught:
        logged_in(sasl_mechanism=mechanism, **options)
    assert_hidden(caught.value)


def assert_hidden(error: BaseException) -> None:
    """No line of the traceback but source code has the secret."""
    shown = "".join(traceback.format_exception(error)) + repr(error)
    assert SECRET not in shown
    assert error.__cause__ is None or SECRET not in str(error)


# ---- OAUTHBEARER ---------------------------------------------------------------------


def bearer(make: Callable[[], object]) -> LoginPort:
    async def provider() -> object:
        return make()

    return logged_in(sasl_mechanism="OAUTHBEARER", sasl_oauth_token_provider=provider)


async def test_a_token() -> None:
    login = bearer(lambda: Token(value=SECRET, expires=time.time() + 60))
    mechanism = await login.begin("host")
    assert login.mechanism == mechanism.name == "OAUTHBEARER"
    assert mechanism.begin() == f"n,,\x01auth=Bearer {SECRET}\x01\x01".encode()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (None, "returned NoneType, and not Token"),
        (SECRET, "returned str, and not Token"),
        (Token(value=SECRET.encode(), expires=9e9), "token of type bytes"),  # type: ignore[arg-type]
        (Token(value=SECRET, expires="soon"), "not a number"),  # type: ignore[arg-type]
        (Token(value=SECRET, expires=float("nan")), "not a number"),
        (Token(value=SECRET, expires=0), r"expired .* s ago"),
        (Token(value=SECRET, expires=9e9, extensions=[1]), "extensions"),  # type: ignore[arg-type]
        (Token(value=SECRET, expires=9e9, extensions={"a": 1}), "extensions"),  # type: ignore[dict-item]
    ],
)
async def test_what_is_no_usable_token(given: object, text: str) -> None:
    with pytest.raises(AuthenticationError, match=text) as caught:
        await bearer(lambda: given).begin("host")
    assert caught.value.mechanism == "OAUTHBEARER"
    assert "provider" in str(caught.value)
    assert_hidden(caught.value)


async def test_a_provider_that_raises() -> None:
    def fail() -> object:
        raise LookupError(SECRET)

    with pytest.raises(AuthenticationError, match="failed with LookupError") as caught:
        await bearer(fail).begin("host")
    assert isinstance(caught.value.__cause__, LookupError)
    assert SECRET not in str(caught.value)


async def test_the_refusal_of_a_token_server_is_kept() -> None:
    refusal = AuthenticationError("the token server refuses the client")

    def fail() -> object:
        raise refusal

    with pytest.raises(AuthenticationError) as caught:
        await bearer(fail).begin("host")
    assert str(caught.value) == str(refusal)


async def test_a_provider_that_is_an_object() -> None:
    class Provider:
        async def __call__(self) -> object:
            return 7

    login = logged_in(
        sasl_mechanism="OAUTHBEARER", sasl_oauth_token_provider=Provider()
    )
    with pytest.raises(AuthenticationError, match="Provider returned int"):
        await login.begin("host")


# ---- GSSAPI --------------------------------------------------------------------------


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(ConfigurationError, match=r"pip install kafkaio\[gssapi\]"):
        logged_in(sasl_mechanism="GSSAPI")


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("No Kerberos credentials available (default cache: X)", "run kinit"),
        ("No credentials cache found (filename: /tmp/krb5cc_0)", "run kinit"),
        ("Server kafka/x@R not found in Kerberos database", "service_name"),
        ("Ticket expired", "run kinit again"),
        ("Can't find client principal bob@R in cache collection", "no ticket of sasl"),
        ("Cannot contact any KDC for realm 'R'", "can be reached"),
    ],
)
def test_what_kerberos_says_is_explained(said: str, advice: str) -> None:
    text = explain(said, has_keytab=False)
    assert text.startswith(f"{said}: ")
    assert advice in text


def test_a_missing_cache_is_a_missing_key_with_a_keytab() -> None:
    said = "No credentials cache found (filename: MEMORY:kafkaio-1)"
    assert explain(said, has_keytab=True) == (
        "sasl_kerberos_keytab has no key of sasl_kerberos_principal"
    )


def test_what_is_not_known_is_repeated() -> None:
    assert explain("Something else", has_keytab=False) == "Something else"


# ---- options -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ClientConfig, ProducerConfig, ConsumerConfig])
@pytest.mark.parametrize(
    ("options", "text"),
    [
        (PASSWORD, "is not used without security_protocol"),
        ({"security_protocol": "SASL_SSL"}, "needs sasl_mechanism"),
        (
            {
                "security_protocol": "SASL_SSL",
                "sasl_mechanism": "OAUTHBEARER",
                **PASSWORD,
            },
            "has no meaning with",
        ),
    ],
)
def test_options_are_checked_for_each_kind(
    kind: type[ClientConfig], options: dict[str, object], text: str
) -> None:
    with pytest.raises(ConfigurationError, match=text) as caught:
        kind(**options)  # type: ignore[arg-type]
    assert_hidden(caught.value)
