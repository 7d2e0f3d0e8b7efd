"""Which version of each request one broker understands (KIP-35, KIP-511, KIP-584).

Every connection begins with the request (see ``connection.handshake``). The versions of
a broker hold for one connection. The finalized features are those of the cluster:
`Features` keeps the newest ones of all connections.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from string import ascii_letters, digits
from types import MappingProxyType
from typing import Final

from kafkaio._dataclass import dataclass
from kafkaio.errors import UnsupportedVersion
from kafkaio.protocol import _api_numbers as apis
from kafkaio.protocol._message import Request, Response
from kafkaio.protocol.messages.api_versions import ApiVersionsResponse

# Versions that a broker announces but does not serve to clients: 4.x announces Produce
# 0-2 only because old versions of librdkafka check for them; AddPartitionsToTxn 4 and 5
# are for requests between brokers.
_FLOORS: Final[Mapping[int, int]] = MappingProxyType(
    {
        apis.PRODUCE: 3,
        # Before, this request needed the right of a broker (KIP-320).
        apis.OFFSET_FOR_LEADER_EPOCH: 3,
    }
)
_CAPS: Final[Mapping[int, int]] = MappingProxyType({apis.ADD_PARTITIONS_TO_TXN: 3})

#: No version is higher.
_ANY: Final = 2**15 - 1

#: Seconds until a broker is asked a second time for its versions, and the longest
#: until it is asked once more if it says the same each time.
_FIRST_RECHECK: Final = 5.0
_LAST_RECHECK: Final = 600.0

_LEGAL: Final = frozenset(f"{ascii_letters}{digits}.-")


@dataclass(frozen=True, slots=True)
class ApiVersions:
    """The announcement of one broker on one connection.

    Attributes:
        ranges: lowest and highest version by API key.
        finalized_features: version levels in force in the whole cluster, by name.
        finalized_features_epoch: grows whenever those change; -1 if unknown.
        supported_features: highest version level that this broker supports, by name.
        limits: the highest versions that the client may use, by API key; the ranges
            keep to them already.
        missed: the API keys of requests that could not be sent with these versions.
    """

    ranges: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    finalized_features: Mapping[str, int] = field(default_factory=dict)
    finalized_features_epoch: int = -1
    supported_features: Mapping[str, int] = field(default_factory=dict)
    limits: Mapping[int, int] = field(default_factory=dict)
    # The results of usable(), which every request calls.
    _usable: dict[tuple[type[Request[Response]], int | None], int] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    missed: set[int] = field(default_factory=set, init=False, repr=False, compare=False)

    def miss(self, api_key: int) -> None:
        """Note that a request could not be sent with these versions."""
        # The user has set the limit: another answer of the broker cannot change it.
        if api_key not in self.limits:
            self.missed.add(api_key)

    @classmethod
    def from_response(
        cls, response: ApiVersionsResponse, limits: Mapping[int, int] | None = None
    ) -> ApiVersions:
        """Read an answer without an error.

        Args:
            response: the answer.
            limits: the highest versions that the client may use, by API key.
        """
        limits = {} if limits is None else limits
        return cls(
            ranges={
                key: (api.min_version, min(api.max_version, limits.get(key, _ANY)))
                for api in response.api_keys
                for key in (api.api_key,)
            },
            limits=limits,
            finalized_features={
                feature.name: feature.max_version_level
                for feature in response.finalized_features
            },
            finalized_features_epoch=response.finalized_features_epoch,
            supported_features={
                feature.name: feature.max_version
                for feature in response.supported_features
            },
        )

    def max_version(self, api_key: int) -> int | None:
        """The highest version that the broker announced; None if it lacks the API."""
        known = self.ranges.get(api_key)
        return None if known is None else known[1]

    def usable(
        self, request_type: type[Request[Response]], max_version: int | None = None
    ) -> int:
        """The highest version of a request that both sides support.

        Args:
            request_type: class of the request.
            max_version: the caller's upper limit; None for none.

        Raises:
            UnsupportedVersion: no version fits.
        """
        found = self._usable.get((request_type, max_version))
        if found is None:
            found = self._find_usable(request_type, max_version)
            self._usable[request_type, max_version] = found
        return found

    def _find_usable(
        self, request_type: type[Request[Response]], max_version: int | None
    ) -> int:
        key = request_type.API_KEY
        known = self.ranges.get(key)
        if known is None:
            self.miss(key)
            raise UnsupportedVersion(f"the broker does not know {request_type.NAME}")
        low = max(known[0], request_type.MIN_VERSION, _FLOORS.get(key, 0))
        high = min(known[1], request_type.MAX_VERSION)
        high = min(
            high, _CAPS.get(key, high), high if max_version is None else max_version
        )
        if low > high:
            self.miss(key)
            limit = "" if max_version is None else f", at most {max_version} here"
            if key in self.limits:
                limit += f", and max_versions allows {self.limits[key]}"
            raise UnsupportedVersion(
                f"no common version of {request_type.NAME}: the broker knows "
                f"{known[0]} to {known[1]}, kafkaio {request_type.MIN_VERSION} to "
                f"{request_type.MAX_VERSION}{limit}"
            )
        return high


class VersionRechecks:
    """When to ask a broker again for its versions, because a request found none.

    An announcement holds as long as its connection, even if it was wrong. So a
    connection that could not carry a request is replaced after some seconds. If the
    broker announces the same again, it is probably right: the next check comes after
    twice the time.
    """

    __slots__ = ("_by_node",)

    def __init__(self) -> None:
        self._by_node: dict[int, tuple[Mapping[int, tuple[int, int]], float]] = {}

    def is_due(
        self, node_id: int, versions: ApiVersions, asked_at: float, now: float
    ) -> bool:
        """Whether to replace a connection; notes that it is replaced.

        Args:
            node_id: the broker.
            versions: its announcement on the connection.
            asked_at: when it did.
            now: the time.
        """
        if not versions.missed:
            return False
        ranges, wait = self._by_node.get(node_id, ({}, _FIRST_RECHECK))
        is_same = ranges == versions.ranges
        wait = min(2 * wait, _LAST_RECHECK) if is_same and ranges else _FIRST_RECHECK
        if now - asked_at < wait:
            return False
        self._by_node[node_id] = (versions.ranges, wait)
        return True


class Announced:
    """The last announcement of each broker of a cluster."""

    __slots__ = ("_by_node", "_lowest")

    def __init__(self) -> None:
        self._by_node: dict[int, ApiVersions] = {}
        self._lowest: dict[int, int] = {}

    def learn(self, node_id: int, versions: ApiVersions) -> None:
        """Take over what a broker announced on a new connection."""
        self._by_node[node_id] = versions
        self._lowest.clear()

    def lowest(self, api_key: int) -> int:
        """The version of an API that every broker knows; -1 if none announced it."""
        found = self._lowest.get(api_key)
        if found is None:
            known = (one.max_version(api_key) for one in self._by_node.values())
            found = min((-1 if one is None else one for one in known), default=-1)
            self._lowest[api_key] = found
        return found


class Features:
    """The finalized features of the whole cluster (KIP-584).

    Brokers announce features when a connection is made and never again, and a change
    reaches them at different times. So the answer with the highest epoch holds,
    whichever connection it came on. An answer without an epoch is ignored: that broker
    does not know the features, or is older than them.

    Attributes:
        levels: the version levels in force, by name.
        epoch: their epoch; -1 while no broker has announced one.
    """

    __slots__ = ("epoch", "levels")

    def __init__(self) -> None:
        self.levels: Mapping[str, int] = MappingProxyType({})
        self.epoch: int = -1

    def learn(self, versions: ApiVersions) -> bool:
        """Take over what a broker announced, if it is newer.

        Returns:
            Whether it is.
        """
        if versions.finalized_features_epoch <= self.epoch:
            return False
        self.epoch = versions.finalized_features_epoch
        self.levels = MappingProxyType(dict(versions.finalized_features))
        return True

    def level(self, name: str) -> int:
        """The level of a feature; 0 if the cluster has none, or it is not known."""
        return self.levels.get(name, 0)


def software_version(version: str) -> str:
    """Turn a version into one that brokers accept; they refuse ``1.0+local``, ``1_0``.

    A version consists of letters, digits, dots and hyphens, and begins and ends with a
    letter or digit (KIP-511).
    """
    legal = "".join([each if each in _LEGAL else " " for each in version])
    return "-".join(legal.split()).strip("-.") or "unknown"
