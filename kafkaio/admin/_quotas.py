"""The operations of `kafkaio.Admin` on quotas of clients (KIP-546).

The controller acknowledges a change; brokers apply it a moment later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

from kafkaio._arguments import (
    type_name,
)
from kafkaio._client.destinations import ANY, Controller
from kafkaio._client.fanout import Answer, Operation, Terms
from kafkaio.admin._asking import ask, ask_one, need_brokers, outcome, reason
from kafkaio.admin._subject import Subject
from kafkaio.admin._types import (
    QuotaEntity,
    QuotaFilter,
    QuotaName,
)
from kafkaio.errors import ArgumentTypeError, ArgumentValueError, ProtocolError
from kafkaio.protocol import messages

_SINCE = "2.6"
#: The types of entities on the wire by the attributes of `QuotaEntity`.
_TYPES: Final[Mapping[str, str]] = {
    "user": "user",
    "client_id": "client-id",
    "ip": "ip",
}
_EXACT, _DEFAULT, _ANY = 0, 1, 2


class Quotas(Subject):
    """The operations on quotas of clients."""

    async def describe_client_quotas(
        self,
        filter: QuotaFilter | None = None,  # noqa: A002 - Java's name
        *,
        timeout: float | None = None,
    ) -> dict[QuotaEntity, dict[str, float]]:
        """Return the quotas of clients that a filter matches (KIP-546).

        It needs Kafka 2.6. Brokers learn of a change a moment after it was made.

        Args:
            filter: which quotas; all by default.
            timeout: seconds.

        Returns:
            Numbers by the names of quotas, such as ``producer_byte_rate``, by entity.

        Raises:
            AuthorizationError: the client may not describe the configs of the cluster.
            BrokerError: INVALID_REQUEST, if the filter is impossible.
            ArgumentTypeError: the filter, or a name in it, has the wrong type.
            UnsupportedVersion: the broker is too old.
            RequestTimeout: no broker answered in time.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        wanted = check_filter(QuotaFilter() if filter is None else filter)
        need_brokers(self._cluster, "describe quotas")
        request = messages.DescribeClientQuotasRequest(
            components=[
                _component(kind, getattr(wanted, name))
                for name, kind in _TYPES.items()
                if getattr(wanted, name) is not None
            ],
            strict=wanted.strict,
        )
        answer = await ask_one(
            self._cluster,
            ("describe", "the quotas of clients"),
            messages.DescribeClientQuotasRequest,
            lambda _: request,
            lambda it: (it.error_code, it.error_message),
            to=ANY,
            deadline=deadline,
            since=_SINCE,
        )
        return {
            _entity((it.entity_type, it.entity_name) for it in entry.entity): {
                value.key: value.value for value in entry.values
            }
            for entry in answer.entries or ()
        }

    async def alter_client_quotas(
        self,
        alterations: Mapping[QuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> dict[QuotaEntity, None]:
        """Set and remove quotas of clients (KIP-546).

        It needs Kafka 2.6. Each entity is changed for itself, and all of its quotas
        that are named, or none. Others stay as they are. If the call is cancelled,
        quotas may still be changed.

        Args:
            alterations: by entity, a number for each quota to set, such as
                ``producer_byte_rate``, and None for each quota to remove.
            validate_only: whether the controller only checks whether it would do it.
            timeout: seconds.

        Returns:
            None by entity, in the order of ``alterations``.

        Raises:
            AuthorizationError: the client may not alter the configs of the cluster.
            BrokerError: INVALID_REQUEST, if the quota or entity does not exist.
            ArgumentTypeError: an entity or a quota has the wrong type.
            ArgumentValueError: an entity names nobody.
            UnsupportedVersion: the broker is too old.
            RequestTimeout: no answer arrived in time; quotas may be changed.
            AdminErrors: several entities failed.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        wanted = check_alterations(alterations)
        need_brokers(self._cluster, "alter quotas")

        def build(
            items: Sequence[QuotaEntity], terms: Terms
        ) -> messages.AlterClientQuotasRequest:
            del terms
            return messages.AlterClientQuotasRequest(
                entries=[
                    messages.AlterClientQuotasRequestEntryData(
                        entity=[
                            messages.AlterClientQuotasRequestEntityData(
                                entity_type=kind, entity_name=name
                            )
                            for kind, name in _parts(item)
                        ],
                        ops=[
                            messages.OpData(key=key, remove=True)
                            if value is None
                            else messages.OpData(key=key, value=float(value))
                            for key, value in wanted[item].items()
                        ],
                    )
                    for item in items
                ],
                validate_only=validate_only,
            )

        operation: Operation[QuotaEntity, None, messages.AlterClientQuotasResponse] = (
            Operation(
                what="alter the quotas of",
                request=messages.AlterClientQuotasRequest,
                destination=lambda _: Controller,
                build=build,
                read=_read_alteration,
                name=_named,
                is_exact=True,
            )
        )
        results = await ask(self._cluster, operation, wanted, deadline, _SINCE)
        return outcome("alter quotas", wanted, results)


def _read_alteration(
    response: messages.AlterClientQuotasResponse, items: object
) -> Iterator[Answer[QuotaEntity, None]]:
    del items
    for it in response.entries:
        entity = _entity((part.entity_type, part.entity_name) for part in it.entity)
        message = reason(it.error_code, it.error_message)
        yield Answer(entity, None, it.error_code, message)


def _component(kind: str, name: str | QuotaName) -> messages.ComponentData:
    if name is QuotaName.DEFAULT:
        how, match = _DEFAULT, None
    elif name is QuotaName.ANY:
        how, match = _ANY, None
    else:
        how, match = _EXACT, name
    return messages.ComponentData(entity_type=kind, match_type=how, match=match)


def _entity(parts: Iterator[tuple[str, str | None]]) -> QuotaEntity:
    # On the wire, an entity without a name is the default of its type.
    names: dict[str, str | Literal[QuotaName.DEFAULT]] = {
        kind: QuotaName.DEFAULT if name is None else name for kind, name in parts
    }
    # To leave out a type of a newer broker would merge the quotas of several entities.
    if unknown := names.keys() - set(_TYPES.values()):
        raise ProtocolError(f"a quota is for an unknown {', '.join(sorted(unknown))}")
    return QuotaEntity(
        user=names.get("user"), client_id=names.get("client-id"), ip=names.get("ip")
    )


def _parts(entity: QuotaEntity) -> list[tuple[str, str | None]]:
    given = {kind: getattr(entity, name) for name, kind in _TYPES.items()}
    return [
        (kind, None if name is QuotaName.DEFAULT else name)
        for kind, name in given.items()
        if name is not None
    ]


def _named(entity: QuotaEntity) -> str:
    return ", ".join(
        f"the default {kind}" if name is None else f"{kind} {name!r}"
        for kind, name in _parts(entity)
    )


def check_filter(wanted: object) -> QuotaFilter:
    """Check a filter.

    Raises:
        ArgumentTypeError: it is not a `QuotaFilter`, or a name has the wrong type.
    """
    if not isinstance(wanted, QuotaFilter):
        raise ArgumentTypeError(f"filter must be QuotaFilter, not {type_name(wanted)}")
    for name in _TYPES:
        value = getattr(wanted, name)
        if value is not None and not isinstance(value, str | QuotaName):
            raise ArgumentTypeError(
                f"{name} must be str, QuotaName or None, not {type_name(value)}"
            )
    return wanted


def check_alterations(
    alterations: Mapping[QuotaEntity, Mapping[str, float | None]],
) -> dict[QuotaEntity, dict[str, float | None]]:
    """Check changes of quotas.

    Raises:
        ArgumentTypeError: the mapping, an entity, or a quota has the wrong type.
        ArgumentValueError: an entity names nobody, or any.
    """
    if not isinstance(alterations, Mapping):
        raise ArgumentTypeError(
            "alterations must be a mapping of QuotaEntity to quotas, not "
            f"{type_name(alterations)}"
        )
    return {
        _checked_entity(entity): _checked_quotas(entity, quotas)
        for entity, quotas in alterations.items()
    }


def _checked_entity(entity: object) -> QuotaEntity:
    if not isinstance(entity, QuotaEntity):
        raise ArgumentTypeError(
            f"alterations must have QuotaEntity as keys, not {type_name(entity)}"
        )
    names = {name: getattr(entity, name) for name in _TYPES}
    for name, value in names.items():
        if value is QuotaName.ANY:
            raise ArgumentValueError(f"{name}: QuotaName.ANY is for filters")
        if value is not None and not isinstance(value, str | QuotaName):
            raise ArgumentTypeError(f"{name} must be str, not {type_name(value)}")
    if all(value is None for value in names.values()):
        raise ArgumentValueError("an entity must have a user, a client_id or an ip")
    return entity


def _checked_quotas(entity: object, quotas: object) -> dict[str, float | None]:
    if not isinstance(quotas, Mapping):
        raise ArgumentTypeError(
            f"the quotas of {entity} must be a mapping, not {type_name(quotas)}"
        )
    for key, value in quotas.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not isinstance(key, str) or not (value is None or is_number):
            raise ArgumentTypeError(
                f"the quotas of {entity} must be numbers or None by their names, not "
                f"{key!r}: {value!r}"
            )
    return dict(quotas)
