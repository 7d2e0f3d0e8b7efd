"""CreateAcls, versions 1 to 3 (KIP-140, KIP-290)."""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._acls import acls_for, enum_of
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.acls import (
    Acl,
    AclStore,
    InvalidAcl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)


def _refused(
    context: RequestContext[CreateAclsRequest], refusal: Refusal
) -> CreateAclsResponse:
    failed = _failed(refusal.code, refusal.message)
    return CreateAclsResponse(results=[failed] * len(context.request.creations))


@handler(CreateAclsRequest, refused=_refused, by_partition=True)
async def handle(context: RequestContext[CreateAclsRequest]) -> CreateAclsResponse:
    """Add ACLs, each by itself. All nodes apply them when this is answered.

    As in Kafka, what only a filter can have fails the whole request.
    """
    wanted = [_acl(asked) for asked in context.request.creations]
    acls = acls_for(context, Operation.ALTER)
    if any(_is_for_filters(acl) for acl in wanted):
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
    return CreateAclsResponse(results=[_add(context, acls, acl) for acl in wanted])


def _acl(asked: AclCreation) -> Acl:
    return Acl(
        resource_type=enum_of(ResourceType, asked.resource_type),
        name=asked.resource_name,
        principal=asked.principal,
        operation=enum_of(Operation, asked.operation),
        permission=enum_of(Permission, asked.permission_type),
        pattern=enum_of(PatternType, asked.resource_pattern_type),
        host=asked.host,
    )


def _is_for_filters(acl: Acl) -> bool:
    return (
        acl.resource_type is ResourceType.ANY
        or acl.pattern in {PatternType.ANY, PatternType.MATCH}
        or acl.operation is Operation.ANY
        or acl.permission is Permission.ANY
    )


def _add(
    context: RequestContext[CreateAclsRequest], acls: AclStore, acl: Acl
) -> AclCreationResult:
    try:
        context.connection.check(acl.name)
        acls.add(acl)
    except Refusal as refusal:
        return _failed(refusal.code, refusal.message)
    # One ACL that Kafka refuses does not keep the others from being added.
    except InvalidAcl as invalid:
        return _failed(ErrorCode.INVALID_REQUEST, str(invalid))
    return AclCreationResult(error_message="")


def _failed(code: ErrorCode, message: str | None) -> AclCreationResult:
    return AclCreationResult(error_code=code, error_message=message)
