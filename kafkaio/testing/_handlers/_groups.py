"""The checks that the APIs of single groups share."""

from __future__ import annotations

from typing import Final

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Request, Response
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._groups.coordinator import coordinator_of
from kafkaio.testing._handlers._handler import (
    Check,
    RequestContext,
    coordinated,
    right,
)
from kafkaio.testing._security.acls import Operation, ResourceType

_FIELD: Final = "group_id"


def for_group(operation: Operation) -> Check[Request[Response]]:
    """Check the right on the group, its id, and that this node is its coordinator."""
    may = right(operation, ResourceType.GROUP, _FIELD)
    is_coordinator = coordinated(coordinator_of, _FIELD)

    def check(context: RequestContext[Request[Response]]) -> None:
        may(context)
        if not getattr(context.request, _FIELD):
            raise Refusal(ErrorCode.INVALID_GROUP_ID)
        is_coordinator(context)

    return check
