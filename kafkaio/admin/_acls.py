"""The operations of `kafkaio.Admin` on access control lists.

The protocol has a number for everything; `_Numbers` has them by the members of the
enumerations. The answers to CreateAcls and DeleteAcls name no item: they are in the
order of the request, which is all that there is to match them by.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final, TypeVar

from kafkaio._arguments import type_name
from kafkaio._client.destinations import ANY, Controller
from kafkaio._client.fanout import Answer, Operation, Results, Terms
from kafkaio.admin._asking import AdminCluster, ask, distinct, items_of
from kafkaio.admin._single import ask_one, known_of, principal_of, reason
from kafkaio.admin._types import (
    ACL_OPERATIONS,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
)
from kafkaio.errors import ArgumentTypeError, ArgumentValueError, ProtocolError
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol.messages import (
    create_acls as create_api,
    delete_acls as delete_api,
    describe_acls as describe_api,
)

KindT = TypeVar("KindT", bound=StrEnum)

_SINCE = "2.1"


def _numbered(kind: type[KindT]) -> tuple[KindT, ...]:
    """The members by their numbers on the wire: UNKNOWN first, as in Kafka."""
    members = tuple(each for each in kind if each.name != "UNKNOWN")
    return (kind("UNKNOWN"), *members)


_RESOURCE_TYPES: Final = _numbered(AclResourceType)
_PATTERN_TYPES: Final = _numbered(AclPatternType)
_PERMISSIONS: Final = _numbered(AclPermission)


def _member(members: Sequence[KindT], number: int) -> KindT:
    return members[number] if 0 <= number < len(members) else members[0]


class Acls:
    """The operations on access control lists, each until a time of the loop's clock.

    Args:
        cluster: performs them.
    """

    def __init__(self, cluster: AdminCluster) -> None:
        self._cluster = cluster

    async def described(
        self, wanted: AclBindingFilter, deadline: float
    ) -> list[AclBinding]:
        """Return the entries that a filter matches, sorted."""
        request = describe_api.DescribeAclsRequest(
            resource_type_filter=_RESOURCE_TYPES.index(wanted.resource_type),
            resource_name_filter=wanted.resource_name,
            pattern_type_filter=_PATTERN_TYPES.index(wanted.pattern_type),
            principal_filter=wanted.principal,
            host_filter=wanted.host,
            operation=ACL_OPERATIONS.index(wanted.operation),
            permission_type=_PERMISSIONS.index(wanted.permission),
        )
        answer = await ask_one(
            self._cluster,
            ("describe", "the access control lists"),
            describe_api.DescribeAclsRequest,
            lambda _: request,
            lambda it: (it.error_code, it.error_message),
            to=ANY,
            deadline=deadline,
            since=_SINCE,
        )
        return sorted(
            (
                _binding(
                    (it.resource_type, it.resource_name, it.pattern_type),
                    (each.principal, each.host),
                    (each.operation, each.permission_type),
                )
                for it in answer.resources
                for each in it.acls
            ),
            key=_order,
        )

    async def create(
        self, bindings: Iterable[AclBinding], deadline: float
    ) -> Results[AclBinding, None]:
        """Create entries, as `kafkaio.Admin` documents it."""

        def build(
            items: Sequence[AclBinding], terms: Terms
        ) -> create_api.CreateAclsRequest:
            del terms
            return create_api.CreateAclsRequest(
                creations=[
                    create_api.AclCreation(
                        resource_type=_RESOURCE_TYPES.index(item.resource_type),
                        resource_name=item.resource_name,
                        resource_pattern_type=_PATTERN_TYPES.index(item.pattern_type),
                        principal=item.principal,
                        host=item.host,
                        operation=ACL_OPERATIONS.index(item.operation),
                        permission_type=_PERMISSIONS.index(item.permission),
                    )
                    for item in items
                ]
            )

        def read(
            response: create_api.CreateAclsResponse, items: Sequence[AclBinding]
        ) -> Iterator[Answer[AclBinding, None]]:
            _check_count("create access control lists", items, response.results)
            for item, it in zip(items, response.results, strict=True):
                yield Answer(
                    item, None, it.error_code, reason(it.error_code, it.error_message)
                )

        operation: Operation[AclBinding, None, create_api.CreateAclsResponse] = (
            Operation(
                what="create the entry",
                request=create_api.CreateAclsRequest,
                destination=lambda _: Controller,
                build=build,
                read=read,
                name=_named,
                is_exact=True,
            )
        )
        return await ask(self._cluster, operation, bindings, deadline, _SINCE)

    async def delete(
        self, filters: Iterable[AclBindingFilter], deadline: float
    ) -> Results[AclBindingFilter, tuple[AclBinding, ...]]:
        """Delete what filters match, as `kafkaio.Admin` documents it."""

        def build(
            items: Sequence[AclBindingFilter], terms: Terms
        ) -> delete_api.DeleteAclsRequest:
            del terms
            return delete_api.DeleteAclsRequest(
                filters=[
                    delete_api.DeleteAclsFilter(
                        resource_type_filter=_RESOURCE_TYPES.index(item.resource_type),
                        resource_name_filter=item.resource_name,
                        pattern_type_filter=_PATTERN_TYPES.index(item.pattern_type),
                        principal_filter=item.principal,
                        host_filter=item.host,
                        operation=ACL_OPERATIONS.index(item.operation),
                        permission_type=_PERMISSIONS.index(item.permission),
                    )
                    for item in items
                ]
            )

        operation: Operation[
            AclBindingFilter, tuple[AclBinding, ...], delete_api.DeleteAclsResponse
        ] = Operation(
            what="delete the entries that match",
            request=delete_api.DeleteAclsRequest,
            destination=lambda _: Controller,
            build=build,
            read=_read_deletion,
            is_exact=True,
        )
        return await ask(self._cluster, operation, filters, deadline, _SINCE)


def _read_deletion(
    response: delete_api.DeleteAclsResponse, items: Sequence[AclBindingFilter]
) -> Iterator[Answer[AclBindingFilter, tuple[AclBinding, ...]]]:
    _check_count("delete access control lists", items, response.filter_results)
    for item, it in zip(items, response.filter_results, strict=True):
        deleted: list[AclBinding] = []
        code, message = it.error_code, reason(it.error_code, it.error_message)
        for each in it.matching_acls:
            found = _binding(
                (each.resource_type, each.resource_name, each.pattern_type),
                (each.principal, each.host),
                (each.operation, each.permission_type),
            )
            if not each.error_code:
                deleted.append(found)
            elif not code:
                code = each.error_code
                why = reason(code, each.error_message)
                message = f"{_named(found)} stays{f': {why}' if why else ''}"
        if code and deleted:
            message = f"{message or broker_error(code, 'it failed')}; deleted all the "
            message += f"same: {', '.join(map(_named, deleted))}"
        yield Answer(item, tuple(sorted(deleted, key=_order)), code, message)


def _check_count(what: str, items: Sequence[object], results: Sequence[object]) -> None:
    if len(items) != len(results):
        raise ProtocolError(
            f"{what}: the answer has {len(results)} results for {len(items)} items"
        )


def _binding(
    resource: tuple[int, str, int], who: tuple[str, str], what: tuple[int, int]
) -> AclBinding:
    return AclBinding(
        resource_type=_member(_RESOURCE_TYPES, resource[0]),
        resource_name=resource[1],
        principal=who[0],
        operation=_member(ACL_OPERATIONS, what[0]),
        permission=_member(_PERMISSIONS, what[1]),
        host=who[1],
        pattern_type=_member(_PATTERN_TYPES, resource[2]),
    )


def _order(binding: AclBinding) -> tuple[str, ...]:
    return (
        binding.resource_type,
        binding.resource_name,
        binding.pattern_type,
        binding.principal,
        binding.host,
        binding.operation,
        binding.permission,
    )


def _named(it: AclBinding) -> str:
    return (
        f"{it.permission} {it.principal} {it.operation} of {it.pattern_type} "
        f"{it.resource_type} {it.resource_name!r} from {it.host}"
    )


def check_bindings(bindings: Iterable[AclBinding]) -> list[AclBinding]:
    """Check entries that are to be created.

    Raises:
        ArgumentTypeError: one is no `AclBinding`, or a part of it has the wrong type.
        ArgumentValueError: one is there twice, or a part is for filters only.
    """
    return distinct("bindings", map(_checked, items_of("bindings", bindings)))


def _checked(binding: object) -> AclBinding:
    if not isinstance(binding, AclBinding):
        raise ArgumentTypeError(
            f"bindings must be a collection of AclBinding, not of {type_name(binding)}"
        )
    checked = AclBinding(
        known_of("resource_type", AclResourceType, binding.resource_type),
        binding.resource_name,
        binding.principal,
        known_of("operation", AclOperation, binding.operation),
        known_of("permission", AclPermission, binding.permission),
        binding.host,
        known_of("pattern_type", AclPatternType, binding.pattern_type),
    )
    for name in ("resource_type", "operation", "permission", "pattern_type"):
        if getattr(checked, name) in {"ANY", "MATCH"}:
            raise ArgumentValueError(
                f"{name}={str(getattr(checked, name))!r} is for filters; an entry "
                "names one"
            )
    for name in ("resource_name", "host"):
        value = getattr(checked, name)
        if not isinstance(value, str):
            raise ArgumentTypeError(f"{name} must be str, not {type_name(value)}")
        if not value:
            raise ArgumentValueError(f"{name} must not be empty")
    principal_of("principal", checked.principal)
    return checked


def check_filters(filters: Iterable[AclBindingFilter]) -> list[AclBindingFilter]:
    """Check filters.

    Raises:
        ArgumentTypeError: one is no `AclBindingFilter`, or a part has the wrong type.
        ArgumentValueError: one is there twice, or a part is impossible.
    """
    return distinct("filters", map(check_filter, items_of("filters", filters)))


def check_filter(wanted: object) -> AclBindingFilter:
    """Check one filter, as `check_filters` does."""
    if not isinstance(wanted, AclBindingFilter):
        raise ArgumentTypeError(
            f"a filter must be AclBindingFilter, not {type_name(wanted)}"
        )
    for name in ("resource_name", "principal", "host"):
        value = getattr(wanted, name)
        if value is not None and not isinstance(value, str):
            raise ArgumentTypeError(
                f"{name} must be str or None, not {type_name(value)}"
            )
    if wanted.principal is not None:
        principal_of("principal", wanted.principal)
    return AclBindingFilter(
        known_of("resource_type", AclResourceType, wanted.resource_type),
        wanted.resource_name,
        wanted.principal,
        known_of("operation", AclOperation, wanted.operation),
        known_of("permission", AclPermission, wanted.permission),
        wanted.host,
        known_of("pattern_type", AclPatternType, wanted.pattern_type),
    )
