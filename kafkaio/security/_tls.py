"""The TLS settings of a client, from Kafka's options.

``contexts_for`` returns a function that gives a connection its ``ssl.SSLContext``. The
context is made from files (PEM, PKCS12) or texts (PEM), and made again when a file has
changed, so that certificates can be replaced while the client runs. Each new connection
compares time, size and inode of the files; open connections keep their context.

Invariants:

- Every call blocks the caller's thread, for a millisecond or two.
- A private key is never written to a disk, except on systems without files in memory
  (not Linux). There, a key from a text or from PKCS12 is for the time of the call in a
  file that only the user can read, because ``ssl`` reads keys from files only.
- Errors and log lines never contain a password or a part of a key.
"""

from __future__ import annotations

import os
import re
import ssl
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from kafkaio._config import ClientConfig
from kafkaio._config.declaration import given
from kafkaio._dataclass import dataclass
from kafkaio._runtime.log import CLIENT
from kafkaio.errors import ConfigurationError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization import pkcs12
    from cryptography.x509 import Certificate

_BLOCK: Final = re.compile(
    rb"-----BEGIN ([A-Z0-9 ]+)-----\s(.*?)-----END \1-----", re.DOTALL
)
_CERTIFICATES: Final = {b"CERTIFICATE", b"X509 CERTIFICATE"}
_KEYS: Final = {
    b"PRIVATE KEY",
    b"RSA PRIVATE KEY",
    b"EC PRIVATE KEY",
    b"DSA PRIVATE KEY",
    b"ENCRYPTED PRIVATE KEY",
}
# The first bytes of Java's own formats, JKS and JCEKS.
_JAVA: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_MISMATCH: Final = {"KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH"}
# Tags of DER: the version of a certificate, and a time with two digits for the year.
_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17
#: Time of change, of attributes, size and inode of a file; None if it is not there.
_Stamp: TypeAlias = tuple[int, int, int, int] | None


def contexts_for(config: ClientConfig) -> Callable[[], ssl.SSLContext] | None:
    """Return a function that gives each new connection its TLS settings.

    The files are read before the call returns, so that a wrong option fails at once.
    The returned function reads them again if one has changed. If they cannot be used
    then, it logs a warning once and returns the previous settings: while a certificate
    is replaced, it and its key may not match for a moment.

    Args:
        config: the options of the client.

    Returns:
        The function, which never raises; None if the client does not use TLS.

    Raises:
        ConfigurationError: an option has no effect or contradicts another, or a file
            or text cannot be used; says which and why.
    """
    found = given(config, "ssl_")
    if not config.security_protocol.endswith("SSL"):
        if found:
            raise ConfigurationError(
                f"{found[0]} has no effect with "
                f"security_protocol={config.security_protocol!r}: TLS needs 'SSL' or "
                "'SASL_SSL'"
            )
        return None
    context = config.ssl_context
    if context is None:
        return _Contexts(config)
    others = [name for name in found if name != "ssl_context"]
    if others:
        raise ConfigurationError(
            f"{others[0]} has no effect beside ssl_context: make the settings in the "
            "context, or leave ssl_context out"
        )
    return partial(_same, context)


def _same(context: ssl.SSLContext) -> ssl.SSLContext:
    return context


class _Contexts:
    """The latest usable settings that the options describe."""

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        self._stores = _Stores.of(config)
        self._files = tuple(
            source.path for source in self._stores if source.path is not None
        )
        # Taken before the files are read: a change during the read shows as another
        # stamp with the next connection.
        self._stamps = self._stamp()
        self._context = self._stores.load()

    def __call__(self) -> ssl.SSLContext:
        stamps = self._stamp()
        if stamps != self._stamps:
            # Also if loading fails: the warning comes once for each change.
            self._stamps = stamps
            try:
                self._context = self._stores.load()
            except ConfigurationError as error:
                if self._config.log:
                    CLIENT.warning(
                        "[%s] TLS files have changed and cannot be used, so new "
                        "connections use the former ones: %s",
                        self._config.client_id,
                        error,
                    )
        return self._context

    def _stamp(self) -> list[_Stamp]:
        return [_stamp(path) for path in self._files]


