"""Schema registries: records with Avro, JSON and Protobuf schemas."""

from kafkaio._public import lazy

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "kafkaio.registry._avro": ("Avro",),
        "kafkaio.registry._avro_classes": ("AvroAs", "decimal"),
        "kafkaio.registry._client": ("Registry", "RegistryStatistics"),
        "kafkaio.registry._json": ("JsonSchema",),
        "kafkaio.registry._one_of": ("OneOf",),
        "kafkaio.registry._protobuf": ("Protobuf",),
        "kafkaio.registry._schema": (
            "Compatibility",
            "RegisteredSchema",
            "Schema",
            "SchemaReference",
        ),
        "kafkaio.registry._subjects": (
            "SubjectStrategy",
            "record_name",
            "topic_name",
            "topic_record_name",
        ),
        "kafkaio.registry._tls": ("RegistryTls",),
    },
)
