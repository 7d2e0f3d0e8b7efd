"""ApiVersions, versions 0 to 4 (KIP-35, KIP-511, KIP-584, KIP-1022)."""

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


@handler(ApiVersionsRequest)
async def handle(context: RequestContext[ApiVersionsRequest]) -> ApiVersionsResponse:
    """Report the APIs, their versions and the features of the release."""
    version = context.version
    if version >= _FIRST_WITH_SOFTWARE and not (
        _SOFTWARE.fullmatch(context.request.client_software_name)
        and _SOFTWARE.fullmatch(context.request.client_software_version)
    ):
        raise Refusal(ErrorCode.INVALID_REQUEST)
    response = ApiVersionsResponse(api_keys=context.node.advertised())
    if context.node.broker.release >= "4.0" and version >= _FIRST_WITH_SOFTWARE:
        # Version 3 cannot express a feature whose lowest level is 0.
        response.supported_features = [
            SupportedFeatureKey(name=name, min_version=0, max_version=highest)
            for name, highest in context.cluster.supported.items()
            if version >= _FIRST_WITH_FROM_ZERO
        ]
        cluster = context.cluster
        levels = {name: cluster.level_of(name) for name in cluster.supported}
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
