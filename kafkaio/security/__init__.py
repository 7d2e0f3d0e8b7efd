"""TLS settings, logins and tokens of a client.

Users import from this package only the ready providers of OAUTHBEARER tokens. The
options ``security_protocol``, ``ssl_...`` and ``sasl_...`` decide everything else.

The providers are loaded when they are first used, and the libraries behind them later.
"""

from kafkaio._public import lazy

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "kafkaio.security._providers": (
            "ClientAssertion",
            "ClientCredentials",
            "FileToken",
            "JwtBearer",
            "MskToken",
            "SignedAssertion",
            "TokenEndpointOptions",
            "UnsecuredToken",
        ),
        "kafkaio.types": ("Token",),
    },
)
