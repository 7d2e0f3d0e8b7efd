"""Schema registries: records with Avro, JSON and Protobuf schemas."""

from kafkaio._public import lazy

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "kafkaio.registry._client": ("Registry", "RegistryStatistics"),
        "kafkaio.registry._schema": (
            "Compatibility",
            "RegisteredSchema",
            "Schema",
            "SchemaReference",
        ),
        "kafkaio.registry._tls": ("RegistryTls",),
    },
)
