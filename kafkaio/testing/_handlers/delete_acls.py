"""DeleteAcls, versions 1 to 3 (KIP-140, KIP-290)."""

from __future__ import annotations

from kafkaio.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._acls import acls_for, filter_of
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.acls import Acl, Operation


def _refused(
    context: RequestContext[DeleteAclsRequest], refusal: Refusal
) -> DeleteAclsResponse:
    failed = DeleteAclsFilterResult(
        error_code=refusal.code, error_message=refusal.message
    )
    return DeleteAclsResponse(filter_results=[failed] * len(context.request.filters))


@handler(DeleteAclsRequest, refused=_refused, by_partition=True)
async def handle(
    context: RequestContext[DeleteAclsRequest],
) -> DeleteAclsResponse | None:
    """Delete what the filters choose. Unknown numbers close the connection."""
    filters = [filter_of(asked) for asked in context.request.filters]
    if any(chosen.is_unknown for chosen in filters):
        context.connection.abort()
        return None
    acls = acls_for(context, Operation.ALTER)
    # A filter with a fault deletes nothing, so it is left out before.
    faults = [context.connection.error_for(one.name or "") for one in filters]
    passed = [one for one, fault in zip(filters, faults, strict=True) if fault is None]
    deleted = iter(acls.remove(passed))
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(
                error_message=None,
                matching_acls=[_deleted(acl) for acl in next(deleted)],
            )
            if fault is None
            else DeleteAclsFilterResult(error_code=fault, error_message=None)
            for fault in faults
        ]
    )


def _deleted(acl: Acl) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=acl.resource_type,
        resource_name=acl.name,
        pattern_type=acl.pattern,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )
