"""The binding to Kerberos, over a stand-in for the library ``gssapi``.

The library needs a Kerberos server for anything; the nightly tests have one. The
stand-in has the names and the arguments that the binding uses, and nothing else.
"""

from __future__ import annotations

import sys
from enum import IntFlag
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import pytest

from kafkaio._config import ClientConfig
from kafkaio._machines.sasl.gssapi import Gssapi
from kafkaio.errors import AuthenticationError
from kafkaio.security._gssapi import Kerberos
from kafkaio.security._login import login_for


class Flag(IntFlag):
    mutual_authentication = 2
    out_of_sequence_detection = 8
    integrity = 32


class GSSError(Exception):
    """As the library's: a major and a minor status, and texts for both."""

    def __init__(self, minor: str) -> None:
        super().__init__("Major (851968): Unspecified GSS failure")
        self.maj_code, self.min_code = 851968, 1 if minor else 0
        self._texts = {True: ["Unspecified GSS failure"], False: [minor]}

    def get_all_statuses(self, code: int, is_major: bool) -> list[str]:
        assert code == (self.maj_code if is_major else self.min_code)
        return self._texts[is_major]


class Name(NamedTuple):
    text: str
    name_type: str


class Signed(NamedTuple):
    message: bytes


class Library(ModuleType):
    """The stand-in; ``fails`` is what Kerberos says next."""

    NameType = SimpleNamespace(hostbased_service="host", kerberos_principal="user")
    MechType = SimpleNamespace(kerberos="krb5")
    RequirementFlag = Flag
    exceptions = SimpleNamespace(GSSError=GSSError)
    Name = Name

    def __init__(self) -> None:
        super().__init__("gssapi")
        self.fails: str | None = None
        self.has_ended = False
        self.flags = Flag.mutual_authentication
        self.asked: list[dict[str, object]] = []
        self.contexts: list[dict[str, object]] = []

    def check(self) -> None:
        if self.fails is not None:
            raise GSSError(self.fails)

    def Credentials(self, **given: object) -> str:
        self.check()
        self.asked.append(given)
        return "credentials"

    def SecurityContext(self, **given: object) -> Context:
        self.contexts.append(given)
        return Context(self)


class Context:
    def __init__(self, library: Library) -> None:
        self._library = library
        self._is_complete = False

    @property
    def complete(self) -> bool:
        if self._library.has_ended:
            raise GSSError("The referenced context has expired")
        return self._is_complete

    @property
    def actual_flags(self) -> Flag:
        return self._library.flags

    def step(self, token: bytes | None) -> bytes | None:
        self._library.check()
        self._is_complete = token is not None
        return None if self._is_complete else b"AP-REQ"

    def wrap(self, message: bytes, encrypt: bool) -> Signed:
        self._library.check()
        assert not encrypt
        return Signed(b"signed:" + message)

    def unwrap(self, message: bytes) -> Signed:
        self._library.check()
        return Signed(message.removeprefix(b"signed:"))


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    made = Library()
    monkeypatch.setitem(sys.modules, "gssapi", made)
    return made


async def test_a_login(library: Library) -> None:
    login = login_for(
        ClientConfig(
            security_protocol="SASL_SSL",
            sasl_mechanism="GSSAPI",
            sasl_kerberos_service_name="broker",
        )
    )
    mechanism = await login.begin("one.example")
    assert login.mechanism == "GSSAPI"
    assert isinstance(mechanism, Gssapi)
    assert not library.contexts, "nothing is asked before the thread"
    first: Any = mechanism.begin()
    assert first() == b"AP-REQ"
    second: Any = mechanism.receive(b"AP-REP")
    assert second() == b""
    answer = mechanism.receive(b"signed:" + bytes([1, 0, 0, 0]))
    assert answer == b"signed:" + bytes([1, 0, 0, 0])
    assert library.asked == [{"name": None, "usage": "initiate"}]
    (context,) = library.contexts
    assert context == {
        "name": Name("broker@one.example", "host"),
        "creds": "credentials",
        "mech": "krb5",
        "flags": Flag(2 | 8 | 32),
        "usage": "initiate",
    }


def test_a_principal_of_the_credentials_cache(library: Library) -> None:
    Kerberos("kafka", "alice", None).credentials()
    assert library.asked == [{"name": Name("alice", "user"), "usage": "initiate"}]


def test_a_keytab_has_a_cache_of_its_own(library: Library, tmp_path: Path) -> None:
    files = [tmp_path / "a", tmp_path / "b"]
    for file in (*files, files[0]):
        file.write_bytes(b"\5\2")
        Kerberos("kafka", "alice", str(file)).credentials()
    stores: list[Any] = [asked["store"] for asked in library.asked]
    assert stores[0]["client_keytab"] == f"FILE:{files[0]}"
    assert stores[0]["ccache"].startswith("MEMORY:kafkaio-")
    assert stores[0] == stores[2]
    assert stores[0]["ccache"] != stores[1]["ccache"]


@pytest.mark.usefixtures("library")
def test_a_keytab_that_is_not_there() -> None:
    context = Kerberos("kafka", "alice", "/nowhere/keytab").context("h")
    with pytest.raises(AuthenticationError, match="'/nowhere/keytab' cannot be read"):
        context.step(None)
    assert not context.is_complete


def test_what_kerberos_says(library: Library) -> None:
    context = Kerberos("kafka", None, None).context("h.")  # an absolute name
    library.fails = "Ticket expired"
    with pytest.raises(AuthenticationError, match="kafka@h: Ticket expired: run kinit"):
        context.step(None)
    library.fails = None
    assert context.step(None) == b"AP-REQ"
    library.fails = ""
    with pytest.raises(AuthenticationError, match="kafka@h: Unspecified GSS failure"):
        context.unwrap(b"x")
    with pytest.raises(AuthenticationError, match="Unspecified GSS failure"):
        context.wrap(b"x")
    library.fails = "Success"
    with pytest.raises(AuthenticationError, match="Unspecified GSS failure"):
        context.wrap(b"x")


def test_a_keytab_that_gave_no_new_ticket(library: Library, tmp_path: Path) -> None:
    keytab = tmp_path / "keytab"
    keytab.write_bytes(b"\5\2")
    library.fails = "Ticket expired"
    context = Kerberos("kafka", "alice", str(keytab)).context("h")
    with pytest.raises(AuthenticationError, match="may no longer know") as caught:
        context.step(None)
    assert "kinit" not in str(caught.value)


def test_a_ticket_that_ends_within_a_login(library: Library) -> None:
    """The library then cannot say whether the context is complete."""
    context = Kerberos("kafka", None, None).context("h")
    context.step(None)
    library.has_ended = True
    with pytest.raises(AuthenticationError, match="context has expired: run kinit"):
        context.step(b"AP-REP")
    assert not context.is_complete


def test_a_broker_that_does_not_prove_who_it_is(library: Library) -> None:
    library.flags = Flag(0)
    context = Kerberos("kafka", None, None).context("h")
    context.step(None)
    with pytest.raises(AuthenticationError, match="did not prove who it is"):
        context.step(b"AP-REP")


@pytest.mark.usefixtures("library")
def test_its_name() -> None:
    made = Kerberos("kafka", "alice", "/etc/keytab")
    assert repr(made) == "<Kerberos service='kafka' principal='alice'>"
