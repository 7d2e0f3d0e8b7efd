"""Certificates for TLS listeners: an authority, a server, a client for each user."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    load_pem_private_key,
    pkcs12,
)

from kafkaio.testing._security.files import Certificates
from kafkaio.testing.kafka._properties import BrokerTlsFiles

_PASSWORD: Final = "kafkaio-testing"  # noqa: S105 - guards a throw-away key
_HOSTS: Final = ("localhost", "127.0.0.1")


def _chain(leaf: trustme.LeafCert) -> Sequence[x509.Certificate]:
    return [
        x509.load_pem_x509_certificate(blob.bytes()) for blob in leaf.cert_chain_pems
    ]


def _write_stores(
    directory: Path, leaf: trustme.LeafCert, authority: Path
) -> BrokerTlsFiles:
    # Brokers of every release read PKCS12; PEM came with 2.7 (KIP-651).
    key = load_pem_private_key(leaf.private_key_pem.bytes(), None)
    certificate, *rest = _chain(leaf)
    secret = BestAvailableEncryption(_PASSWORD.encode())
    keystore, truststore = directory / "server.p12", directory / "trust.p12"
    keystore.write_bytes(
        # trustme's keys are EC or RSA, both of which PKCS12 holds.
        pkcs12.serialize_key_and_certificates(
            b"server",
            key,  # type: ignore[arg-type]  # declared wider than trustme makes it
            certificate,
            rest,
            secret,
        )
    )
    trusted = x509.load_pem_x509_certificate(authority.read_bytes())
    truststore.write_bytes(
        pkcs12.serialize_java_truststore(
            [pkcs12.PKCS12Certificate(trusted, b"authority")], secret
        )
    )
    return BrokerTlsFiles(keystore=keystore, truststore=truststore, password=_PASSWORD)


def make_certificates(
    directory: Path, users: Iterable[str]
) -> tuple[Certificates, BrokerTlsFiles]:
    """Make all files below ``directory``.

    Args:
        directory: Where to write; made if missing.
        users: The users that get a client certificate; its CN is the name.

    Returns:
        What clients use, and what brokers use.
    """
    directory.mkdir(parents=True, exist_ok=True)
    # Every Java reads RSA.
    authority = trustme.CA(key_type=trustme.KeyType.RSA)
    trust_file = directory / "authority.pem"
    authority.cert_pem.write_to_path(trust_file)
    clients = {}
    for user in users:
        # trustme requires an identity; brokers use the common name alone.
        leaf = authority.issue_cert(
            f"{user}@clients.test", common_name=user, key_type=trustme.KeyType.RSA
        )
        clients[user] = directory / f"client-{user}.pem"
        leaf.private_key_and_cert_chain_pem.write_to_path(clients[user])
    server = authority.issue_cert(
        *_HOSTS, common_name="localhost", key_type=trustme.KeyType.RSA
    )
    tls = _write_stores(directory, server, trust_file)
    return Certificates(authority=trust_file, clients=clients), tls
