"""Kerberos for the mechanism GSSAPI: tickets through the library ``gssapi``.

The library is an extra: it is compiled against the system's Kerberos, and loaded with
the first client that needs it. Credentials come from a credentials cache, as ``kinit``
fills it, or from a keytab. With a keytab the tickets are kept in the memory of this
process, one cache for each principal and file, and are fetched again when they end.
"""

from __future__ import annotations

import hashlib
from importlib import import_module
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any, Final

from kafkaio._machines.sasl.gssapi import SecurityContext
from kafkaio.errors import AuthenticationError, ConfigurationError

#: Parts of Kerberos' messages, and advice for each; the first part found counts.
_ADVICE: Final = (
    (
        "Can't find client principal",
        "the credentials cache has no ticket of sasl_kerberos_principal",
    ),
    (
        "not found in Kerberos database",
        "Kerberos does not know that principal; for a broker, compare its principal "
        "with sasl_kerberos_service_name and the broker's name",
    ),
    ("expired", "run kinit again, or give sasl_kerberos_keytab"),
    ("Cannot contact any KDC", "no Kerberos server of the realm can be reached"),
    ("Cannot find KDC", "krb5.conf names no Kerberos server of the realm"),
    ("Clock skew", "the clocks of client and server differ too much"),
)
#: Its messages without a credentials cache, or without a key to fill one.
_NO_CREDENTIALS: Final = ("No Kerberos credentials", "No credentials cache")
_NO_TICKET: Final = (
    "run kinit, or give sasl_kerberos_keytab and sasl_kerberos_principal"
)
_NOT_RENEWED: Final = (
    "sasl_kerberos_keytab gave no new one; Kerberos may no longer know "
    "sasl_kerberos_principal, or its keys have changed"
)
_NO_KEY: Final = "sasl_kerberos_keytab has no key of sasl_kerberos_principal"


def explain(said: str, *, has_keytab: bool) -> str:
    """Return a message of Kerberos, with advice where there is some."""
    if any(part in said for part in _NO_CREDENTIALS):
        # With a keytab, the missing cache is the one in our memory: its name means
        # nothing to the user, and the cause is a missing key.
        return _NO_KEY if has_keytab else f"{said}: {_NO_TICKET}"
    if has_keytab and "expired" in said:
        return f"{said}: {_NOT_RENEWED}"
    for part, advice in _ADVICE:
        if part in said:
            return f"{said}: {advice}"
    return said


class Kerberos:
    """Makes the contexts of one client.

    Args:
        service: the brokers' principal before its host, such as ``kafka``.
        principal: the client's; None for that of the credentials cache.
        keytab: the file with its keys; None for the credentials cache.

    Raises:
        ConfigurationError: the extra ``gssapi`` is not installed.
    """

    def __init__(self, service: str, principal: str | None, keytab: str | None) -> None:
        self._gssapi = _load()
        self._service = service
        self._principal = principal
        self._keytab = keytab
        # Several connections begin at once, each in a thread. Without the lock, each
        # would fetch a ticket, and fill the same cache in memory.
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"<Kerberos service={self._service!r} principal={self._principal!r}>"

    @property
    def has_keytab(self) -> bool:
        """Whether the tickets are fetched by a keytab."""
        return self._keytab is not None

    def context(self, host: str) -> SecurityContext:
        """Return a new context with the broker of that name; it fetches nothing yet."""
        name = host.removesuffix(".")  # of an absolute name; principals have none
        return _Context(self, self._gssapi, f"{self._service}@{name}")

    def credentials(self) -> object:
        """Return the client's credentials; may ask a Kerberos server, so in a thread.

        Raises:
            AuthenticationError: the keytab cannot be read.
            gssapi.exceptions.GSSError: there are no credentials.
        """
        gssapi = self._gssapi
        name = None
        if self._principal is not None:
            kind = gssapi.NameType.kerberos_principal
            name = gssapi.Name(self._principal, name_type=kind)
        if self._keytab is None:
            return gssapi.Credentials(name=name, usage="initiate")
        _check_readable(self._keytab)
        # A cache of its own for each principal and file: two clients of one process
        # must not take each other's tickets.
        identity = f"{self._principal}\0{self._keytab}".encode()
        digest = hashlib.sha256(identity).hexdigest()[:16]
        store = {
            "client_keytab": f"FILE:{self._keytab}",
            "ccache": f"MEMORY:kafkaio-{digest}",
        }
        with self._lock:
            return gssapi.Credentials(name=name, usage="initiate", store=store)


