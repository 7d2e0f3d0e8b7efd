"""The operations of `kafkaio.Admin` on access control lists.

The protocol has numbers for the members of the enumerations: the position in the
tuples below. The results in the answers to CreateAcls and DeleteAcls do not name their
item. They are in the order of the request, and are matched by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final, TypeVar

from kafkaio._arguments import (
    type_name,
)
from kafkaio._client.destinations import ANY, Controller
from kafkaio._client.fanout import Answer, Operation, Terms
from kafkaio.admin._asking import ask, ask_one, outcome, reason
from kafkaio.admin._checks import distinct, items_of, known_of, principal_of
from kafkaio.admin._subject import Subject
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
from kafkaio.protocol import messages
from kafkaio.protocol._broker_errors import broker_error

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
    # A newer broker may have members that are not known here: they are UNKNOWN.
    return members[number] if 0 <= number < len(members) else members[0]


class Acls(Subject):
    """The operations on access control lists."""

    async def describe_acls(
        self,
        filter: AclBindingFilter | None = None,  # noqa: A002 - Java's name
        *,
        timeout: float | None = None,
    ) -> list[AclBinding]:
        """Return the entries of the access control lists that a filter matches.

        Brokers learn of a change a moment after it was made.

        Args:
            filter: which entries; all by default.
            timeout: seconds.

        Returns:
            The entries, sorted.

        Raises:
            AuthorizationError: the client may not describe the cluster.
            BrokerError: SECURITY_DISABLED, if the brokers check no rights.
            ArgumentTypeError: the filter has the wrong type.
            ArgumentValueError: a part of it is impossible.
            RequestTimeout: no broker answered in time.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        wanted = check_filter(AclBindingFilter() if filter is None else filter)
        request = messages.DescribeAclsRequest(
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
            messages.DescribeAclsRequest,
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

    async def create_acls(
        self,
        bindings: Iterable[AclBinding],
        *,
        timeout: float | None = None,
    ) -> dict[AclBinding, None]:
        """Create entries of the access control lists.

        Each entry is created for itself; one that exists stays as it is. Brokers heed
        it a moment later. If the call is cancelled, entries may still be created.

        Args:
            bindings: the entries.
            timeout: seconds.

        Returns:
            None by entry, in the order of ``bindings``.

        Raises:
            AuthorizationError: the client may not alter the cluster.
            BrokerError: SECURITY_DISABLED, if the brokers check no rights;
                INVALID_REQUEST or another refusal.
            ArgumentTypeError: a part of an entry has the wrong type.
            ArgumentValueError: an entry occurs twice, or a part of it is impossible.
            RequestTimeout: no answer arrived in time; entries may be created.
            AdminErrors: several entries failed.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        wanted = check_bindings(bindings)

        def build(
            items: Sequence[AclBinding], terms: Terms
        ) -> messages.CreateAclsRequest:
            del terms
            return messages.CreateAclsRequest(
                creations=[
                    messages.AclCreation(
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
            response: messages.CreateAclsResponse, items: Sequence[AclBinding]
        ) -> Iterator[Answer[AclBinding, None]]:
            _check_count("create access control lists", items, response.results)
            for item, it in zip(items, response.results, strict=True):
                yield Answer(
                    item, None, it.error_code, reason(it.error_code, it.error_message)
                )

        operation: Operation[AclBinding, None, messages.CreateAclsResponse] = Operation(
            what="create the entry",
            request=messages.CreateAclsRequest,
            destination=lambda _: Controller,
            build=build,
            read=read,
            name=_named,
            is_exact=True,
        )
        results = await ask(self._cluster, operation, wanted, deadline, _SINCE)
        return outcome("create entries", wanted, results)

    async def delete_acls(
        self,
        filters: Iterable[AclBindingFilter],
        *,
        timeout: float | None = None,
    ) -> dict[AclBindingFilter, tuple[AclBinding, ...]]:
        """Delete the entries of the access control lists that filters match.

        A filter without anything matches every entry. If the call is cancelled,
        entries may still be deleted.

        Args:
            filters: which entries.
            timeout: seconds.

        Returns:
            The entries that were deleted by filter, in the order of ``filters``. If
            the answer to the first attempt was lost, those that it deleted are missing.

        Raises:
            AuthorizationError: the client may not alter the cluster.
            BrokerError: SECURITY_DISABLED, if the brokers check no rights; or an entry
                could not be deleted: the message names it, and those that were.
            ArgumentTypeError: a part of a filter has the wrong type.
            ArgumentValueError: a filter occurs twice, or a part of it is impossible.
            RequestTimeout: no answer arrived in time; entries may be deleted.
            AdminErrors: several filters failed.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        wanted = check_filters(filters)

        def build(
            items: Sequence[AclBindingFilter], terms: Terms
        ) -> messages.DeleteAclsRequest:
            del terms
            return messages.DeleteAclsRequest(
                filters=[
                    messages.DeleteAclsFilter(
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
            AclBindingFilter, tuple[AclBinding, ...], messages.DeleteAclsResponse
        ] = Operation(
            what="delete the entries that match",
            request=messages.DeleteAclsRequest,
            destination=lambda _: Controller,
            build=build,
            read=_read_deletion,
            is_exact=True,
        )
        results = await ask(self._cluster, operation, wanted, deadline, _SINCE)
        return outcome("delete entries", wanted, results)


def _read_deletion(
    response: messages.DeleteAclsResponse, items: Sequence[AclBindingFilter]
) -> Iterator[Answer[AclBindingFilter, tuple[AclBinding, ...]]]:
    _check_count("delete access control lists", items, response.filter_results)
    for item, it in zip(items, response.filter_results, strict=True):
        deleted: list[AclBinding] = []
        code, message = it.error_code, reason(it.error_code, it.error_message)
        # A filter can fail as a whole, or for some of the entries that it matches. The
        # item has one error; its message names the entries that were deleted before.
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
    # Results are matched by their position. With one missing, every result after it
    # would be reported for the wrong entry.
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
        ArgumentTypeError: one is not an `AclBinding`, or a part has the wrong type.
        ArgumentValueError: one occurs twice, or a part is for filters only.
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
    # The enumerations have two members that only filters can have.
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
        ArgumentTypeError: one is not an `AclBindingFilter`, or a part of it has the
            wrong type.
        ArgumentValueError: one occurs twice, or a part is impossible.
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