def _stamp(path: str) -> _Stamp:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    # The time of attributes counts, too: chmod may have made the file readable.
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


@dataclass(frozen=True, slots=True)
class _Source:
    """A file, or a text, that an option names."""

    option: str
    path: str | None
    text: str | None

    @classmethod
    def of(cls, config: ClientConfig, file: str, text: str) -> _Source | None:
        """The one that is given of two options; None for none."""
        path, value = getattr(config, file), getattr(config, text)
        if path is not None and value is not None:
            raise ConfigurationError(f"give one of {file} and {text}, not both")
        if path is not None:
            return cls(file, path, None)
        return None if value is None else cls(text, None, value)

    def __str__(self) -> str:
        if self.path is None:
            return self.option
        # Loaded for mistakes alone.
        from kafkaio._config.shown import shown_path

        return shown_path(self.option, self.path)

    def wrong(self, reason: str) -> ConfigurationError:
        """Return the error for this source."""
        return ConfigurationError(f"{self}: {reason}")

    def read(self) -> bytes:
        """Return its content.

        Raises:
            ConfigurationError: the file cannot be read, or is a key store of Java's.
        """
        if self.path is None:
            assert self.text is not None
            return self.text.encode()
        try:
            with open(self.path, "rb") as file:
                data = file.read()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            # The system's error has the path, which may be a password.
            raise self.wrong(f"cannot be read: {reason}") from None
        if data.startswith(_JAVA):
            raise self.wrong(
                "is a key store in Java's own format (JKS). Convert it: keytool "
                f"-importkeystore -srckeystore {self.path} "
                f"-destkeystore {self.path}.p12 -deststoretype PKCS12"
            )
        return data

    def blocks(self, data: bytes, labels: set[bytes]) -> list[bytes]:
        """Return the PEM blocks of some kinds; other content is ignored."""
        found = [match for match in _BLOCK.finditer(data) if match[1] in labels]
        return [_block(match[1], match[2]) for match in found]

    def der(self, block: bytes) -> bytes:
        """A PEM block of it as DER."""
        try:
            return b64decode(b"".join(block.split(b"\n")[1:-2]), validate=True)
        except ValueError:
            raise self.wrong("the first certificate is damaged") from None

    @contextmanager
    def file(self, content: bytes) -> Iterator[str]:
        """Yield a file with the content: the source's own, or a temporary one."""
        if self.path is not None:
            yield self.path
        else:
            with _temporary(content) as name:
                yield name


def _block(label: bytes, body: bytes) -> bytes:
    """Return a PEM block with line ends, which a text in one line lacks."""
    # Environment variables and JSON often lose the line ends, and OpenSSL needs them.
    # A block with headers (Proc-Type, DEK-Info) cannot be repaired in this way.
    if b":" not in body:
        flat = b"".join(body.split())
        body = b"".join(flat[at : at + 64] + b"\n" for at in range(0, len(flat), 64))
    return b"-----BEGIN %b-----\n%b-----END %b-----\n" % (label, body, label)


