"""The names of the package for type checkers; see ``__init__.py``."""

from kafkaio.registry._client import (
    Registry as Registry,
    RegistryStatistics as RegistryStatistics,
)
from kafkaio.registry._schema import (
    Compatibility as Compatibility,
    RegisteredSchema as RegisteredSchema,
    Schema as Schema,
    SchemaReference as SchemaReference,
)
from kafkaio.registry._tls import (
    RegistryTls as RegistryTls,
)

__all__: list[str]
