"""What a client needs on a hostile network: TLS settings, logins, tokens.

A user needs this package for the ready providers of OAUTHBEARER tokens alone. All else
follows from the options ``security_protocol``, ``ssl_...`` and ``sasl_...``.

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
