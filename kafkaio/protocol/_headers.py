"""Frames: the length, the header and the body of requests and responses.

On the wire every frame begins with its length as an int32. The functions that encode
write the length; those that decode take a frame without it, as
``kafkaio.protocol._framing`` returns frames.

The version of the header depends on the version of the body (KIP-482, KIP-511):

- A request of a flexible version has header v2, any other v1. The client id has an
  int16 length even in v2.
- A response of a flexible version has header v1, any other v0. ApiVersions always has
  v0, because the client cannot know the broker's version before it has the answer.
"""

from __future__ import annotations

import struct
from collections.abc import Generator
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeVar

from kafkaio._generic import Generic
from kafkaio.errors import ProtocolError
from kafkaio.protocol import _api_numbers as apis
from kafkaio.protocol._codec import (
    MALFORMED,
    UNFIT,
    check_rest,
    check_version,
    decode,
    decode_from,
    decode_in_slices,
    decode_rare,
    encode_into,
    encode_rare,
    unfit,
    unreadable,
)
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Buffer, Request, Response
from kafkaio.protocol._primitives import nullable_string, skip_tags
from kafkaio.protocol._requests import request_type
from kafkaio.protocol.messages.api_versions import ApiVersionsResponse
from kafkaio.protocol.messages.request_header import RequestHeader

if TYPE_CHECKING:
    from kafkaio.protocol._decoder import Decoder
    from kafkaio.protocol._encoder import Encoder

ResponseT = TypeVar("ResponseT", bound=Response)

_FIXED = struct.Struct(">hhi")
_REQUEST = struct.Struct(">ihhi")
_ANSWER = struct.Struct(">ii")
_LENGTH = struct.Struct(">i")
_ID_SIZE: Final = 4
_ERROR = struct.Struct(">h")


