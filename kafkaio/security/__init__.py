"""TLS settings, logins and tokens of a client.

Users import from this package only the ready providers of OAUTHBEARER tokens. The
options ``security_protocol``, ``ssl_...`` and ``sasl_...`` decide everything else.

The providers are loaded when they are first used, and the libraries behind them later.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from kafkaio.types import Token

if TYPE_CHECKING:
    from kafkaio.security._providers import (
        ClientAssertion,
        ClientCredentials,
        FileToken,
        JwtBearer,
        MskToken,
        SignedAssertion,
        TokenEndpointOptions,
        UnsecuredToken,
    )

__all__ = [
    "ClientAssertion",
    "ClientCredentials",
    "FileToken",
    "JwtBearer",
    "MskToken",
    "SignedAssertion",
    "Token",
    "TokenEndpointOptions",
    "UnsecuredToken",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}._providers"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