@contextmanager
def _temporary(content: bytes) -> Iterator[str]:
    """Yield a file that no other user can read, in memory where possible."""
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        handle = os.memfd_create("kafkaio-tls", os.MFD_CLOEXEC)
        try:
            os.write(handle, content)
            yield f"/proc/self/fd/{handle}"
        finally:
            os.close(handle)
        return
    import tempfile  # not needed on Linux, and many modules

    handle, name = tempfile.mkstemp(prefix="kafkaio-tls-")  # mode 0600
    try:
        with open(handle, "wb") as file:
            file.write(content)
        yield name
    finally:
        os.unlink(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stores:
    """Where certificates and keys are, and how to open them."""

    trust: _Source | None
    trust_type: str | None
    trust_password: str | None
    chain: _Source | None
    key: _Source | None
    store_type: str | None
    store_password: str | None
    key_password: str | None
    is_name_checked: bool

    @classmethod
    def of(cls, config: ClientConfig) -> _Stores:
        """Take the sources from the options.

        Raises:
            ConfigurationError: options contradict each other, or one lacks another.
        """
        trust = _Source.of(
            config, "ssl_truststore_location", "ssl_truststore_certificates"
        )
        chain, key = _key_sources(config)
        _check_company(config, trust, key)
        return cls(
            trust=trust,
            trust_type=config.ssl_truststore_type,
            trust_password=config.ssl_truststore_password,
            chain=chain,
            key=key,
            store_type=config.ssl_keystore_type,
            store_password=config.ssl_keystore_password,
            key_password=config.ssl_key_password,
            is_name_checked=config.ssl_endpoint_identification_algorithm == "https",
        )

    def __iter__(self) -> Iterator[_Source]:
        """All sources, each once."""
        yield from dict.fromkeys(
            source for source in (self.trust, self.chain, self.key) if source
        )

    def load(self) -> ssl.SSLContext:
        """Read everything.

        Raises:
            ConfigurationError: a file or text cannot be used.
        """
        if self.trust is None:
            context = ssl.create_default_context()
        else:
            context = ssl.create_default_context(cadata=self._trusted(self.trust))
            # A certificate in the trust store is trusted even if its issuer is not in
            # it, as in Java. Python 3.13 does so by default.
            context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
        # As Java's clients (KIP-553): the versions before it are deprecated (RFC 8996).
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = self.is_name_checked
        if self.chain is not None and self.key is not None:
            self._load_key(context, self.chain, self.key)
        return context

    # ---- whom to trust -----------------------------------------------------------

    def _trusted(self, source: _Source) -> str:
        """The certificates to trust, in PEM."""
        data = source.read()
        if _is_pem(source, data, self.trust_type):
            if self.trust_password is not None:
                raise source.wrong(
                    "is PEM, which has no password: leave ssl_truststore_password out"
                )
            blocks = source.blocks(data, _CERTIFICATES)
        else:
            store = _open_pkcs12(
                source, data, self.trust_password, "ssl_truststore_password"
            )
            found = [each.certificate for each in store.additional_certs]
            if store.cert is not None:
                found.append(store.cert.certificate)
            blocks = [_pem(certificate) for certificate in found]
        if not blocks:
            raise source.wrong("has no certificate")
        text = b"".join(blocks).decode()
        try:
            # Tried apart, so that the error names this source, and not the system's.
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
        except ssl.SSLError as error:
            raise source.wrong(f"a certificate cannot be read: {_why(error)}") from None
        return text

    # ---- who the client is -------------------------------------------------------

    def _load_key(self, context: ssl.SSLContext, chain: _Source, key: _Source) -> None:
        data = chain.read()
        if chain is key and not _is_pem(key, data, self.store_type):
            self._load_pkcs12(context, key, data)
            return
        if self.store_password is not None:
            raise key.wrong(
                "is PEM, which has no password but that of the key: give "
                "ssl_key_password, and leave ssl_keystore_password out"
            )
        certificates = chain.blocks(data, _CERTIFICATES)
        if not certificates:
            raise chain.wrong("has no certificate")
        # The first certificate is the client's own; those of its issuers follow.
        _check_expiry(chain, chain.der(certificates[0]))
        secret = self._private_key(key, data if chain is key else key.read())
        with (
            chain.file(b"".join(certificates)) as chain_file,
            key.file(secret) as key_file,
        ):
            try:
                # A function: without one, OpenSSL would ask the terminal for the
                # password of an encrypted key, and block.
                context.load_cert_chain(
                    chain_file, key_file, lambda: self.key_password or ""
                )
            except (OSError, ValueError) as error:
                raise self._unusable(error, chain, key, secret) from None

    def _private_key(self, source: _Source, data: bytes) -> bytes:
        """The only private key of a source, in PEM."""
        keys = source.blocks(data, _KEYS)
        if not keys:
            if b"BEGIN OPENSSH PRIVATE KEY" in data:
                raise source.wrong(
                    "is a key for OpenSSH, not for TLS: convert a copy by ssh-keygen "
                    "-p -m PKCS8"
                )
            raise source.wrong("has no private key in PEM")
        if len(keys) > 1:
            raise source.wrong(f"has {len(keys)} private keys instead of one")
        if _is_encrypted(keys[0]) and self.key_password is None:
            raise source.wrong("the private key is encrypted: give ssl_key_password")
        return keys[0]

    def _load_pkcs12(
        self, context: ssl.SSLContext, source: _Source, data: bytes
    ) -> None:
        password = self.store_password
        if self.key_password not in {None, password}:
            if password is not None:
                raise source.wrong(
                    "a PKCS12 key store has one password: ssl_key_password must equal "
                    "ssl_keystore_password, or be left out"
                )
            password = self.key_password
        store = _open_pkcs12(source, data, password, "ssl_keystore_password")
        if store.key is None:
            raise source.wrong("has no private key")
        if store.cert is None:
            raise source.wrong("has no certificate that belongs to its private key")
        import secrets

        from cryptography.hazmat.primitives import serialization

        leaf = store.cert.certificate
        _check_expiry(source, _der(leaf))
        # Encrypted with a password of this moment: without files in memory, the key
        # is on a disk while OpenSSL reads it.
        once = secrets.token_hex().encode()
        content = store.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(once),
        )
        rest = [each.certificate for each in store.additional_certs]
        content += b"".join(_pem(certificate) for certificate in (leaf, *rest))
        with _temporary(content) as name:
            try:
                context.load_cert_chain(name, password=once)
            except OSError as error:
                raise source.wrong(f"cannot be used: {_why(error)}") from None

    def _unusable(
        self, error: Exception, chain: _Source, key: _Source, secret: bytes
    ) -> ConfigurationError:
        """The error for a key and certificate that OpenSSL refuses."""
        if isinstance(error, ssl.SSLError) and error.reason in _MISMATCH:
            return key.wrong(
                "the private key does not belong to the "
                + ("first certificate" if chain is key else f"certificate of {chain}")
                + ", which has to be the client's own"
            )
        if isinstance(error, ValueError):
            return key.wrong("ssl_key_password is longer than OpenSSL allows")
        if _is_encrypted(secret):
            return key.wrong(
                "the private key cannot be decrypted: is ssl_key_password right?"
            )
        where = "" if chain is key else f", or the certificate of {chain},"
        return key.wrong(f"the private key{where} cannot be used: {_why(error)}")


