"""The quotas of clients: kept, and looked up by filters (KIP-546). None is in force.

An entity is a user, a client id, both together, or an IP address. A name of None
stands for all that have no quota of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from math import inf
from typing import Final, TypeAlias

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing._broker.refusal import Refusal

#: The names of an entity by their types, in Kafka's order.
Entity: TypeAlias = tuple[tuple[str, str | None], ...]
#: An entity and its quotas, as they are saved.
SavedQuota: TypeAlias = tuple[list[tuple[str, str | None]], dict[str, float]]

_USER, _CLIENT_ID, _IP = "user", "client-id", "ip"
#: The order in which Kafka lists the names of an entity, and its quotas.
_TYPES: Final = (_CLIENT_ID, _USER, _IP)
_LONG, _INT, _DOUBLE = ("LONG", 2**63 - 1), ("INT", 2**31 - 1), ("DOUBLE", inf)
_OF_CLIENTS: Final = {
    "producer_byte_rate": _LONG,
    "consumer_byte_rate": _LONG,
    "controller_mutation_rate": _DOUBLE,
    "request_percentage": _DOUBLE,
}
_OF_ADDRESSES: Final = {"connection_creation_rate": _INT}
_KEYS: Final = (*_OF_CLIENTS, *_OF_ADDRESSES)
#: The largest difference at which a number counts as an integer.
_EPSILON: Final = 1e-6
#: The ways in which a filter matches a name: that one, the default, or any.
_EXACT, _DEFAULT, _SPECIFIED = 0, 1, 2


class QuotaStore:
    """The quotas of a cluster."""

    def __init__(self) -> None:
        self._quotas: dict[Entity, dict[str, float]] = {}

    def entity(self, names: Mapping[str, str | None]) -> Entity:
        """Return an entity, with its names in Kafka's order."""

        def place(kind: str) -> int:
            return _TYPES.index(kind) if kind in _TYPES else -1

        return tuple((kind, names[kind]) for kind in sorted(names, key=place))

    def alter(
        self,
        entity: Entity,
        changes: Mapping[str, float | None],
        *,
        validate_only: bool = False,
    ) -> None:
        """Set quotas of an entity, and remove those that are None.

        Raises:
            Refusal: INVALID_REQUEST; nothing was changed.
        """
        _check_entity(entity)
        # Addresses have a limit for connections only.
        keys = _OF_ADDRESSES if _IP in dict(entity) else _OF_CLIENTS
        for key, value in changes.items():
            if value is None:
                continue  # Kafka removes what cannot be there, too
            if key not in keys:
                raise _refused(f"Invalid configuration key {key}")
            _check_value(key, value, *keys[key])
        if validate_only:
            return
        values = self._quotas.get(entity, {}) | {
            key: value for key, value in changes.items() if value is not None
        }
        left = {
            key: value
            for key, value in values.items()
            if changes.get(key, value) is not None
        }
        # Taken out and put back, so that the entity that was changed last comes last.
        self._quotas.pop(entity, None)
        if left:
            self._quotas[entity] = {key: left[key] for key in _KEYS if key in left}

    def matching(
        self, components: Iterable[tuple[str, int, str | None]], *, strict: bool
    ) -> list[tuple[Entity, Mapping[str, float]]]:
        """Return the entities that a filter matches, and their quotas.

        Args:
            components: types of names, what is asked of the name, and the name.
            strict: whether an entity must have names of these types alone.

        Raises:
            Refusal: INVALID_REQUEST or UNSUPPORTED_VERSION.
        """
        wanted: dict[str, tuple[int, str | None]] = {}
        for kind, how, name in components:
            _check_component(kind, how, name)
            if kind in wanted:
                raise _refused(
                    f"Entity type {kind} cannot appear more than once in the filter."
                )
            wanted[kind] = how, name
        # Quotas of addresses are kept apart from those of users and client ids.
        if _IP in wanted and len(wanted) > 1:
            raise _refused(
                "Invalid entity filter component combination. IP filter component "
                "should not be used with user or clientId filter component."
            )
        return [
            (entity, values)
            for entity, values in self._quotas.items()
            if _matches(dict(entity), wanted)
            and not (strict and len(entity) != len(wanted))
        ]

    def saved(self) -> list[SavedQuota]:
        """Return everything, to be saved."""
        return [(list(entity), values) for entity, values in self._quotas.items()]

    def restore(self, saved: Iterable[SavedQuota]) -> None:
        """Take over what was saved."""
        self._quotas = {
            tuple((kind, name) for kind, name in entity): dict(values)
            for entity, values in saved
        }


def _matches(
    names: Mapping[str, str | None], wanted: Mapping[str, tuple[int, str | None]]
) -> bool:
    return all(
        kind in names and (how == _SPECIFIED or names[kind] == name)
        for kind, (how, name) in wanted.items()
    )


def _check_component(kind: str, how: int, name: str | None) -> None:
    if not kind:
        raise _refused("Invalid empty entity type.")
    if kind not in _TYPES:
        raise Refusal(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
    if how == _EXACT:
        if name is None:
            raise _refused(
                "Request specified MATCH_TYPE_EXACT, but set match string to null."
            )
    elif how in {_DEFAULT, _SPECIFIED}:
        if name is not None:
            word = "DEFAULT" if how == _DEFAULT else "SPECIFIED"
            raise _refused(
                f"Request specified MATCH_TYPE_{word}, but also specified a match "
                "string."
            )
    else:
        raise _refused(f"Unknown match type {how}")


def _check_entity(entity: Entity) -> None:
    if not entity:
        raise _refused("Invalid empty client quota entity")
    for kind, name in entity:
        if kind not in _TYPES:
            raise _refused(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _refused(f"Empty {kind} not supported")
    names = dict(entity)
    if _IP in names:
        if len(names) > 1:
            raise _refused(
                "Invalid quota entity combination, IP entity should"
                "not be combined with User or ClientId"
            )
        _check_address(names[_IP])


def _check_address(address: str | None) -> None:
    """Check an address; of names only that of this machine can be resolved."""
    if address is None or address == "localhost":
        return
    try:
        ip_address(address)
    except ValueError:
        raise _refused(f"{address} is not a valid IP or resolvable host.") from None


def _check_value(key: str, value: float, kind: str, most: float) -> None:
    if value <= 0:
        raise _refused(f"Quota {key} must be greater than 0")
    if value > most:
        article = "an" if kind == "INT" else "a"
        raise _refused(f"Proposed value for {key} is too large for {article} {kind}.")
    if kind != "DOUBLE" and abs(int(value + _EPSILON) - value) > _EPSILON:
        raise _refused(f"{key} cannot be a fractional value.")


def _refused(why: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, why)
