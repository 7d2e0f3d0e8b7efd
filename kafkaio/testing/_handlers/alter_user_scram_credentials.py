"""AlterUserScramCredentials, version 0 (KIP-554)."""

from __future__ import annotations

from collections import Counter
from typing import Final, TypeAlias

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.acls import Operation, ResourceType
from kafkaio.testing._security.credentials import (
    MECHANISM_NUMBERS,
    Credentials,
    StoredScramCredential,
)

_Change: TypeAlias = ScramCredentialDeletion | ScramCredentialUpsertion

#: The limits of Kafka, for both mechanisms.
_LEAST_ITERATIONS: Final = 4096
_MOST_ITERATIONS: Final = 16384


@handler(AlterUserScramCredentialsRequest)
async def handle(
    context: RequestContext[AlterUserScramCredentialsRequest],
) -> AlterUserScramCredentialsResponse:
    """Delete and set what verifies users by SCRAM."""
    rights = context.rights
    changes: list[_Change] = [*context.request.deletions, *context.request.upsertions]
    counts = Counter(change.name for change in changes)
    credentials = context.node.broker.security.credentials
    results = {}
    for change in changes:
        result = AlterUserScramCredentialsResult(user=change.name, error_message=None)
        try:
            rights.require(Operation.ALTER, ResourceType.CLUSTER)
            _change(change, counts[change.name], credentials)
        except Refusal as refusal:
            result.error_code = refusal.code
            result.error_message = refusal.message
        results[change.name] = result
    return AlterUserScramCredentialsResponse(results=list(results.values()))


def _change(
    change: _Change,
    count: int,
    credentials: Credentials,
) -> None:
    """Make one change.

    Raises:
        Refusal: as Kafka refuses it.
    """
    if count > 1:
        raise Refusal(
            ErrorCode.DUPLICATE_RESOURCE,
            "A user credential cannot be altered twice in the same request",
        )
    if not change.name:
        raise Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    mechanism = MECHANISM_NUMBERS.get(change.mechanism)
    if mechanism is None:
        raise Refusal(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(change, ScramCredentialUpsertion):
        if change.iterations < _LEAST_ITERATIONS:
            raise Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
        if change.iterations > _MOST_ITERATIONS:
            raise Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
        # Kafka fails here with an error that it did not expect.
        if not change.salted_password:
            raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
        credential = StoredScramCredential.of_salted(
            mechanism, change.salt, change.iterations, change.salted_password
        )
        credentials.put(change.name, mechanism, credential)
    elif not credentials.delete(change.name, mechanism):
        raise Refusal(
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to delete a user credential that does not exist",
        )
