"""Map the error codes of brokers to exceptions.

The tables (`kafkaio.protocol._error_tables`) are loaded with the first error.
"""

from __future__ import annotations

from kafkaio.errors import AuthorizationError, BrokerError
from kafkaio.protocol._error_codes import ErrorCode


def meaning(code: int) -> str:
    """Return what an error code says in words; empty if the name has to do."""
    from kafkaio.protocol._error_tables import MEANINGS

    return MEANINGS.get(ErrorCode(code), "")


def sentence(code: int, what: str) -> str:
    """Return a message for an answer that has a code and no words."""
    said = meaning(code)
    return f"{what}: {said}" if said else what


def broker_error(
    code: int,
    message: str,
    *,
    api: int = -1,
    topic: str = "",
    group: str = "",
    transactional_id: str = "",
) -> BrokerError:
    """Return the exception for an error code; ``message`` says what was refused.

    A newer broker may send a code that this release does not know. The exception then
    has the name UNKNOWN_SERVER_ERROR and is not retriable, but keeps the code.

    Args:
        code: the error code of an answer.
        message: what was refused.
        api: Kafka's number of the request, so that an `AuthorizationError` can say
            which right is missing; -1 if there was none.
        topic: the topic that the request was about, for the same purpose.
        group: the group that it was about.
        transactional_id: the transactional id that it was about.
    """
    from kafkaio.protocol._error_tables import CLASSES, RESOURCES

    # A code that is not known becomes UNKNOWN_SERVER_ERROR, which is not repeated.
    known = ErrorCode(code)
    kind = CLASSES.get(known, BrokerError)
    if kind is AuthorizationError:
        resource = RESOURCES[known]
        names = {"topic": topic, "group": group, "transactional id": transactional_id}
        return _unauthorized(known, message, api, resource, names.get(resource, ""))
    return kind(message, code=code, name=known.name, retriable=known.retriable)


def _unauthorized(
    code: ErrorCode, message: str, api: int, kind: str, name: str
) -> AuthorizationError:
    from kafkaio.protocol import _api_numbers as apis
    from kafkaio.protocol._error_tables import IDEMPOTENT, RIGHTS

    right = RIGHTS.get(kind, {}).get(api, "")
    where = f"{kind} {name!r}" if name else f"the {kind}"
    if kind == "cluster" and api in IDEMPOTENT:
        right = "IDEMPOTENT_WRITE"
        needs = (
            "the principal needs WRITE on a topic, or IDEMPOTENT_WRITE on the cluster"
        )
    elif kind == "topic" and api == apis.METADATA:
        # Brokers hide what a principal may not describe: the answer is the same.
        what = where if name else "such topic"
        needs = f"there is no {what}, or the principal may not DESCRIBE it"
    elif right:
        needs = f"the principal needs {right} on {where}"
    else:
        needs = ""
    return AuthorizationError(
        f"{message}; {needs}" if needs else message,
        code=code,
        name=code.name,
        retriable=code.retriable,
        resource_type=kind,
        resource=name,
        operation=right,
    )
