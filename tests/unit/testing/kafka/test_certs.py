"""Certificates that both sides take."""

import socket
import ssl
import threading

import pytest
from cryptography.hazmat.primitives.serialization import pkcs12

from kafkaio.testing._security.files import Certificates
from kafkaio.testing.kafka._certs import make_certificates
from kafkaio.testing.kafka._properties import BrokerTlsFiles


@pytest.fixture(scope="module")
def made(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Certificates, BrokerTlsFiles]:
    return make_certificates(tmp_path_factory.mktemp("tls") / "new", ["bob"])


def test_the_brokers_store_holds_key_and_certificate(
    made: tuple[Certificates, BrokerTlsFiles],
) -> None:
    certificates, tls = made
    key, certificate, _ = pkcs12.load_key_and_certificates(
        tls.keystore.read_bytes(), tls.password.encode()
    )
    assert key is not None
    assert certificate is not None
    assert key.public_key() == certificate.public_key()
    assert tls.truststore.read_bytes()
    assert set(certificates.clients) == {"bob"}


def test_a_clients_context_proves_the_broker_and_the_user(
    made: tuple[Certificates, BrokerTlsFiles],
) -> None:
    certificates, _ = made
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(certificates.clients["bob"])
    server_context.load_verify_locations(certificates.authority)
    server_context.verify_mode = ssl.CERT_REQUIRED
    left, right = socket.socketpair()
    names = []

    def serve() -> None:
        with server_context.wrap_socket(left, server_side=True) as secured:
            subject = secured.getpeercert() or {}
            names.append(dict(pair[0] for pair in subject["subject"]))  # type: ignore[misc]
            secured.send(b"x")

    thread = threading.Thread(target=serve)
    thread.start()
    context = certificates.client_context("bob")
    context.check_hostname = False  # the socket pair has no host
    with context.wrap_socket(right) as secured:
        assert secured.recv(1) == b"x"
    thread.join()
    assert names[0]["commonName"] == "bob"
    assert certificates.client_context().verify_mode is ssl.CERT_REQUIRED