def _key_sources(config: ClientConfig) -> tuple[_Source | None, _Source | None]:
    """Return where the client's certificate chain and its key are."""
    chain = _Source.of(
        config, "ssl_certificate_location", "ssl_keystore_certificate_chain"
    )
    key = _Source.of(config, "ssl_key_location", "ssl_keystore_key")
    location = config.ssl_keystore_location
    if location is not None:
        for other in (chain, key):
            if other is not None:
                raise ConfigurationError(
                    f"ssl_keystore_location has key and certificate: leave "
                    f"{other.option} out"
                )
        both = _Source("ssl_keystore_location", location, None)
        return both, both
    if chain is not None and key is None:
        raise ConfigurationError(
            f"{chain.option} needs the private key, in ssl_key_location or "
            "ssl_keystore_key"
        )
    if key is not None and chain is None:
        raise ConfigurationError(
            f"{key.option} needs the certificate, in ssl_certificate_location or "
            "ssl_keystore_certificate_chain"
        )
    return chain, key


def _check_company(
    config: ClientConfig, trust: _Source | None, key: _Source | None
) -> None:
    """Refuse options that have no effect without another."""
    trust_file = trust is not None and trust.path is not None
    store_file = config.ssl_keystore_location is not None
    needs = (
        ("ssl_truststore_password", trust_file, "ssl_truststore_location"),
        ("ssl_truststore_type", trust_file, "ssl_truststore_location"),
        ("ssl_keystore_password", store_file, "ssl_keystore_location"),
        ("ssl_keystore_type", store_file, "ssl_keystore_location"),
        ("ssl_key_password", key is not None, "a private key"),
    )
    for option, is_met, other in needs:
        if getattr(config, option) is not None and not is_met:
            raise ConfigurationError(f"{option} has no effect without {other}")


