"""The TLS settings of a registry's client, as Kafka's clients have them."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import field, fields
from functools import cache
from typing import Literal

from kafkaio._config import ClientConfig
from kafkaio._dataclass import dataclass
from kafkaio._public import public
from kafkaio.errors import ConfigurationError
from kafkaio.registry._address import Address
from kafkaio.security._tls import contexts_for


@public("kafkaio.registry")
@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryTls:
    """TLS from files or texts: whom to trust, and the client's own certificate.

    The attributes have the names, and the meaning, of the options ``ssl_...`` of
    `kafkaio.Producer` and `kafkaio.Consumer`. Files are read when `Registry` is made,
    and again when they have changed.

    Attributes:
        truststore_location: file with certificates to trust, in PEM or PKCS12; without
            any, those of the system are trusted.
        truststore_certificates: the same as a text in PEM.
        truststore_type: ``PEM`` or ``PKCS12``; None: by the file's content.
        truststore_password: password of a trust store in PKCS12.
        keystore_location: file with the client's certificate and private key, in PEM or
            PKCS12.
        keystore_type: as ``truststore_type``.
        keystore_password: password of a key store in PKCS12.
        keystore_certificate_chain: the client's certificate as a text in PEM.
        keystore_key: its private key as a text in PEM.
        certificate_location: file with the client's certificate in PEM.
        key_location: file with its private key in PEM.
        key_password: password of an encrypted private key.
        endpoint_identification_algorithm: ``https`` checks that the certificate of the
            registry has its host; an empty text does not.
    """

    truststore_location: str | None = None
    truststore_certificates: str | None = None
    truststore_type: Literal["PEM", "PKCS12"] | None = None
    truststore_password: str | None = field(default=None, repr=False)
    keystore_location: str | None = None
    keystore_type: Literal["PEM", "PKCS12"] | None = None
    keystore_password: str | None = field(default=None, repr=False)
    keystore_certificate_chain: str | None = None
    keystore_key: str | None = field(default=None, repr=False)
    certificate_location: str | None = None
    key_location: str | None = None
    key_password: str | None = field(default=None, repr=False)
    endpoint_identification_algorithm: Literal["https", "none", ""] = "https"


def contexts_of(
    tls: ssl.SSLContext | RegistryTls | None, addresses: tuple[Address, ...]
) -> Callable[[], ssl.SSLContext]:
    """Return a function that gives new connections their TLS settings.

    Raises:
        ConfigurationError: no address is encrypted and there are settings, or a file
            cannot be used.
    """
    if not any(address.is_encrypted for address in addresses):
        if tls is not None:
            raise ConfigurationError("tls has no effect: no url begins with https://")
        return _unused
    given: object = tls
    if isinstance(given, ssl.SSLContext):
        options: dict[str, object] = {"ssl_context": given}
    elif isinstance(given, RegistryTls):
        options = _options(given)
    elif given is None:
        options = {}
    else:
        kind = type(given).__name__
        raise ConfigurationError(
            f"tls must be an ssl.SSLContext or a RegistryTls, not {kind}"
        )
    # Only its TLS is asked for.
    config = ClientConfig.of(
        "localhost:9092",
        {"client_id": "registry", "security_protocol": "SSL", **options},
    )
    found = contexts_for(config)
    assert found is not None  # the protocol is SSL
    return found


def _options(tls: RegistryTls) -> dict[str, object]:
    values = ((each.name, getattr(tls, each.name)) for each in fields(tls))
    return {f"ssl_{name}": value for name, value in values if value is not None}


@cache
def _unused() -> ssl.SSLContext:
    # httpcore reads authorities if it gets none, which takes long.
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
