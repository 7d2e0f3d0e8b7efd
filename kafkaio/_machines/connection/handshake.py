"""What a connection exchanges with the broker before it carries requests.

The handshake is a sequence of steps. A `HandshakeStep` decides which
request to send next and takes its answer; the machine sends, waits and throttles as for
any other request. The first step is `VersionNegotiation` (KIP-35, KIP-511). A step that
authenticates may follow: it is given the broker's versions, and the machine knows
nothing else of it.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from kafkaio._dataclass import dataclass
from kafkaio._machines.api_versions import ApiVersions
from kafkaio.errors import UnsupportedVersion
from kafkaio.protocol.api_keys import ApiKey
from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.protocol.headers import decode_api_versions
from kafkaio.protocol.message import Buffer, Request, Response
from kafkaio.protocol.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
)

__all__ = [
    "Exchange",
    "Handshake",
    "HandshakeStep",
    "Identity",
    "VersionNegotiation",
    "next_attempt",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """How the client presents itself on a connection, and how long it waits.

    Attributes:
        peer: the name of the other end in error messages.
        client_id: the client id in every request header.
        software_name: the name of this library in ApiVersions.
        software_version: its version, fit for brokers (see ``software_version``).
        request_timeout: seconds to wait for each answer of the handshake.
        idle_timeout: seconds without use after which the connection is closed.
    """

    peer: str
    client_id: str
    software_name: str
    software_version: str
    request_timeout: float
    idle_timeout: float


class Exchange(NamedTuple):
    """One request of a handshake, and the version to encode it in."""

    request: Request[Response]
    version: int


class HandshakeStep(Protocol):
    """A part of the handshake.

    The machine asks for the next request, passes its answer to `receive`, and so on
    until there is no next request.
    """

    @property
    def name(self) -> str:
        """What the step does, for error messages: an imperative."""
        ...

    def next_request(self, versions: ApiVersions) -> Exchange | None:
        """The next request of this step; None if the step is complete.

        Args:
            versions: what the broker has announced so far.

        Raises:
            KafkaError: the step cannot succeed with this broker.
        """
        ...

    def receive(self, frame: Buffer) -> Response:
        """Take the answer to the request.

        Args:
            frame: the frame without its length.

        Returns:
            The answer, which may tell the client to pause (KIP-219).

        Raises:
            KafkaError: the answer makes no sense, or is a refusal.
        """
        ...


class VersionNegotiation:
    """Asks the broker for its versions (KIP-35); a `HandshakeStep`.

    A broker that does not know the version of the request answers in version 0 with
    error 35: since Kafka 2.4 with its own range for ApiVersions (KIP-511), before that
    with nothing. The request is then sent again in a version that it knows.
    """

    __slots__ = ("_identity", "_version", "versions")

    name = "negotiate versions"

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        # The version to ask in next, None if there is nothing left to ask.
        self._version: int | None = ApiVersionsRequest.MAX_VERSION
        #: What the broker announced; empty until it has.
        self.versions = ApiVersions()

    def next_request(self, versions: ApiVersions) -> Exchange | None:
        """See HandshakeStep."""
        del versions  # they are what this step finds out
        if self._version is None:
            return None
        request = ApiVersionsRequest(
            client_software_name=self._identity.software_name,
            client_software_version=self._identity.software_version,
        )
        return Exchange(request, self._version)

    def receive(self, frame: Buffer) -> Response:
        """See HandshakeStep.

        Raises:
            ProtocolError: the frame is no answer to ApiVersions.
            UnsupportedVersion: the broker refuses every version.
        """
        assert self._version is not None
        response = decode_api_versions(self._version, frame)
        self._version = next_attempt(self._version, response)
        if self._version is None:
            self.versions = ApiVersions.from_response(response)
        return response


class Handshake:
    """The steps of one connection, in their order.

    Args:
        identity: what to tell the broker.
        authentication: the step that follows the negotiation of versions; None if the
            cluster demands none.
    """

    __slots__ = ("_authentication", "_negotiation", "step")

    def __init__(
        self, identity: Identity, authentication: HandshakeStep | None = None
    ) -> None:
        self._negotiation = VersionNegotiation(identity)
        self._authentication = authentication
        #: The step under way; the last one when the handshake is complete.
        self.step: HandshakeStep = self._negotiation

    @property
    def versions(self) -> ApiVersions:
        """What the broker announced; empty until it has."""
        return self._negotiation.versions

    @property
    def is_authenticating(self) -> bool:
        """Whether the authentication has begun."""
        return self.step is self._authentication

    def next_request(self) -> Exchange | None:
        """The next request of the step under way, or of the step after it.

        Returns:
            None if the handshake is complete.

        Raises:
            KafkaError: the step cannot succeed with this broker.
        """
        exchange = self.step.next_request(self.versions)
        authentication = self._authentication
        if exchange is None and authentication is not None:
            self.step = authentication
            exchange = authentication.next_request(self.versions)
        return exchange


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
        if api.api_key == ApiKey.API_VERSIONS:
            # Always below what was asked, so that a broker with a wrong answer cannot
            # keep the client asking for ever.
            return max(0, min(api.max_version, asked - 1))
    return 0
