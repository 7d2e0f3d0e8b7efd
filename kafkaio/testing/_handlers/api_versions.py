"""ApiVersions, versions 0 to 5 (KIP-35, KIP-511, KIP-584, KIP-1022, KIP-1242)."""

from __future__ import annotations

import re
from typing import Final

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._handler import RequestContext, handler

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
#: Name and version of the client (KIP-511), and features (KIP-584).
_FIRST_WITH_SOFTWARE: Final = 3
_FIRST_WITH_FROM_ZERO: Final = 4
#: The cluster and the node that the client means to reach (KIP-1242).
_FIRST_WITH_TARGET: Final = 5
_ANY_NODE: Final = -1


@handler(ApiVersionsRequest)
async def handle(context: RequestContext[ApiVersionsRequest]) -> ApiVersionsResponse:
    """Report the APIs, their versions and the features of the release."""
    version = context.version
    if version >= _FIRST_WITH_SOFTWARE and not (
        _SOFTWARE.fullmatch(context.request.client_software_name)
        and _SOFTWARE.fullmatch(context.request.client_software_version)
    ):
        raise Refusal(ErrorCode.INVALID_REQUEST)
    if version >= _FIRST_WITH_TARGET:
        _check_target(context)
    response = ApiVersionsResponse(api_keys=context.node.advertised())
    features = context.cluster.rules.highest_levels
    if features and version >= _FIRST_WITH_SOFTWARE:
        # Version 3 cannot express a feature whose lowest level is 0.
        response.supported_features = [
            SupportedFeatureKey(name=name, min_version=0, max_version=highest)
            for name, highest in features.items()
            if version >= _FIRST_WITH_FROM_ZERO
        ]
        levels = {name: context.cluster.level_of(name) for name in features}
        response.finalized_features_epoch = context.cluster.features_epoch
        response.finalized_features = [
            FinalizedFeatureKey(
                name=name, min_version_level=level, max_version_level=level
            )
            for name, level in levels.items()
            # A feature at level 0 is not finalized.
            if level > 0
        ]
    return response


def _check_target(context: RequestContext[ApiVersionsRequest]) -> None:
    """Check that this is the node of the cluster that the client wanted to reach.

    Raises:
        Refusal: REBOOTSTRAP_REQUIRED if it is another. INVALID_REQUEST if the request
            names only one of cluster and node.
    """
    request, connection = context.request, context.connection
    has_cluster = request.cluster_id is not None
    if has_cluster is (request.node_id == _ANY_NODE):
        raise Refusal(ErrorCode.INVALID_REQUEST)
    # As Kafka 4.4.0, which does not compare them before a SASL login is complete.
    if not has_cluster or (connection.sasl and not connection.sasl.is_complete):
        return
    here = (context.cluster.cluster_id, context.node.node_id)
    if (request.cluster_id, request.node_id) != here:
        raise Refusal(ErrorCode.REBOOTSTRAP_REQUIRED)
