"""StreamsGroupTopologyDescriptionUpdateRequest and StreamsGroupTopologyDescriptionUpdateResponse (API key 93), versions 0 to 0."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "StreamsGroupTopologyDescriptionUpdateRequest",
    "StreamsGroupTopologyDescriptionUpdateResponse",
    "TopologyDescription",
    "TopologyDescriptionGlobalStore",
    "TopologyDescriptionNode",
    "TopologyDescriptionSubtopology",
]


@dataclass(slots=True, kw_only=True)
class StreamsGroupTopologyDescriptionUpdateResponse(Response):
    """Versions 0 to 0, API key 93."""

    API_KEY: ClassVar[int] = 93
    NAME: ClassVar[str] = "StreamsGroupTopologyDescriptionUpdateResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 0)),
        Field("error_code", "int16", (0, 0)),
        Field("error_message", "string", (0, 0), nullable=(0, 0), default=None),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None


@dataclass(slots=True, kw_only=True)
class TopologyDescriptionNode(Struct):
    """Part of StreamsGroupTopologyDescriptionUpdateRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 0)),
        Field("node_type", "int8", (0, 0)),
        Field("source_topics", "string", (0, 0), array=True),
        Field("sink_topic", "string", (0, 0), nullable=(0, 0), default=None),
        Field("stores", "string", (0, 0), array=True),
        Field("successors", "string", (0, 0), array=True),
    )

    name: str = ""
    node_type: int = 0
    source_topics: list[str] = field(default_factory=list)
    sink_topic: str | None = None
    stores: list[str] = field(default_factory=list)
    successors: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class TopologyDescriptionSubtopology(Struct):
    """Part of StreamsGroupTopologyDescriptionUpdateRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", (0, 0)),
        Field("nodes", TopologyDescriptionNode, (0, 0), array=True),
    )

    subtopology_id: str = ""
    nodes: list[TopologyDescriptionNode] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class TopologyDescriptionGlobalStore(Struct):
    """Part of StreamsGroupTopologyDescriptionUpdateRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("source", TopologyDescriptionNode, (0, 0)),
        Field("processor", TopologyDescriptionNode, (0, 0)),
    )

    source: TopologyDescriptionNode = field(default_factory=TopologyDescriptionNode)
    processor: TopologyDescriptionNode = field(default_factory=TopologyDescriptionNode)


@dataclass(slots=True, kw_only=True)
class TopologyDescription(Struct):
    """Part of StreamsGroupTopologyDescriptionUpdateRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("subtopologies", TopologyDescriptionSubtopology, (0, 0), array=True),
        Field("global_stores", TopologyDescriptionGlobalStore, (0, 0), array=True),
    )

    subtopologies: list[TopologyDescriptionSubtopology] = field(default_factory=list)
    global_stores: list[TopologyDescriptionGlobalStore] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class StreamsGroupTopologyDescriptionUpdateRequest(
    Request[StreamsGroupTopologyDescriptionUpdateResponse]
):
    """Versions 0 to 0, API key 93."""

    API_KEY: ClassVar[int] = 93
    NAME: ClassVar[str] = "StreamsGroupTopologyDescriptionUpdateRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 0)),
        Field("member_id", "string", (0, 0)),
        Field("topology_epoch", "int32", (0, 0)),
        Field("topology_description", TopologyDescription, (0, 0)),
    )

    group_id: str = ""
    member_id: str = ""
    topology_epoch: int = 0
    topology_description: TopologyDescription = field(
        default_factory=TopologyDescription
    )

    @classmethod
    def response_type(cls) -> type[StreamsGroupTopologyDescriptionUpdateResponse]:
        """Return StreamsGroupTopologyDescriptionUpdateResponse."""
        return StreamsGroupTopologyDescriptionUpdateResponse