def encode_request_header(
    api_key: int, version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """Return the header of a request, without the length that precedes it.

    Raises:
        ProtocolError: if the API is unknown, or the client id is too long.
    """
    # The template begins with room for length and fixed fields, which stand before it
    # here.
    rest = _blank(api_key, version, client_id)[_REQUEST.size :]
    return _FIXED.pack(api_key, version, correlation_id) + rest


def _blank(api_key: int, version: int, client_id: str | None) -> bytes:
    """The header of a request, with zeros where ``_REQUEST`` writes its fields."""
    tags = b"\0" if request_type(api_key).is_flexible(version) else b""
    return bytes(_REQUEST.size) + nullable_string(client_id) + tags


def encode_request(
    request: Request[Response], version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """Return the whole frame of a request, with its length.

    Raises:
        UnsupportedVersion: if the request has no such version, or the version cannot
            carry what is set.
        ProtocolError: if a value has the wrong type or is out of range.
    """
    return b"".join(encode_request_parts(request, version, correlation_id, client_id))


def encode_request_parts(
    request: Request[Response], version: int, correlation_id: int, client_id: str | None
) -> list[Buffer]:
    """Encode as ``encode_request`` does, to buffers; large record data is not copied.

    The record data must not change until the buffers have been sent.
    """
    kind = request_kind(type(request), version, client_id)
    return kind.encode(request, correlation_id)


class RequestKind(Generic[ResponseT]):
    """A class of requests at one version, with the answers to it, for one client id.

    It holds what all requests of the kind have in common: header, encoder and decoder.
    A client sends the same few again and again, so that looking these up for each of
    them would take as long as using them. Made by `request_kind`.

    Args:
        request_type: the class of the requests.
        version: the version of requests and answers.
        client_id: the client id in the headers.

    Attributes:
        api: the name of both, such as ``Produce``.
        response_type: the class of the answers.
        version: the version of requests and answers.

    Raises:
        UnsupportedVersion: if the class has no such version.
        ProtocolError: if the client id is too long.
    """

    __slots__ = (
        "_answer_tags",
        "_api_key",
        "_blank",
        "_decoder",
        "_encoder",
        "_request_type",
        "api",
        "response_type",
        "version",
    )

    def __init__(
        self,
        request_type: type[Request[ResponseT]],
        version: int,
        client_id: str | None,
    ) -> None:
        self._request_type = request_type
        self._api_key = api_key = request_type.API_KEY
        check_version(request_type, version)
        self._blank = _blank(api_key, version, client_id)
        # None until they are compiled.
        self._encoder: Encoder | None = None
        self._decoder: Decoder | None = None
        self._answer_tags = _has_tags(api_key, version)
        self.api: Final = request_type.NAME.removesuffix("Request")
        self.response_type: Final = request_type.response_type()
        self.version: Final = version

    def encode(self, request: Request[Response], correlation_id: int) -> list[Buffer]:
        """Return the frame of a request; see ``encode_request_parts``."""
        # A copy of the template: one for each request, so that requests can be encoded
        # side by side.
        first = bytearray(self._blank)
        parts: list[Buffer] = []
        encoder = self._encoder
        try:
            if encoder is None:
                self._encoder = encode_rare(request, self.version, first, parts)
            else:
                encoder(request, first, parts)
        except UNFIT as error:
            raise unfit(self._request_type, self.version, error) from error
        # Last, when the length is known; it does not count itself.
        size = len(first) if len(parts) == 1 else sum(map(len, parts))
        _REQUEST.pack_into(
            first, 0, size - 4, self._api_key, self.version, correlation_id
        )
        return parts

    def decode(self, frame: Buffer) -> ResponseT:
        """Return the answer in a frame; see ``decode_response``."""
        decoder, end, position = self._decoder, len(frame), _LENGTH.size
        kind, version = self.response_type, self.version
        if self._answer_tags:
            # An empty section, nearly always.
            position = 5 if frame[4:5] == b"\0" else _after_tags(frame)
        try:
            if decoder is None:
                response, position, self._decoder = decode_rare(
                    kind, version, frame, position
                )
            else:
                response, position = decoder(frame, position, end)
        except MALFORMED as error:
            raise unreadable(kind, version, end, error) from error
        if position != end:
            check_rest(kind, version, frame, position)
        assert isinstance(response, kind)
        return response


_cached_kind = lru_cache(maxsize=512)(RequestKind)  # a process uses few


def request_kind(
    request_type: type[Request[ResponseT]], version: int, client_id: str | None
) -> RequestKind[ResponseT]:
    """Return the kind; the same one for all connections.

    Raises:
        UnsupportedVersion: if the class has no such version.
        ProtocolError: if the client id is too long.
    """
    # mypy takes the hash of a class for that of its objects.
    return _cached_kind(request_type, version, client_id)  # type: ignore[arg-type]


def encode_response(response: Response, version: int, correlation_id: int) -> bytes:
    """Return the whole frame of a response, with its length.

    Raises:
        UnsupportedVersion: if the response has no such version, or the version cannot
            carry what is set.
        ProtocolError: if a value has the wrong type or is out of range.
    """
    return b"".join(encode_response_parts(response, version, correlation_id))


def encode_response_parts(
    response: Response, version: int, correlation_id: int
) -> list[Buffer]:
    """Encode as ``encode_response`` does, to buffers; see ``encode_request_parts``."""
    first = bytearray(_ANSWER.size + _has_tags(response.API_KEY, version))
    parts = encode_into(response, version, first)
    size = sum(map(len, parts)) - _LENGTH.size
    _ANSWER.pack_into(first, 0, size, correlation_id)
    return parts


def peek_correlation_id(frame: Buffer) -> int:
    """Return the correlation id of a response, decoding nothing else.

    Raises:
        ProtocolError: if the frame is too short to have one.
    """
    if len(frame) < _ID_SIZE:
        raise ProtocolError(f"a response of {len(frame)} bytes has no header")
    number: int = _LENGTH.unpack_from(frame)[0]
    return number


def decode_response(
    response: type[ResponseT], version: int, frame: Buffer
) -> ResponseT:
    """Return the response in a frame; its header's correlation id is skipped.

    Record data is a memoryview into ``frame``.

    Raises:
        UnsupportedVersion: if the response has no such version.
        ProtocolError: if the frame is not such a response.
    """
    request = request_type(response.API_KEY)
    found = request_kind(request, version, None).decode(frame)
    assert isinstance(found, response)
    return found


def decode_response_in_slices(
    response: type[ResponseT], version: int, frame: Buffer, *, max_memory: int
) -> Generator[None, None, ResponseT]:
    """Decode as ``decode_response`` does, a few KiB at a time; yields in between.

    Args:
        response: as for ``decode_response``.
        version: as for ``decode_response``.
        frame: as for ``decode_response``.
        max_memory: see `kafkaio.protocol._codec.decode_in_slices`.

    Raises:
        UnsupportedVersion: if the response has no such version.
        ProtocolError: if the frame is not such a response, or takes more memory.
    """
    has_tags = _has_tags(response.API_KEY, version)
    position = _after_tags(frame) if has_tags else _LENGTH.size
    return (
        yield from decode_in_slices(
            response, version, frame, position, max_memory=max_memory
        )
    )


def _after_tags(frame: Buffer) -> int:
    """The position of the body of a response whose header has tagged fields."""
    try:
        return skip_tags(frame, _LENGTH.size)
    except IndexError as error:
        raise ProtocolError("the header of a response is cut off") from error


def decode_api_versions(version_asked: int, frame: Buffer) -> ApiVersionsResponse:
    """Return the answer to ApiVersions, in whichever version the broker wrote it.

    A broker that does not support the requested version answers with error 35
    (UNSUPPORTED_VERSION) in version 0, so the error code is read first. That error
    is an answer whatever follows it: it says to ask in another version. Some servers
    write the rest in a wrong way, and older ones write nothing.

    Raises:
        UnsupportedVersion: if ``version_asked`` is not a version of ApiVersions.
        ProtocolError: if the frame is not such a response.
    """
    position = _LENGTH.size
    if len(frame) < position + _ERROR.size:
        raise ProtocolError(f"{len(frame)} bytes are not an answer to ApiVersions")
    # The error code is the first field in all versions, and the header never has tags
    # (KIP-511).
    (code,) = _ERROR.unpack_from(frame, position)
    if code != ErrorCode.UNSUPPORTED_VERSION:
        return decode_response(ApiVersionsResponse, version_asked, frame)
    try:
        return decode_response(ApiVersionsResponse, 0, frame)
    except ProtocolError:
        return ApiVersionsResponse(error_code=code)


def decode_request_header(frame: Buffer) -> tuple[RequestHeader, int]:
    """Return the header of a request, and where its body begins.

    Also decodes the header of a version that this codec does not support, so that a
    broker can answer it with an error.

    Raises:
        ProtocolError: if the frame has no such header, or the API is not known.
    """
    if len(frame) < _FIXED.size:
        raise ProtocolError(f"a request of {len(frame)} bytes has no header")
    api_key, version, _ = _FIXED.unpack_from(frame)
    # Since version 2 of the header it ends with tagged fields (KIP-482).
    header_version = 2 if request_type(api_key).is_flexible(version) else 1
    return decode_from(RequestHeader, header_version, frame, 0)


def decode_request(frame: Buffer) -> tuple[RequestHeader, Request[Response]]:
    """Return the header and the request in a frame, as a broker receives it.

    Record data is a memoryview into ``frame``.

    Raises:
        UnsupportedVersion: if the request has no such version.
        ProtocolError: if the frame is not a request.
    """
    header, position = decode_request_header(frame)
    kind = request_type(header.request_api_key)
    return header, decode(kind, header.request_api_version, frame, position)


def _has_tags(api_key: int, version: int) -> bool:
    response = request_type(api_key).response_type()
    return api_key != apis.API_VERSIONS and response.is_flexible(version)
