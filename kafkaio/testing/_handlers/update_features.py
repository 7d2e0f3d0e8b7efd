"""UpdateFeatures, versions 0 to 2 (KIP-584, KIP-1022): all or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from kafkaio.testing._broker.cluster import EmbeddedCluster
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._handler import (
    RequestContext,
    handler,
    right,
    with_message,
)
from kafkaio.testing._security.acls import Operation, ResourceType

_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE = 1, 2, 3
#: The last version that has a result for each feature.
_WITH_RESULTS: Final = 1


@handler(
    UpdateFeaturesRequest,
    right(Operation.ALTER, ResourceType.CLUSTER, explained=True),
    refused=with_message,
    by_partition=True,
)
async def handle(
    context: RequestContext[UpdateFeaturesRequest],
) -> UpdateFeaturesResponse:
    """Put levels of features in force."""
    updates = context.request.feature_updates
    for update in updates:
        _check(context.cluster, update)
    if not context.request.validate_only:
        for update in updates:
            context.cluster.set_feature(update.feature, update.max_version_level)
    return UpdateFeaturesResponse(
        error_message=None,
        results=_results(updates) if context.version <= _WITH_RESULTS else [],
    )


def _results(updates: Sequence[FeatureUpdateKey]) -> list[UpdatableFeatureResult]:
    return [
        UpdatableFeatureResult(feature=update.feature, error_message="NONE")
        for update in updates
    ]


def _check(cluster: EmbeddedCluster, update: FeatureUpdateKey) -> None:
    """Check one update.

    Raises:
        Refusal: INVALID_UPDATE_VERSION.
    """
    name, level = update.feature, update.max_version_level
    controller = f"Local controller {cluster.controller_id}"
    now, highest = cluster.level_of(name), cluster.rules.highest_levels.get(name)
    why = ""
    if update.upgrade_type not in {_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE}:
        why = "The controller does not support the given upgrade type."
    elif level < 0:
        why = "A feature version cannot be less than 0."
    elif highest is None:
        why = f"{controller} does not support this feature."
    elif level > highest:
        why = f"{controller} only supports versions 0-{highest}"
    elif level < now and update.upgrade_type == _UPGRADE:
        why = (
            "Can't downgrade the version of this feature without setting the upgrade "
            "type to either safe or unsafe downgrade."
        )
    elif level > now and update.upgrade_type != _UPGRADE:
        why = "Can't downgrade to a newer version."
    if why:
        raise Refusal(
            ErrorCode.INVALID_UPDATE_VERSION,
            "The update failed for all features since the following feature had an "
            f"error: Invalid update version {level} for feature {name}. {why}",
        )
