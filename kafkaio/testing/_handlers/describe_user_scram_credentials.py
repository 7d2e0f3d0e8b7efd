"""DescribeUserScramCredentials, version 0 (KIP-554)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._handler import RequestContext, handler, right
from kafkaio.testing._security.acls import Operation, ResourceType
from kafkaio.testing._security.credentials import MECHANISM_NUMBERS


def _refused(
    context: RequestContext[DescribeUserScramCredentialsRequest], refusal: Refusal
) -> DescribeUserScramCredentialsResponse | None:
    users = context.request.users
    if users is None:
        return None  # Kafka fails as it makes the answer, and sends none
    failed = DescribeUserScramCredentialsResult(
        error_code=refusal.code, error_message=None
    )
    return DescribeUserScramCredentialsResponse(
        error_code=refusal.code, error_message=None, results=[failed] * len(users)
    )


@handler(
    DescribeUserScramCredentialsRequest,
    right(Operation.DESCRIBE, ResourceType.CLUSTER),
    refused=_refused,
)
async def handle(
    context: RequestContext[DescribeUserScramCredentialsRequest],
) -> DescribeUserScramCredentialsResponse:
    """List the kinds of SCRAM of some users, or of all."""
    users = context.request.users or ()
    known = dict(context.node.broker.security.credentials.scram_users())
    # A user that is named twice is an error, and answered once.
    asked = Counter(user.name for user in users) or Counter(known.keys())
    return DescribeUserScramCredentialsResponse(
        error_message="",
        results=[_one(name, count, known) for name, count in asked.items()],
    )


def _one(
    name: str, count: int, known: Mapping[str, Mapping[str, int]]
) -> DescribeUserScramCredentialsResult:
    if count > 1:
        return DescribeUserScramCredentialsResult(
            user=name,
            error_code=ErrorCode.DUPLICATE_RESOURCE,
            error_message=(
                "Cannot describe SCRAM credentials for the same user twice in a single"
                f" request: {name}"
            ),
        )
    if name not in known:
        return DescribeUserScramCredentialsResult(
            user=name,
            error_code=ErrorCode.RESOURCE_NOT_FOUND,
            error_message=(
                f"Attempt to describe a user credential that does not exist: {name}"
            ),
        )
    return DescribeUserScramCredentialsResult(
        user=name,
        error_message="",
        credential_infos=[
            CredentialInfo(mechanism=number, iterations=known[name][mechanism])
            for number, mechanism in MECHANISM_NUMBERS.items()
            if mechanism in known[name]
        ],
    )
