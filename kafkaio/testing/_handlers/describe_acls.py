"""DescribeAcls, versions 1 to 3 (KIP-140, KIP-290)."""

from __future__ import annotations

from kafkaio.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from kafkaio.testing._handlers._acls import acls_for, filter_of
from kafkaio.testing._handlers._handler import RequestContext, handler, with_message
from kafkaio.testing._security.acls import Acl, Operation


@handler(DescribeAclsRequest, refused=with_message)
async def handle(context: RequestContext[DescribeAclsRequest]) -> DescribeAclsResponse:
    """List ACLs by resource."""
    acls = acls_for(context, Operation.DESCRIBE)
    found = acls.find(filter_of(context.request))
    return DescribeAclsResponse(resources=_by_resource(found))


def _by_resource(acls: list[Acl]) -> list[DescribeAclsResource]:
    found: dict[tuple[int, str, int], DescribeAclsResource] = {}
    for acl in acls:
        key = (acl.resource_type, acl.name, acl.pattern)
        if key not in found:
            found[key] = DescribeAclsResource(
                resource_type=acl.resource_type,
                resource_name=acl.name,
                pattern_type=acl.pattern,
            )
        found[key].acls.append(
            AclDescription(
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
        )
    return list(found.values())
