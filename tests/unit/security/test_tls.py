"""TLS settings from options: what is refused, what is read again, what is left."""

import asyncio
import builtins
import datetime
import logging
import os
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12

import kafkaio
from kafkaio._config import ClientConfig
from kafkaio.errors import ConfigurationError
from kafkaio.security._tls import contexts_for

PASSWORD = "s3cret-Pa55"
ENCRYPTION = serialization.BestAvailableEncryption(PASSWORD.encode())
NONE = serialization.NoEncryption()


class Files:
    """An authority, and the files of a client that it certified."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = trustme.CA()
        self.leaf = self.authority.issue_cert("alice", "localhost")
        self.chain = b"".join(pem.bytes() for pem in self.leaf.cert_chain_pems)
        self.secret = serialization.load_pem_private_key(
            self.leaf.private_key_pem.bytes(), None
        )
        self.key = self.pem(NONE)
        self.ca = self.write("ca.pem", self.authority.cert_pem.bytes())

    def pem(
        self,
        encryption: serialization.KeySerializationEncryption,
        form: serialization.PrivateFormat = serialization.PrivateFormat.PKCS8,
    ) -> bytes:
        return self.secret.private_bytes(serialization.Encoding.PEM, form, encryption)

    def write(self, name: str, content: bytes) -> str:
        path = self.folder / name
        path.write_bytes(content)
        return str(path)

    def store(
        self,
        name: str = "client.p12",
        encryption: serialization.KeySerializationEncryption = ENCRYPTION,
        *,
        key: bool = True,
        certificate: bool = True,
    ) -> str:
        found = x509.load_pem_x509_certificates(self.chain)
        authority = x509.load_pem_x509_certificate(self.authority.cert_pem.bytes())
        content = pkcs12.serialize_key_and_certificates(
            b"alice",
            self.secret if key else None,  # type: ignore[arg-type]
            found[0] if certificate else None,
            [*found[1:], authority],
            encryption,
        )
        return self.write(name, content)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture(autouse=True)
def nothing_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    before = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
    yield
    assert not list(folder.iterdir())
    if before:
        assert len(os.listdir("/proc/self/fd")) <= len(before)


@pytest.fixture(params=["memory", "disk"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where a key is for a moment: as on Linux, and as on other systems."""
    if request.param == "disk":
        monkeypatch.delattr(os, "memfd_create", raising=False)
    return str(request.param)


def context(**options: Any) -> ssl.SSLContext:
    made = contexts_for(ClientConfig(security_protocol="SSL", **options))
    assert made is not None
    return made()


def refused(match: str, **options: Any) -> str:
    with pytest.raises(ConfigurationError, match=match) as caught:
        context(**options)
    text = str(caught.value)
    assert PASSWORD not in text
    assert "not-it" not in text
    return text


