"""The names of the package for type checkers; see ``__init__.py``."""

from kafkaio.security._providers import (
    ClientAssertion as ClientAssertion,
    ClientCredentials as ClientCredentials,
    FileToken as FileToken,
    JwtBearer as JwtBearer,
    MskToken as MskToken,
    SignedAssertion as SignedAssertion,
    TokenEndpointOptions as TokenEndpointOptions,
    UnsecuredToken as UnsecuredToken,
)
from kafkaio.types import (
    Token as Token,
)

__all__: list[str]
