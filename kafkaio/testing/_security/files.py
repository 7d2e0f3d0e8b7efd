"""Certificates for TLS listeners: an authority, a server, a client for each user."""

from __future__ import annotations

import shutil
import ssl
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kafkaio._public import public
from kafkaio.testing._security.principals import PrincipalRules

_HOSTS: Final = ("localhost", "127.0.0.1", "::1")


@public("kafkaio.testing.kafka")
@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """Files in PEM, for clients.

    Attributes:
        authority: the certificate to trust.
        clients: a client's certificate chain and key in one file, by user.
    """

    authority: Path
    clients: dict[str, Path]

    def client_context(self, user: str | None = None) -> ssl.SSLContext:
        """Return a context that trusts the brokers, and authenticates ``user``."""
        context = ssl.create_default_context(cafile=self.authority)
        if user is not None:
            context.load_cert_chain(self.clients[user])
        return context


class TlsFiles:
    """The TLS files of an embedded broker, in a temporary directory while it runs.

    Args:
        users: who gets a client certificate; its CN is the name.
        hosts: names and addresses for which the brokers' certificate is valid, beside
            those of this machine's loopback.
    """

    def __init__(self, users: Iterable[str], hosts: Iterable[str] = ()) -> None:
        self._users = tuple(users)
        self._hosts = tuple(dict.fromkeys((*_HOSTS, *hosts)))
        self._directory: Path | None = None
        self._certificates: Certificates | None = None
        self._server: Path | None = None

    @property
    def certificates(self) -> Certificates:
        """The files for clients.

        Raises:
            RuntimeError: they have not been made, or are gone.
        """
        if self._certificates is None:
            raise RuntimeError("the certificates exist while the broker runs")
        return self._certificates

    def make(self) -> None:
        """Make all files."""
        # Imported here: only TLS needs the package.
        import trustme

        directory = self._directory = Path(tempfile.mkdtemp(prefix="kafkaio-tls-"))
        authority = trustme.CA()
        trust = directory / "authority.pem"
        authority.cert_pem.write_to_path(trust)
        clients = {}
        for number, user in enumerate(self._users):
            # trustme requires an identity; brokers use the common name alone.
            leaf = authority.issue_cert(f"{number}@clients.test", common_name=user)
            clients[user] = directory / f"client-{number}.pem"
            chain = b"".join(part.bytes() for part in leaf.cert_chain_pems)
            # Java reads keys in PKCS 8 only, and trustme writes another format.
            clients[user].write_bytes(_pkcs8(leaf.private_key_pem.bytes()) + chain)
        server = authority.issue_cert(*self._hosts, common_name="localhost")
        self._server = directory / "server.pem"
        server.private_key_and_cert_chain_pem.write_to_path(self._server)
        self._certificates = Certificates(authority=trust, clients=clients)

    def remove(self) -> None:
        """Remove all files. May be called again."""
        self._certificates = None
        directory, self._directory = self._directory, None
        if directory is not None:
            shutil.rmtree(directory, ignore_errors=True)

    def listener(
        self, rules: PrincipalRules, *, wants_certificate: bool
    ) -> ListenerTls:
        """The TLS settings of a listener."""
        return ListenerTls(self, rules, wants_certificate=wants_certificate)

    def server_context(self, *, wants_certificate: bool) -> ssl.SSLContext:
        """A context for the broker's side."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        assert self._server is not None
        context.load_cert_chain(self._server)
        if wants_certificate:
            context.load_verify_locations(self.certificates.authority)
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def _pkcs8(key: bytes) -> bytes:
    """A private key as Java reads it from PEM."""
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        load_pem_private_key,
    )

    loaded = load_pem_private_key(key, None)
    return loaded.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


class ListenerTls:
    """The TLS settings of one listener.

    Args:
        files: the broker's files.
        rules: make the principal of a certificate's subject.
        wants_certificate: whether clients need a certificate.
    """

    def __init__(
        self, files: TlsFiles, rules: PrincipalRules, *, wants_certificate: bool
    ) -> None:
        self._files = files
        self._rules = rules
        self._wants_certificate = wants_certificate
        self._context: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext:
        """The context for a new connection."""
        # Made on first use, when the broker has made its files.
        if self._context is None:
            self._context = self._files.server_context(
                wants_certificate=self._wants_certificate
            )
        return self._context

    def principal(self, certificate: bytes | None) -> str | None:
        """The principal of a client's certificate in DER; None without one."""
        if not certificate:
            return None
        return f"User:{self._rules.of(certificate)}"
