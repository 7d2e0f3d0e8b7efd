"""Tools to test code that uses Kafka.

`Broker` is a Kafka cluster in the event loop, `GroupConfig` its settings for groups,
`SecurityConfig` those for authentication and rights.
The functions make faults for ``broker.faults.on``.
"""

from kafkaio._public import lazy

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "kafkaio.testing._broker.faults": (
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
        "kafkaio.testing._security.config": ("SecurityConfig",),
        "kafkaio.testing._security.oauthbearer": ("TokenClaims",),
    },
)
