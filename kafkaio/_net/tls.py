"""TLS between a transport of asyncio and the protocol above it.

``TlsLayer`` is the protocol of a TCP transport, and the transport of a protocol: it
stands where asyncio's own ``SSLProtocol`` would (ADR-0025 has the measurements). What
the socket receives goes into a memory BIO of OpenSSL. It is decrypted directly into the
space that the protocol above offers, as many TLS records at a time as have arrived.

Invariants:

- The protocol above is called when the handshake is complete, and not before; after
  that the end of the connection is reported to it exactly once.
- After each call from outside, nothing is left in the outgoing BIO, and the incoming
  one has at most a part of a TLS record, unless reading is paused.
- A connection that the peer ends without ``close_notify`` ends like a plain one: the
  frames above have lengths, so that nothing can be cut off unseen.

Errors explain a peer's alert in words. In TLS 1.3 the client's handshake is complete
before the broker has seen its certificate, so a refusal comes with the first read.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final, Protocol

from kafkaio._net.socket_writer import Output, joined
from kafkaio.errors import AuthenticationError
from kafkaio.protocol._message import Buffer

#: Bytes read from a socket at a time: as much as asyncio's own layer reads.
CIPHER_BYTES: Final = 262_144
#: Bytes that are encrypted at a time. A BIO keeps the memory that it once needed.
_PLAIN_BYTES: Final = 131_072

_GIVE: Final = "ssl_keystore_location, or ssl_certificate_location and ssl_key_location"
#: Explanations of a broker's alerts, by the end of OpenSSL's name for each.
_ALERTS: Final = {
    "CERTIFICATE_REQUIRED": f"it wants a certificate of the client: give {_GIVE}",
    "BAD_CERTIFICATE": (
        f"it wants a certificate of the client, and got none or a bad one: see {_GIVE}"
    ),
    "CERTIFICATE_UNKNOWN": (
        "it does not accept the client's certificate, which has expired, is revoked "
        f"or comes from an authority that it does not trust: see {_GIVE}"
    ),
    "UNKNOWN_CA": (
        "it does not trust the authority that issued the client's certificate: see "
        + _GIVE
    ),
    "CERTIFICATE_EXPIRED": f"the client's certificate has expired: see {_GIVE}",
    "CERTIFICATE_REVOKED": f"the client's certificate is revoked: see {_GIVE}",
    "UNSUPPORTED_CERTIFICATE": (
        f"it cannot use a certificate of this kind from a client: see {_GIVE}"
    ),
    "ACCESS_DENIED": f"it does not admit the client's certificate: see {_GIVE}",
    "DECRYPT_ERROR": "it cannot verify the signature of the client's private key",
    "HANDSHAKE_FAILURE": (
        "it shares no TLS settings with the client, or wants a certificate of the "
        f"client: see {_GIVE}"
    ),
    "PROTOCOL_VERSION": "it does not speak TLS 1.2 or later",
    "UNRECOGNIZED_NAME": "it does not know the name by which the client reached it",
}

_LOCAL: Final = threading.local()


def _cipher_space() -> memoryview:
    """Where a thread's sockets put ciphertext; it is taken out before the next read."""
    try:
        return _LOCAL.space  # type: ignore[no-any-return]
    except AttributeError:
        _LOCAL.space = memoryview(bytearray(CIPHER_BYTES))
        return _LOCAL.space  # type: ignore[no-any-return]


def explained(error: BaseException) -> str:
    """Explain an error of TLS, and name the option that may have to be set."""
    text = str(error) or type(error).__name__
    reason: str = getattr(error, "reason", None) or ""  # OpenSSL's name of it
    alert = reason.partition("ALERT_")[2]
    if alert:
        meaning = _ALERTS.get(alert, "TLS failed there")
        return f"the broker refuses the connection: {meaning} ({text})"
    if isinstance(error, ConnectionError):
        return f"{text}. Does the listener speak TLS? See security_protocol"
    if isinstance(error, ssl.SSLCertVerificationError):
        if "Hostname" in error.verify_message or "IP address" in error.verify_message:
            return (
                f"{text}. The broker's certificate has other names: see its "
                "advertised.listeners, and ssl_endpoint_identification_algorithm"
            )
        return f"{text}. See ssl_truststore_location"
    if reason in _NO_TLS:
        return (
            f"the port does not speak TLS: is its listener one for "
            f"security_protocol='PLAINTEXT' or 'SASL_PLAINTEXT'? ({text})"
        )
    return text


#: OpenSSL's names for an answer that is not TLS.
_NO_TLS: Final = {
    "WRONG_VERSION_NUMBER",
    "HTTP_REQUEST",
    "HTTPS_PROXY_REQUEST",
    "PACKET_LENGTH_TOO_LONG",
    "RECORD_LAYER_FAILURE",
}


