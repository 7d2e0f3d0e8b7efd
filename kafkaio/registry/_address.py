"""Where a registry is: its URL, apart from the user and password in it."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import field
from importlib.util import find_spec
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from kafkaio._dataclass import dataclass
from kafkaio.errors import ConfigurationError

#: The schemes of proxies, and their ports.
_PROXY_PORTS: Final = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}
#: Shorter texts are not hidden in errors: they stand in other words, too.
SHORTEST: Final = 4
#: More addresses than this are a mistake, such as a text that was given as a list.
_MOST: Final = 64


@dataclass(frozen=True, slots=True)
class Address:
    """One address of a registry.

    Attributes:
        url: the URL, without user, password and a slash at its end.
        is_encrypted: whether it is ``https``.
        basic: user and password from the URL, as HTTP's Basic login sends them; empty
            for none.
    """

    url: str
    is_encrypted: bool
    basic: str = field(default="", repr=False)

    @property
    def netloc(self) -> str:
        """Host and port, as the header ``Host`` has them."""
        return urlsplit(self.url).netloc

    def proxy_of_environment(self) -> str | None:
        """Return the URL of the proxy that the environment has for it, if any.

        Without encryption there is none: no proxy of the environment may read a login.
        """
        if not self.is_encrypted:
            return None
        # Takes ten milliseconds to load.
        from urllib.request import getproxies, proxy_bypass

        if proxy_bypass(urlsplit(self.url).hostname or ""):
            return None
        found = getproxies()
        return found.get("https") or found.get("all")


def addresses_of(urls: str | Sequence[str]) -> tuple[Address, ...]:
    """Read the URLs of a registry: one, several with commas between them, or a list.

    Raises:
        ConfigurationError: one is not a URL of HTTP, or there is none.
    """
    given: object = urls
    if isinstance(given, str):
        texts: list[object] = [*given.split(",")]
    elif isinstance(given, list | tuple):
        texts = [*given]
    else:
        kind = type(given).__name__
        raise ConfigurationError(f"url must be a str or a list of them, not {kind}")
    if not texts or len(texts) > _MOST:
        raise ConfigurationError(f"url has {len(texts)} addresses: 1 to {_MOST} can be")
    found = [_address(text) for text in texts]
    return tuple(dict.fromkeys(found))


def proxy_parts(proxy: str) -> tuple[str, tuple[str, str] | None]:
    """Return the URL of a proxy without its user, and user and password.

    Raises:
        ConfigurationError: it is not the URL of a proxy.
    """
    text = proxy.strip()
    # As curl, and what else reads the environment.
    text = text if "://" in text else f"http://{text}"
    # No error repeats it: it may have a password.
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ConfigurationError("proxy is not a URL") from None
    default = _PROXY_PORTS.get(parts.scheme)
    if default is None or not host:
        raise ConfigurationError(
            "proxy needs a scheme and a host, such as http://proxy:3128"
        )
    if parts.scheme.startswith("socks") and find_spec("socksio") is None:
        raise ConfigurationError(
            "proxy: SOCKS needs the package socksio: pip install 'httpx[socks]'"
        )
    login = None
    if parts.username is not None:
        login = unquote(parts.username), unquote(parts.password or "")
    return f"{parts.scheme}://{_host(host)}:{port or default}", login


def basic_login(user: str, password: str) -> str:
    """Return user and password as the header ``Authorization`` has them."""
    return base64.b64encode(f"{user}:{password}".encode()).decode()


def secrets_of(basic: str) -> tuple[str, ...]:
    """Return what no error may show of a login: as the header has it, and in words."""
    if not basic:
        return ()
    _, _, password = base64.b64decode(basic).decode().partition(":")
    return tuple(secret for secret in (basic, password) if len(secret) >= SHORTEST)


def _address(given: object) -> Address:
    # No error repeats the URL: it may have a password.
    if not isinstance(given, str):
        raise ConfigurationError(f"url must be a str, not {type(given).__name__}")
    text = given.strip()
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ConfigurationError("url is not a URL") from None
    if parts.scheme == "mock":
        raise ConfigurationError(
            "url: kafkaio has no mock://; kafkaio.testing has a registry in process"
        )
    if parts.scheme not in {"http", "https"} or not host:
        raise ConfigurationError(
            "url needs http:// or https:// and a host, such as http://localhost:8081"
        )
    if parts.query or parts.fragment:
        raise ConfigurationError("url may have no query and no fragment")
    if not text.isprintable() or " " in text:
        raise ConfigurationError("url has spaces or control characters")
    name = _host(host)
    place = name if port is None else f"{name}:{port}"
    basic = ""
    if "@" in parts.netloc:
        basic = basic_login(
            unquote(parts.username or ""), unquote(parts.password or "")
        )
    path = quote(parts.path.rstrip("/"), safe="/%:@!$&'()*+,;=-._~")
    return Address(f"{parts.scheme}://{place}{path}", parts.scheme == "https", basic)


def _host(host: str) -> str:
    """Return a host as a URL has it: an IPv6 address in brackets, a name in ASCII."""
    if ":" in host:
        return f"[{host}]"
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        raise ConfigurationError("the host in a url is not a valid name") from None
