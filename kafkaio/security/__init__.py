"""What a client needs on a hostile network: TLS settings, logins, tokens.

A user needs this package for the ready providers of OAUTHBEARER tokens alone. All else
follows from the options ``security_protocol``, ``ssl_...`` and ``sasl_...``.
"""

from kafkaio.types import Token

__all__ = ["Token"]