class TlsUserPort(Protocol):
    """The protocol above TLS: an ``asyncio.BufferedProtocol``."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The handshake is complete."""

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where plaintext goes; never empty."""

    def buffer_updated(self, nbytes: int) -> None:
        """Take so many bytes of plaintext."""

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""


class TlsLayer(asyncio.BufferedProtocol, asyncio.Transport):
    """A client's side of TLS.

    Args:
        upper: gets the plaintext.
        context: the settings.
        host: the peer's name, for SNI and to check its certificate.
        address: ``host:port``, for errors.

    Raises:
        OSError: the name cannot be used.
    """

    def __init__(
        self,
        upper: TlsUserPort,
        context: ssl.SSLContext,
        host: str,
        address: str,
    ) -> None:
        super().__init__()
        self._upper = upper
        self._address = address
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        try:
            self._tls = context.wrap_bio(
                self._incoming, self._outgoing, server_hostname=host
            )
        except ValueError as error:
            raise OSError(f"the name {host!r} cannot be used: {error}") from error
        self._lower: asyncio.Transport | None = None
        # Writes to it.
        self._output: Output | None = None
        #: Ends when the handshake is complete, or has failed with an OSError.
        self.secured: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._is_secured = False
        # Whether no plaintext has come yet.
        self._is_silent = True
        self._is_ending = False
        self._is_paused = False
        self._cause: Exception | None = None

    # ---- what asyncio calls ------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not checked: uvloop's transports have the methods, but not the base class.
        lower: asyncio.Transport = transport  # type: ignore[assignment]
        self._lower = lower
        self._output = Output(lower, self._write_failed)
        self._handle()

    def get_buffer(self, sizehint: int) -> memoryview:
        del sizehint
        return _cipher_space()

    def buffer_updated(self, nbytes: int) -> None:
        if self._is_ending:
            return  # what is left to send is still being sent
        self._incoming.write(_cipher_space()[:nbytes])
        self._handle()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._lower = None
        if self._output is not None:
            self._output.drop()
            self._output = None
        if self._is_secured:
            self._upper.connection_lost(self._cause or exc)
        elif not self.secured.done():
            closed = ConnectionResetError("the broker closed the connection")
            self.secured.set_exception(self._cause or exc or closed)
            self.secured.exception()  # retrieved, whether or not it is waited for

    # ---- the peer's bytes --------------------------------------------------------

    def _handle(self) -> None:
        """Take what is in the incoming BIO."""
        if self._lower is None:
            return  # lost since reading was resumed
        try:
            if not self._is_secured:
                self._shake()
            if self._is_secured:
                self._read()
        except ssl.SSLWantReadError:
            pass  # a part of a TLS record
        except ssl.SSLError as error:
            self._fail(error)
            return
        if self._outgoing.pending:
            self._flush()

    def _shake(self) -> None:
        self._tls.do_handshake()
        self._is_secured = True
        self._flush()
        self._upper.connection_made(self)
        if not self.secured.done():
            self.secured.set_result(None)

    def _read(self) -> None:
        """Decrypt everything that has come, in pieces as large as there is space."""
        tls, incoming, upper = self._tls, self._incoming, self._upper
        while (incoming.pending or tls.pending()) and not (
            self._is_ending or self._is_paused
        ):
            space = upper.get_buffer(-1)
            done, size = 0, len(space)
            try:
                while done < size and (incoming.pending or tls.pending()):
                    count: int = tls.read(size - done, space[done:])  # type: ignore[assignment]
                    if not count:  # close_notify
                        self._end()
                        break
                    done += count
            finally:
                if done:
                    self._is_silent = False
                    upper.buffer_updated(done)

    def _fail(self, error: ssl.SSLError) -> None:
        """End a connection on which TLS cannot go on."""
        self._cause = error
        if self._is_secured and self._is_silent and "_ALERT_" in (error.reason or ""):
            self._cause = AuthenticationError(
                f"{self._address}: TLS: {explained(error)}",
                mechanism="TLS",
                broker=self._address,
                step="TLS handshake",
                reason=str(error),
            )
            self._cause.__cause__ = error
        self._flush()  # the alert for the peer
        self.abort()

    def _end(self) -> None:
        """The peer has said that it sends no more."""
        self._is_ending = True
        if self._output is not None:
            self._output.close()

    def _write_failed(self, error: OSError) -> None:
        self._cause = self._cause or error
        self.abort()

    # ---- a transport for the protocol above --------------------------------------

    def write(self, data: Buffer) -> None:
        """Encrypt and send."""
        self.writelines((data,))

    def writelines(self, list_of_data: Iterable[Buffer]) -> None:
        """Encrypt all parts, then send them at once."""
        if self._is_ending:
            return
        encrypt, encrypted = self._tls.write, self._outgoing.read
        output: list[Buffer] = []
        for part in joined([*list_of_data]):
            whole = memoryview(part)
            for start in range(0, len(whole), _PLAIN_BYTES):
                # All of it: a BIO in memory never has too little space.
                encrypt(whole[start : start + _PLAIN_BYTES])
                output.append(encrypted())
        if output and self._output is not None:
            self._output.writelines(output)

    def _flush(self) -> None:
        if self._output is not None and self._outgoing.pending:
            self._output.writelines((self._outgoing.read(),))

    def close(self) -> None:
        """Send what was written and ``close_notify``, then close."""
        if self._is_ending or self._output is None:
            return
        self._is_ending = True
        with suppress(ssl.SSLError):  # it would wait for the peer's close_notify
            self._tls.unwrap()
        self._flush()
        self._output.close()

    def abort(self) -> None:
        """Close now."""
        self._is_ending = True
        if self._output is not None:
            self._output.abort()

    def is_closing(self) -> bool:
        """Whether it is closed, or closes."""
        return self._is_ending or self._lower is None

    def pause_reading(self) -> None:
        """Pass nothing on; received bytes stay in the incoming BIO."""
        self._is_paused = True
        if self._lower is not None:
            self._lower.pause_reading()

    def resume_reading(self) -> None:
        """Pass on the received bytes, and read on."""
        self._is_paused = False
        if self._lower is not None and not self._is_ending:
            self._lower.resume_reading()
            asyncio.get_running_loop().call_soon(self._handle)

    def get_write_buffer_size(self) -> int:
        """Bytes that the operating system has not taken yet, as they are encrypted."""
        return 0 if self._output is None else self._output.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """See asyncio.BaseTransport."""
        if self._lower is None:
            return default
        return self._lower.get_extra_info(name, default)
