"""AlterClientQuotas, versions 0 and 1 (KIP-546). The quotas are kept, not enforced."""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntityData,
    AlterClientQuotasResponseEntryData,
)
from kafkaio.testing._broker.quotas import Entity
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.acls import Operation, ResourceType


@handler(AlterClientQuotasRequest, by_partition=True)
async def handle(
    context: RequestContext[AlterClientQuotasRequest],
) -> AlterClientQuotasResponse:
    """Set and remove quotas of entities; each succeeds or fails for itself."""
    cluster = context.cluster
    rights = context.rights
    results: dict[Entity, AlterClientQuotasResponseEntryData] = {}
    for entry in context.request.entries:
        names = {one.entity_type: one.entity_name for one in entry.entity}
        entity = cluster.quotas.entity(names)
        changes = {op.key: None if op.remove else op.value for op in entry.ops}
        result = _result(entity)
        try:
            rights.require(Operation.ALTER_CONFIGS, ResourceType.CLUSTER)
            if entity in results or len(changes) < len(entry.ops):
                raise _duplicate(entity)
            cluster.quotas.alter(
                entity, changes, validate_only=context.request.validate_only
            )
        except Refusal as refusal:
            result.error_code = refusal.code
            result.error_message = refusal.message
        results[entity] = result
    # Once for all entities.
    cluster.save()
    return AlterClientQuotasResponse(entries=list(results.values()))


def _result(entity: Entity) -> AlterClientQuotasResponseEntryData:
    return AlterClientQuotasResponseEntryData(
        error_message=None,
        entity=[
            AlterClientQuotasResponseEntityData(entity_type=kind, entity_name=name)
            for kind, name in entity
        ],
    )


def _duplicate(entity: Entity) -> Refusal:
    names = ", ".join(
        f"{kind}={'null' if name is None else name}" for kind, name in entity
    )
    return Refusal(
        ErrorCode.INVALID_REQUEST,
        f"Ignoring duplicate entity ClientQuotaEntity(entries={{{names}}})",
    )
