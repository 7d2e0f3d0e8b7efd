"""The names of the package for type checkers; see ``__init__.py``."""

from kafkaio.registry._schema import (
    RegisteredSchema as RegisteredSchema,
    Schema as Schema,
    SchemaReference as SchemaReference,
)

__all__: list[str]
