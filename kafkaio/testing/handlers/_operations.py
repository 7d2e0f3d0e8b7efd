"""Authorized operations as bit fields (KIP-430): every client may do everything."""

from __future__ import annotations

from typing import Final

__all__ = ["ON_CLUSTER", "ON_GROUP", "ON_TOPIC", "operations_if"]

# Numbers of Kafka's AclOperation.
_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE, _CLUSTER_ACTION = range(3, 10)
_DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE = range(10, 13)


def _bits(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


_CONFIGS: Final = (_DESCRIBE_CONFIGS, _ALTER_CONFIGS)
ON_TOPIC: Final = _bits(_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE, *_CONFIGS)
ON_CLUSTER: Final = _bits(
    _CREATE, _ALTER, _DESCRIBE, _CLUSTER_ACTION, _IDEMPOTENT_WRITE, *_CONFIGS
)
ON_GROUP: Final = _bits(_READ, _DELETE, _DESCRIBE, *_CONFIGS)
_NOT_REQUESTED: Final = -(2**31)


def operations_if(is_asked: bool, operations: int) -> int:  # noqa: FBT001  (a request's flag)
    """The value of a field of operations: unset if the client did not ask for it."""
    return operations if is_asked else _NOT_REQUESTED
