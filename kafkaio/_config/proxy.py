"""The address of a proxy, as the option ``proxy`` has it."""

from __future__ import annotations

from dataclasses import field

from kafkaio._dataclass import dataclass
from kafkaio.errors import ConfigurationError

_FORM = "'socks5://user:password@host:port'"
_SCHEMES = ("socks5", "socks5h", "http")
#: The longest user and password of SOCKS (RFC 1929), in bytes.
_LONGEST = 255


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy, and how to log in to it; its text has neither user nor password.

    Attributes:
        scheme: ``socks5``, ``socks5h`` or ``http``.
        host: name or address.
        port: port number.
        username: None for no login.
        password: likewise.
    """

    scheme: str
    host: str
    port: int
    username: str | None = None
    password: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def resolves_names(self) -> bool:
        """Whether the proxy looks the names of brokers up, and not the client."""
        return self.scheme != "socks5"


def parse_proxy(url: str) -> Proxy:
    """Read the URL of a proxy. No error repeats any part of it: it may be a password.

    Raises:
        ConfigurationError: it cannot be read.
    """
    from urllib.parse import unquote, urlsplit  # few clients have a proxy

    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
        parts = urlsplit("")
    if parts.scheme not in _SCHEMES:
        raise ConfigurationError(
            f"proxy is not a URL of the form {_FORM}, with one of the schemes "
            f"{', '.join(_SCHEMES)}; in user and password, characters such as @ : / ? "
            "# are written with %, as in %40"
        )
    if not host or not port:
        raise ConfigurationError(f"proxy has no host and port: use {_FORM}")
    if parts.path not in {"", "/"} or parts.query or parts.fragment:
        raise ConfigurationError(
            f"proxy has more than host and port: use {_FORM}, with %2F for / in a "
            "password"
        )
    username, password = (
        None if each is None else unquote(each)
        for each in (parts.username, parts.password)
    )
    _check_login(parts.scheme, username, password)
    return Proxy(parts.scheme, host, port, username, password)


def _check_login(scheme: str, username: str | None, password: str | None) -> None:
    if username is None and password is None:
        return
    if not username or password is None:
        raise ConfigurationError(f"proxy has a user or a password alone: use {_FORM}")
    if scheme == "http":
        if ":" in username:
            raise ConfigurationError("proxy: the user must not have a colon (RFC 7617)")
    elif not all(
        each.isascii() and 0 < len(each) <= _LONGEST for each in (username, password)
    ):
        raise ConfigurationError(
            f"proxy: for SOCKS, user and password are 1 to {_LONGEST} ASCII characters"
        )
