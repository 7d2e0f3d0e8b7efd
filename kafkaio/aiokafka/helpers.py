"""`create_ssl_context`."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from os import PathLike

__all__ = ["create_ssl_context"]


def create_ssl_context(
    *,
    cafile: str | bytes | PathLike[str] | PathLike[bytes] | None = None,
    capath: str | bytes | PathLike[str] | PathLike[bytes] | None = None,
    cadata: str | bytes | bytearray | memoryview | None = None,
    certfile: str | bytes | PathLike[str] | PathLike[bytes] | None = None,
    keyfile: str | bytes | PathLike[str] | PathLike[bytes] | None = None,
    password: Callable[[], str | bytes | bytearray]
    | str
    | bytes
    | bytearray
    | None = None,
) -> ssl.SSLContext:
    """Return TLS settings for a client: the broker's certificate and name are checked.

    The authorities to trust are those of ``cafile``, ``capath`` and ``cadata``; without
    any of them, those of the system.

    Args:
        cafile: file with certificates of authorities, PEM.
        capath: folder with such files, as OpenSSL names them.
        cadata: the certificates themselves: PEM as text, DER as bytes.
        certfile: file with the client's certificate chain, PEM.
        keyfile: file with its private key, PEM; None if ``certfile`` has it, too.
        password: password of the key, or a function that returns it. Without one
            OpenSSL asks at the terminal if it needs one.

    Raises:
        OSError: a file cannot be read, or is none of these; `ssl.SSLError` is one.
    """
    context = ssl.create_default_context(
        ssl.Purpose.SERVER_AUTH, cafile=cafile, capath=capath, cadata=cadata
    )
    if certfile is not None:
        context.load_cert_chain(certfile, keyfile, password)
    return context