def name_seen(client: ssl.SSLContext, files: Files, host: str = "localhost") -> str:
    """Shake hands in memory; the name in the certificate that the client shows."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.verify_mode = ssl.CERT_OPTIONAL
    files.authority.configure_trust(server)
    files.authority.issue_cert("localhost").configure_cert(server)
    ends = [ssl.MemoryBIO() for _ in range(2)]
    one = client.wrap_bio(ends[0], ends[1], server_hostname=host)
    two = server.wrap_bio(ends[1], ends[0], server_side=True)
    for _ in range(4):
        for end in one, two:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    shown = two.getpeercert()
    return shown["subjectAltName"][0][1] if shown else ""  # type: ignore[index,return-value]


# ---- which options go together ---------------------


def test_without_tls_there_are_no_settings() -> None:
    assert contexts_for(ClientConfig()) is None
    login = ClientConfig(
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_username="u",
        sasl_password="p",
    )
    assert contexts_for(login) is None


@pytest.mark.parametrize(
    "option", ["ssl_truststore_location", "ssl_key_password", "ssl_keystore_type"]
)
def test_options_without_tls_are_refused(option: str) -> None:
    config = ClientConfig(**{option: "PEM"})  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=f"{option} has no effect with"):
        contexts_for(config)


def test_a_client_refuses_them_when_it_is_made() -> None:
    async def make() -> None:
        async with kafkaio.Client(
            "localhost:1", security_protocol="SSL", ssl_truststore_location="missing"
        ):
            pass

    with pytest.raises(ConfigurationError, match="No such file"):
        asyncio.run(make())


def test_a_context_is_used_as_it_is() -> None:
    own = ssl.create_default_context()
    assert context(ssl_context=own) is own
    refused("has no effect beside ssl_context", ssl_context=own, ssl_key_password="x")
    refused(
        "ssl_endpoint_identification_algorithm has no effect beside",
        ssl_context=own,
        ssl_endpoint_identification_algorithm="none",
    )


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (
            {"ssl_truststore_location": "a", "ssl_truststore_certificates": "b"},
            "one of ssl_truststore_location and ssl_truststore_certificates",
        ),
        (
            {"ssl_certificate_location": "a", "ssl_keystore_certificate_chain": "b"},
            "one of ssl_certificate_location and",
        ),
        ({"ssl_key_location": "a", "ssl_keystore_key": "b"}, "one of ssl_key_location"),
        (
            {"ssl_keystore_location": "a", "ssl_key_location": "b"},
            "leave ssl_key_location out",
        ),
        ({"ssl_certificate_location": "a"}, "needs the private key"),
        ({"ssl_keystore_key": "a"}, "ssl_keystore_key needs the certificate"),
        ({"ssl_truststore_password": "not-it"}, "without ssl_truststore_location"),
        (
            {"ssl_truststore_certificates": "a", "ssl_truststore_type": "PEM"},
            "without ssl_truststore_location",
        ),
        ({"ssl_keystore_password": "not-it"}, "without ssl_keystore_location"),
        ({"ssl_keystore_type": "PEM"}, "without ssl_keystore_location"),
        ({"ssl_key_password": "not-it"}, "without a private key"),
    ],
)
def test_options_that_contradict_or_lack_each_other(
    options: dict[str, str], match: str
) -> None:
    refused(match, **options)


# ---- whom to trust ---------------------


def test_the_system_is_trusted_by_default() -> None:
    made = context()
    assert made.verify_mode is ssl.CERT_REQUIRED
    assert made.check_hostname
    assert made.minimum_version is ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize("algorithm", ["", "none"])
def test_the_name_is_not_checked_on_demand(files: Files, algorithm: str) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        name_seen(context(ssl_truststore_location=files.ca), files, "elsewhere")
    made = context(
        ssl_truststore_location=files.ca,
        ssl_endpoint_identification_algorithm=algorithm,
    )
    name_seen(made, files, "elsewhere")
    assert made.verify_mode is ssl.CERT_REQUIRED


def test_authorities_from_a_file_a_text_or_pkcs12(files: Files) -> None:
    pem = files.authority.cert_pem.bytes()
    found = x509.load_pem_x509_certificate(pem)
    store = pkcs12.serialize_java_truststore(
        [pkcs12.PKCS12Certificate(found, b"ca")], ENCRYPTION
    )
    path = files.write("trust.p12", store)
    one_line = pem.decode().replace("\n", " ")
    for options in (
        {"ssl_truststore_location": files.ca, "ssl_truststore_type": "PEM"},
        {"ssl_truststore_certificates": pem.decode()},
        {"ssl_truststore_certificates": one_line},
        {"ssl_truststore_location": path, "ssl_truststore_password": PASSWORD},
    ):
        made = context(**options)
        assert len(made.get_ca_certs()) == 1
        name_seen(made, files)
    with pytest.raises(ssl.SSLCertVerificationError):
        name_seen(context(), files)
    # One that holds a certificate with its key, as people copy them.
    both = files.store()
    made = context(ssl_truststore_location=both, ssl_truststore_password=PASSWORD)
    name_seen(made, files)


def test_trust_stores_that_cannot_be_used(files: Files) -> None:
    def bad(match: str, content: bytes, **more: str) -> None:
        path = files.write("bad", content)
        text = refused(match, ssl_truststore_location=path, **more)
        assert f"ssl_truststore_location={path!r}" in text

    pem = files.authority.cert_pem.bytes()
    refused("No such file", ssl_truststore_location="missing.pem")
    refused("Is a directory", ssl_truststore_location=str(files.folder))
    refused("null", ssl_truststore_location="a\0b")
    bad("is empty", b" \n")
    bad("neither PEM nor PKCS12", b"\x00\x01")
    bad("keytool -importkeystore -srckeystore", b"\xfe\xed\xfe\xed\0\0")
    bad("keytool", b"\xce\xce\xce\xce\0\0")
    bad("has no certificate", files.key)
    bad("certificate cannot be read", pem.replace(b"MII", b"AAA", 1))
    bad("has no password: leave", pem, ssl_truststore_password="not-it")
    bad(
        "is PEM, but ssl_truststore_type is 'PKCS12'", pem, ssl_truststore_type="PKCS12"
    )
    bad("openssl x509 -inform der", ssl.PEM_cert_to_DER_cert(pem.decode()))
    bad("without a password: give ssl_truststore_password", b"0\x03\x02\x01\x01")
    refused("^ssl_truststore_certificates: has no", ssl_truststore_certificates="x")
    store = files.store()
    refused(
        "ssl_truststore_password is wrong, or the file",
        ssl_truststore_location=store,
        ssl_truststore_password="not-it",
    )
    refused(
        "is PKCS12, but ssl_truststore_type is 'PEM'",
        ssl_truststore_location=store,
        ssl_truststore_type="PEM",
    )


# ---- who the client is ---------------------


@pytest.mark.usefixtures("place")
def test_a_key_from_one_file_two_files_or_texts(files: Files) -> None:
    both = files.write("both.pem", files.key + files.chain)
    turned = files.write("turned.pem", b"a remark\n" + files.chain + files.key)
    chain = files.write("chain.pem", files.chain)
    key = files.write("key.pem", files.key)
    one_line = files.key.decode().replace("\n", " ")
    for options in (
        {"ssl_keystore_location": both},
        {"ssl_keystore_location": turned, "ssl_keystore_type": "PEM"},
        {"ssl_certificate_location": chain, "ssl_key_location": key},
        {
            "ssl_keystore_certificate_chain": files.chain.decode(),
            "ssl_keystore_key": one_line,
        },
        {"ssl_certificate_location": chain, "ssl_keystore_key": files.key.decode()},
    ):
        made = context(ssl_truststore_location=files.ca, **options)
        assert name_seen(made, files) == "alice"


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("form", ["PKCS8", "TraditionalOpenSSL"])
def test_an_encrypted_key(files: Files, form: str) -> None:
    key = files.pem(ENCRYPTION, getattr(serialization.PrivateFormat, form))
    path = files.write("key.pem", files.chain + key)
    ways: tuple[dict[str, str], ...] = (
        {"ssl_keystore_location": path},
        {
            "ssl_keystore_certificate_chain": files.chain.decode(),
            "ssl_keystore_key": key.decode(),
        },
    )
    for options in ways:
        made = context(
            ssl_truststore_location=files.ca, ssl_key_password=PASSWORD, **options
        )
        assert name_seen(made, files) == "alice"
        refused("is encrypted: give ssl_key_password", **options)
        refused("is ssl_key_password right", ssl_key_password="not-it", **options)
        refused("longer than OpenSSL", ssl_key_password="not-it" * 1_000, **options)


def test_keys_that_cannot_be_used(files: Files) -> None:
    def bad(match: str, content: bytes, **more: str) -> None:
        path = files.write("bad.pem", content)
        text = refused(match, ssl_keystore_location=path, **more)
        assert f"ssl_keystore_location={path!r}" in text

    other = Files(files.folder)
    ssh = files.pem(NONE, serialization.PrivateFormat.OpenSSH)
    bad("has no private key", files.chain)
    bad("has no certificate", files.key)
    bad("has 2 private keys instead of one", files.chain + files.key + other.key)
    bad("key for OpenSSH", files.chain + ssh)
    bad("does not belong to the first certificate", files.chain + other.key)
    bad(
        "first certificate is damaged",
        files.chain.replace(b"MII", b"A!!", 1) + files.key,
    )
    bad(
        "first certificate is damaged",
        files.chain.replace(b"MII", b"MAA", 1) + files.key,
    )
    bad("cannot be used", files.chain + files.key.replace(b"MI", b"AA", 1))
    bad("ssl_keystore_password out", files.chain, ssl_keystore_password="not-it")
    bad(
        "is PEM, but ssl_keystore_type is 'PKCS12'",
        files.key,
        ssl_keystore_type="PKCS12",
    )
    bad("keytool", b"\xfe\xed\xfe\xed\0\0")
    bad("give ssl_keystore_password", b"0\x03\x02\x01\x01")
    chain = files.write("chain.pem", files.chain)
    refused("No such file", ssl_certificate_location=chain, ssl_key_location="none")
    refused(
        "ssl_keystore_key: the private key does not belong to the certificate of "
        "ssl_certificate_location=",
        ssl_certificate_location=chain,
        ssl_keystore_key=other.key.decode(),
    )
    refused(
        "ssl_keystore_key: the private key, or the certificate of",
        ssl_certificate_location=chain,
        ssl_keystore_key=files.key.decode().replace("MI", "AA", 1),
    )
    elliptic = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, NONE
    )
    bad("does not belong", files.chain + elliptic)


@pytest.mark.parametrize("year", [2001, 2060])  # with two digits, and with four
def test_an_expired_certificate(year: int) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "alice")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(2**100)
        .not_valid_before(datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC))
        .not_valid_after(datetime.datetime(year, 5, 6, 7, 8, tzinfo=datetime.UTC))
        .sign(key, hashes.SHA256())
    )
    options = {
        "ssl_keystore_certificate_chain": made.public_bytes(
            serialization.Encoding.PEM
        ).decode(),
        "ssl_keystore_key": key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, NONE
        ).decode(),
    }
    if year == 2060:
        context(**options)
    else:
        refused("expired at 2001-05-06 07:08 UTC", **options)


# ---- PKCS12 ---------------------


@pytest.mark.usefixtures("place")
def test_a_pkcs12_key_store(files: Files) -> None:
    ways: tuple[dict[str, str], ...] = (
        {"ssl_keystore_password": PASSWORD},
        {"ssl_key_password": PASSWORD},
        {"ssl_keystore_password": PASSWORD, "ssl_key_password": PASSWORD},
        {"ssl_keystore_password": PASSWORD, "ssl_keystore_type": "PKCS12"},
    )
    for options in ways:
        made = context(
            ssl_truststore_location=files.ca,
            ssl_keystore_location=files.store(),
            **options,
        )
        assert name_seen(made, files) == "alice"
    made = context(
        ssl_truststore_location=files.ca,
        ssl_keystore_location=files.store("open.p12", NONE),
    )
    assert name_seen(made, files) == "alice"


def test_pkcs12_key_stores_that_cannot_be_used(files: Files) -> None:
    def bad(match: str, path: str, password: str = PASSWORD, **more: str) -> None:
        refused(
            match,
            ssl_keystore_location=path,
            ssl_keystore_password=password,
            **more,
        )

    path = files.store()
    bad("ssl_keystore_password is wrong, or the file", path, "not-it")
    bad("ssl_keystore_password is wrong", files.write("x", b"0\x03\x02\x01\x01"))
    bad("must equal", path, ssl_key_password="not-it")
    bad("has no private key", files.store("a", key=False))
    bad("has no certificate", files.store("b", certificate=False))
    bad("is PKCS12, but ssl_keystore_type is 'PEM'", path, ssl_keystore_type="PEM")


def test_pkcs12_without_its_package(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = builtins.__import__

    def without(name: str, *args: Any) -> Any:
        if name.startswith("cryptography"):
            raise ImportError(name)
        return load(name, *args)

    path = files.store()
    monkeypatch.setattr(builtins, "__import__", without)
    refused(r"pip install 'kafkaio\[pkcs12\]'", ssl_keystore_location=path)


# ---- nothing is left ---------------------


def test_a_temporary_file_is_for_the_user_alone(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    modes: list[int] = []

    class Failing(ssl.SSLContext):
        def load_cert_chain(self, certfile: Any, *_: Any, **__: Any) -> None:
            modes.append(os.stat(certfile).st_mode & 0o777)
            raise KeyboardInterrupt

    monkeypatch.setattr(
        ssl, "create_default_context", lambda **_: Failing(ssl.PROTOCOL_TLS_CLIENT)
    )
    with pytest.raises(KeyboardInterrupt):
        context(ssl_keystore_location=files.store(), ssl_keystore_password=PASSWORD)
    assert modes == [0o600]


# ---- files that change ---------------------


def test_files_are_read_again_when_they_have_changed(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    chain = files.write("chain.pem", files.chain)
    key = files.write("key.pem", files.key)
    made = contexts_for(
        ClientConfig(
            security_protocol="SSL",
            client_id="billing",
            ssl_truststore_location=files.ca,
            ssl_certificate_location=chain,
            ssl_key_location=key,
        )
    )
    assert made is not None
    first = made()
    assert made() is first
    leaf = files.authority.issue_cert("bob")
    secret = leaf.private_key_pem.bytes()
    with caplog.at_level(logging.WARNING, "kafkaio.client"):
        # Half of it: the certificate is new, the key is not.
        files.write("chain.pem", leaf.cert_chain_pems[0].bytes())
        assert made() is first
        assert made() is first
        assert len(caplog.messages) == 1
        assert caplog.messages[0].startswith("[billing] TLS files have changed and")
        assert "does not belong to the certificate" in caplog.messages[0]
        Path(key).unlink()
        assert made() is first
        assert made() is first
        assert len(caplog.messages) == 2
        files.write("key.pem", secret)
        second = made()
        assert second is not first
        assert made() is second
        assert len(caplog.messages) == 2
    assert name_seen(first, files) == "alice"
    assert name_seen(second, files) == "bob"


def test_a_link_that_points_elsewhere_is_a_change(files: Files) -> None:
    # As Kubernetes swaps the files of a secret.
    old, new = files.folder / "v1", files.folder / "v2"
    for folder, content in (
        (old, files.chain + files.key),
        (new, files.key + files.chain),
    ):
        folder.mkdir()
        (folder / "tls.pem").write_bytes(content)
        os.utime(folder / "tls.pem", (1, 1))
    link = files.folder / "now"
    link.symlink_to(old)
    made = contexts_for(
        ClientConfig(
            security_protocol="SSL", ssl_keystore_location=str(link / "tls.pem")
        )
    )
    assert made is not None
    first = made()
    link.unlink()
    link.symlink_to(new)
    assert made() is not first


def test_no_log_on_demand(files: Files, caplog: pytest.LogCaptureFixture) -> None:
    made = contexts_for(
        ClientConfig(
            security_protocol="SSL", ssl_truststore_location=files.ca, log=False
        )
    )
    assert made is not None
    files.write("ca.pem", b"")
    made()
    assert not caplog.messages
