"""How a connection learns which versions the broker understands (KIP-35, KIP-511).

It is the first exchange of every connection, also of one that has to authenticate:
brokers answer ApiVersions before that. Since Kafka 4.4 the request says which broker of
which cluster the client expects, and another broker refuses it (KIP-1242): addresses
are reused, and without the check a client could take one cluster for another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final

from kafkaio._dataclass import dataclass
from kafkaio._machines.api_versions import ApiVersions
from kafkaio._machines.bounds import check
from kafkaio.errors import BrokerError, UnsupportedVersion
from kafkaio.protocol import _api_numbers as apis
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._headers import decode_api_versions
from kafkaio.protocol._message import Buffer
from kafkaio.protocol.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
)

#: The version before the one that says which broker is expected; nothing else is new
#: in that one.
UNADDRESSED: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientIdentity:
    """How the client presents itself on a connection, and how long it waits.

    Attributes:
        peer: the name of the other end in error messages.
        address: its ``host:port``.
        client_id: the client id in every request header.
        software_name: the name of this library in ApiVersions.
        software_version: its version, fit for brokers (see ``software_version``).
        request_timeout: seconds to wait for each answer of the handshake and of SASL.
        idle_timeout: seconds without use after which the connection is closed.
        max_control_response_size: the largest answer without records, in bytes.
        max_throttle: the longest pause that a broker can demand, in seconds.
        max_versions: the highest versions to use, by API key.
        first_version: the version of ApiVersions to ask in first.
        cluster_id: the cluster that the broker has to belong to; None for any.
        node_id: the broker's id in that cluster; unused without ``cluster_id``.
    """

    peer: str
    address: str
    client_id: str
    software_name: str
    software_version: str
    request_timeout: float
    idle_timeout: float
    max_control_response_size: int = 16_777_216
    max_throttle: float = 60.0
    max_versions: Mapping[int, int] = field(default_factory=dict)
    first_version: int = UNADDRESSED
    cluster_id: str | None = None
    node_id: int = -1


class VersionNegotiation:
    """Asks the broker for its versions.

    A broker that does not know the version of the request answers in version 0 with
    error 35: since Kafka 2.4 with its own range for ApiVersions (KIP-511), before that
    with nothing. The request is then sent again in a version that it knows.
    """

    __slots__ = ("_identity", "version", "versions")

    def __init__(self, identity: ClientIdentity) -> None:
        self._identity = identity
        #: The version to ask in; None once the versions are known.
        self.version: int | None = identity.first_version
        #: The broker's announcement; empty until it has come.
        self.versions = ApiVersions()

    def request(self) -> ApiVersionsRequest:
        """Make the request to send in ``version``."""
        identity = self._identity
        # Brokers refuse one of the two ids without the other.
        is_known = identity.cluster_id is not None
        return ApiVersionsRequest(
            client_software_name=identity.software_name,
            client_software_version=identity.software_version,
            cluster_id=identity.cluster_id,
            node_id=identity.node_id if is_known else -1,
        )

    def ask_again(self) -> bool:
        """Ask once more, after a login, if the broker then compares who it has to be.

        Returns:
            Whether to ask.
        """
        if not self._compares:
            return False
        self.version = UNADDRESSED + 1
        return True

    def becomes(self, identity: ClientIdentity) -> ApiVersionsRequest | None:
        """Expect another broker than so far.

        Returns:
            The request that asks whether it is that one; None if it does not compare.
        """
        self._identity = identity
        # Lower for an address that hangs up on newer versions.
        is_asked = self._compares and identity.first_version > UNADDRESSED
        return self.request() if is_asked else None

    @property
    def _compares(self) -> bool:
        known = self.versions.max_version(apis.API_VERSIONS) or 0
        return self._identity.cluster_id is not None and known > UNADDRESSED

    def receive(self, frame: Buffer) -> ApiVersionsResponse:
        """Take the answer.

        Raises:
            ProtocolError: the frame is not an answer to ApiVersions.
            UnsupportedVersion: the broker refuses every version.
            BrokerError: another broker, or another cluster, has the address
                (REBOOTSTRAP_REQUIRED).
        """
        assert self.version is not None
        response = decode_api_versions(self.version, frame)
        if response.error_code == ErrorCode.REBOOTSTRAP_REQUIRED:
            raise another_broker(self._identity)
        if not response.error_code:
            check(response)
        self.version = next_attempt(self.version, response)
        if self.version is None:
            limits = self._identity.max_versions
            self.versions = ApiVersions.from_response(response, limits)
        return response


def another_broker(expected: ClientIdentity) -> BrokerError:
    """Make the error for an address that another broker has (KIP-1242)."""
    return broker_error(
        ErrorCode.REBOOTSTRAP_REQUIRED,
        f"it is not broker {expected.node_id} of cluster {expected.cluster_id}: "
        "another one has the address",
        api=apis.API_VERSIONS,
    )


#: The versions of ApiVersions to try at an address that hangs up instead of answering:
#: flexible ones are unknown to old proxies and some services, which close the
#: connection. The first is tried twice, because any connection may break once.
_LADDER: Final = (ApiVersionsRequest.MAX_VERSION, ApiVersionsRequest.MAX_VERSION, 3, 0)
#: Seconds for which an address is asked in the version that it answered. An old version
#: has less information, and the address may have hung up because its broker started.
_KEPT: Final = 600.0
#: Addresses that are remembered at most.
_MOST: Final = 10_000


class FirstVersions:
    """The version of ApiVersions in which each address is asked first.

    The version that says which broker is expected is used only where that is known, and
    where the broker knows the version as far as one can tell: a broker that does not
    would cost a round trip more. A new address is taken to be like the last one that
    answered.

    Args:
        highest: the highest version to use.
    """

    def __init__(self, highest: int = ApiVersionsRequest.MAX_VERSION) -> None:
        self._ladder = tuple(min(step, highest) for step in _LADDER)
        # How often an address has hung up in a row, and until when that counts.
        self._hung_up: dict[tuple[str, int], tuple[int, float]] = {}
        # The highest version that each address announced, and the one that did last.
        self._announced: dict[tuple[str, int], int] = {}
        self._newest = 0

    def version(
        self, address: tuple[str, int], now: float, *, is_expected: bool = False
    ) -> int:
        """The version to ask in.

        Args:
            address: the broker's.
            now: the time.
            is_expected: whether it is known which broker has to be there.
        """
        count, until = self._hung_up.get(address, (0, now))
        step = self._ladder[count % len(self._ladder) if now < until else 0]
        known = self._announced.get(address, self._newest)
        if is_expected and known > UNADDRESSED:
            return step
        return min(step, UNADDRESSED)

    def hung_up(self, address: tuple[str, int], now: float) -> None:
        """Note that an address closed a connection in place of an answer."""
        count, _ = self._hung_up.get(address, (0, now))
        if len(self._hung_up) >= _MOST:
            # Brokers advertise the addresses, and could advertise new ones without end.
            self._hung_up.clear()
        self._hung_up[address] = count + 1, now + _KEPT

    def answered(
        self, address: tuple[str, int], asked: int, announced: int = 0
    ) -> None:
        """Note that an address answered; it is asked so for a while.

        Args:
            address: the broker's.
            asked: the version that it was asked in first.
            announced: the highest version that it announced.
        """
        if asked >= min(self._ladder[0], UNADDRESSED):
            self._hung_up.pop(address, None)
        if len(self._announced) >= _MOST:
            self._announced.clear()
        self._announced[address] = self._newest = announced


def next_attempt(asked: int, response: ApiVersionsResponse) -> int | None:
    """The version in which to send ApiVersions again; None if it was answered.

    Args:
        asked: the version that the request was sent in.
        response: an answer with error 0 or 35.

    Raises:
        UnsupportedVersion: the broker refuses version 0, or answered another error.
    """
    if response.error_code == ErrorCode.NONE:
        return None
    if response.error_code != ErrorCode.UNSUPPORTED_VERSION or asked == 0:
        raise UnsupportedVersion(
            f"the broker refused ApiVersions version {asked} with error code "
            f"{response.error_code}"
        )
    for api in response.api_keys:
        if api.api_key == apis.API_VERSIONS:
            # Always below what was asked, so that a broker with a wrong answer cannot
            # keep the client asking for ever.
            return max(0, min(api.max_version, asked - 1))
    return 0