class _Context:
    """A context of the library; a `SecurityContext`. Its parts are made by `step`."""

    def __init__(self, kerberos: Kerberos, gssapi: ModuleType, target: str) -> None:
        self._kerberos = kerberos
        self._gssapi = gssapi
        self._target = target
        # Any: the library has types only where it is installed.
        self._context: Any = None
        self._is_complete = False

    @property
    def is_complete(self) -> bool:
        """See SecurityContext."""
        return self._is_complete

    def step(self, token: bytes | None) -> bytes:
        """See SecurityContext."""
        gssapi = self._gssapi
        try:
            if self._context is None:
                self._context = self._made()
            answer = self._context.step(token)
            # The library cannot say these of a context whose ticket has just ended.
            self._is_complete = bool(self._context.complete)
            flags = self._context.actual_flags if self._is_complete else None
        except gssapi.exceptions.GSSError as error:
            raise self._failed(error) from error
        # We asked for mutual authentication; whether we got it is known at the end. A
        # server without the key of the broker's principal cannot give it.
        mutual = gssapi.RequirementFlag.mutual_authentication
        if flags is not None and not flags & mutual:
            raise AuthenticationError("the broker did not prove who it is")
        return bytes(answer or b"")

    def wrap(self, message: bytes) -> bytes:
        """See SecurityContext."""
        try:
            # Kafka negotiates no security layer: the message is signed and readable
            # (RFC 4752, 3.1).
            return bytes(self._context.wrap(message, encrypt=False).message)
        except self._gssapi.exceptions.GSSError as error:
            raise self._failed(error) from error

    def unwrap(self, message: bytes) -> bytes:
        """See SecurityContext."""
        try:
            return bytes(self._context.unwrap(message).message)
        except self._gssapi.exceptions.GSSError as error:
            raise self._failed(error) from error

    def _made(self) -> object:
        gssapi = self._gssapi
        flag = gssapi.RequirementFlag
        return gssapi.SecurityContext(
            name=gssapi.Name(self._target, name_type=gssapi.NameType.hostbased_service),
            creds=self._kerberos.credentials(),
            mech=gssapi.MechType.kerberos,
            flags=flag.mutual_authentication
            | flag.integrity
            | flag.out_of_sequence_detection,
            usage="initiate",
        )

    def _failed(self, error: Any) -> AuthenticationError:
        # The minor status is Kerberos' own. The major one is about GSS-API, and helps
        # only where Kerberos has no text.
        texts = error.get_all_statuses(error.min_code, False)  # noqa: FBT003
        if not error.min_code or not any(text != "Success" for text in texts if text):
            texts = error.get_all_statuses(error.maj_code, True)  # noqa: FBT003
        said = explain(". ".join(texts), has_keytab=self._kerberos.has_keytab)
        return AuthenticationError(f"Kerberos, {self._target}: {said}")


def _check_readable(keytab: str) -> None:
    try:
        Path(keytab).open("rb").close()
    except OSError as error:
        # Loaded for mistakes alone. The system's error has the path: perhaps a key.
        from kafkaio._config.shown import shown_path

        what = shown_path("sasl_kerberos_keytab", keytab)
        raise AuthenticationError(f"{what} cannot be read: {error.strerror}") from None


def _load() -> ModuleType:
    try:
        return import_module("gssapi")
    except (ImportError, OSError) as error:
        raise ConfigurationError(
            "sasl_mechanism='GSSAPI' needs the package gssapi, which cannot be "
            f"imported ({error}): pip install kafkaio[gssapi]. It is compiled where "
            "there is no wheel for it, which takes gcc and the headers of Kerberos "
            "(libkrb5-dev on Debian, krb5-devel on Fedora)"
        ) from error