def _is_pem(source: _Source, data: bytes, declared: str | None) -> bool:
    """Whether the content is PEM, and not PKCS12."""
    # PEM may begin with text, as openssl writes it, so it is searched for.
    is_pem = source.path is None or b"-----BEGIN " in data
    if not is_pem and not data.startswith(b"\x30"):  # an ASN.1 SEQUENCE
        raise source.wrong(
            "is empty" if not data.strip() else "is neither PEM nor PKCS12"
        )
    if declared is not None and is_pem is not (declared == "PEM"):
        found = "PEM" if is_pem else "PKCS12"
        option = source.option.replace("_location", "_type")
        raise source.wrong(f"is {found}, but {option} is {declared!r}")
    return is_pem


def _is_encrypted(block: bytes) -> bool:
    return b"BEGIN ENCRYPTED" in block or b"Proc-Type: 4,ENCRYPTED" in block


def _why(error: BaseException) -> str:
    """Return OpenSSL's message, without the line in its source."""
    reason = error.reason if isinstance(error, ssl.SSLError) else None
    text = reason.lower().replace("_", " ") if reason else str(error)
    return re.sub(r" \(_ssl\.c:\d+\)", "", text)


# ---- PKCS12 ----------------------------------------------------------------------


def _open_pkcs12(
    source: _Source, data: bytes, password: str | None, option: str
) -> pkcs12.PKCS12KeyAndCertificates:
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError as error:
        raise source.wrong(
            "is PKCS12, for which kafkaio needs the package cryptography: "
            "pip install 'kafkaio[pkcs12]'. Or convert it to PEM: openssl pkcs12 -in "
            f"{source.path} -out {source.path}.pem"
        ) from error
    secret = None if password is None else password.encode()
    try:
        return pkcs12.load_pkcs12(data, secret)
    except UnsupportedAlgorithm as error:
        raise source.wrong(
            f"is encrypted in a way that is not known: {error}"
        ) from None
    except (ValueError, TypeError):
        pass
    # A common mistake: a single certificate in DER begins with the same byte.
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=data)
    except ssl.SSLError:
        raise source.wrong(
            f"cannot be opened as PKCS12 without a password: give {option}"
            if password is None
            else f"cannot be opened as PKCS12: {option} is wrong, or the file damaged"
        ) from None
    raise source.wrong(
        "is a certificate in DER, not PEM: convert it by openssl x509 -inform der -in "
        f"{source.path} -out {source.path}.pem"
    )


def _der(certificate: Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.DER)


def _pem(certificate: Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


# ---- the end of a certificate's life -----------------------------------------------


def _check_expiry(source: _Source, certificate: bytes) -> None:
    """Refuse a certificate, in DER, that has expired.

    Each broker would refuse it, with an alert of TLS that names no reason.
    """
    try:
        end = _not_after(certificate)
    except (ValueError, IndexError):
        raise source.wrong("the first certificate is damaged") from None
    if end < datetime.now(UTC):
        raise source.wrong(
            f"the client's certificate expired at {end:%Y-%m-%d %H:%M} UTC"
        )


def _not_after(certificate: bytes) -> datetime:
    """Return when a certificate expires (RFC 5280, 4.1).

    ``ssl`` reads only certificates of peers, and ``cryptography`` is an extra.
    """
    at, _ = _element(certificate, 0)  # Certificate
    at, _ = _element(certificate, at)  # its tbsCertificate
    if certificate[at] == _VERSION:
        at = sum(_element(certificate, at))
    for _ in range(3):  # serialNumber, signature, issuer
        at = sum(_element(certificate, at))
    at, _ = _element(certificate, at)  # validity
    at = sum(_element(certificate, at))  # notBefore
    begin, size = _element(certificate, at)
    text = certificate[begin : begin + size].decode("ascii")
    # Two digits for a year before 2050. For 50 to 68, strptime and RFC 5280 mean
    # different centuries: no certificate ended from 1950 to 1968.
    form = "%y%m%d%H%M%SZ" if certificate[at] == _UTC_TIME else "%Y%m%d%H%M%SZ"
    return datetime.strptime(text, form).replace(tzinfo=UTC)


def _element(data: bytes, at: int) -> tuple[int, int]:
    """Return where the content of the DER element at ``at`` begins, and its size."""
    size = data[at + 1]
    # The long form: the low bits say how many bytes the size takes.
    if size < 0x80:
        return at + 2, size
    begin = at + 2 + (size & 0x7F)
    return begin, int.from_bytes(data[at + 2 : begin], "big")
