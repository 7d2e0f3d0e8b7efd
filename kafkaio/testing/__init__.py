"""Tools to test code that uses Kafka.

`Broker` is a Kafka cluster in the event loop, `GroupConfig` its settings for groups,
`SecurityConfig` those for authentication and rights. The functions make faults for
``broker.faults.on``. `SchemaRegistry` is a schema registry in the event loop. The other
classes are those of their attributes.
"""

from kafkaio._public import lazy

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "kafkaio.testing._broker.clock": ("Clock",),
        "kafkaio.testing._broker.telemetry": ("PushedTelemetry",),
        "kafkaio.testing._broker.settings": ("TopicSettings",),
        "kafkaio.testing._broker.cluster": ("Topic",),
        "kafkaio.testing._broker.control": (
            "OpenTransaction",
            "Control",
        ),
        "kafkaio.testing._broker.node": ("LoggedRequest",),
        "kafkaio.testing._security.acls": (
            "Acl",
            "AclFilter",
            "AclStore",
            "Operation",
            "PatternType",
            "Permission",
            "ResourceType",
        ),
        "kafkaio.testing._security.credentials": ("Credentials",),
        "kafkaio.testing._security.security": ("Security",),
        "kafkaio.testing._security.session": ("Authentications",),
        "kafkaio.testing._broker.faults": (
            "Action",
            "Fault",
            "Faults",
            "Rule",
            "close_at",
            "corrupt_bytes",
            "delay",
            "disconnect_after_write",
            "disconnect_before_write",
            "drop",
            "duplicate",
            "endless_challenges",
            "error",
            "foreign_nonce",
            "garbage",
            "half_frame",
            "invert_at",
            "iteration_count",
            "metadata_lag",
            "reorder",
            "stall_at",
            "throttle",
            "wrong_correlation_id",
            "wrong_signature",
        ),
        "kafkaio.testing._broker.group_config": ("GroupConfig",),
        "kafkaio.testing._embedded": ("Broker",),
        "kafkaio.testing._registry.faults": ("RegistryFaults", "RegistryRule"),
        "kafkaio.testing._schema_registry": ("RegistryRequest", "SchemaRegistry"),
        "kafkaio.testing._security.config": ("SecurityConfig",),
        "kafkaio.testing._security.oauthbearer": ("TokenClaims",),
    },
)
