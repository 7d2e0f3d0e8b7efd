"""Messages of the protocol from JSON and to JSON."""

import pytest
from hypothesis import given, settings, strategies as st

from kafkaio._cli.cluster.messages import (
    MessageError,
    describe,
    find_request,
    from_json,
    requests,
    to_json,
)
from kafkaio.protocol import _codec as codec
from kafkaio.protocol.messages.list_offsets import ListOffsetsRequest
from kafkaio.protocol.messages.metadata import MetadataRequest
from kafkaio.protocol.messages.sasl_authenticate import SaslAuthenticateRequest


@pytest.mark.parametrize(
    "name", ["Metadata", "metadata", "METADATA", "MetadataRequest", "3"]
)
def test_requests_are_found_by_name_and_key(name: str) -> None:
    assert find_request(name) is MetadataRequest


def test_an_unknown_request_has_the_nearest_name() -> None:
    with pytest.raises(
        MessageError, match="unknown request metadatas: did you mean Metadata"
    ):
        find_request("metadatas")


@pytest.mark.parametrize("name", list(requests()))
def test_every_message_goes_to_json_and_back(name: str) -> None:
    kind = requests()[name]

    assert from_json(kind, to_json(kind())) == kind()
    assert describe(kind.response_type())[0]["name"]


@settings(max_examples=20)
@given(
    names=st.lists(st.text()),
    partitions=st.lists(st.integers(-(2**31), 2**31 - 1)),
)
def test_a_message_is_encoded_as_if_made_in_python(
    names: list[str], partitions: list[int]
) -> None:
    given = {
        "topics": [
            {
                "name": name,
                "partitions": [
                    {"partition_index": number, "timestamp": -1}
                    for number in partitions
                ],
            }
            for name in names
        ]
    }
    made = from_json(ListOffsetsRequest, given)

    assert isinstance(made, ListOffsetsRequest)
    again = codec.decode(ListOffsetsRequest, 11, codec.encode(made, 11))
    assert to_json(again)["topics"] == to_json(made)["topics"]


def test_bytes_are_text_or_base64() -> None:
    plain = SaslAuthenticateRequest(auth_bytes=b"a")
    other = SaslAuthenticateRequest(auth_bytes=b"\xff")

    assert to_json(plain) == {"auth_bytes": "a"}
    assert to_json(other) == {"auth_bytes": {"base64": "/w=="}}
    assert from_json(SaslAuthenticateRequest, to_json(other)) == other


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], "the message: not an object"),
        ({"topcs": []}, "topcs: no such field; did you mean topics"),
        ({"topics": {}}, "topics: not a list"),
        ({"topics": None}, "topics: null is not allowed"),
        ({"topics": [{"name": 1}]}, "topics[0].name: not text"),
        (
            {"topics": [{}, {"partitions": [3]}]},
            "topics[1].partitions[0]: not an object",
        ),
        ({"replica_id": "a"}, "replica_id: not a number of type int32"),
        ({"replica_id": True}, "replica_id: not a number of type int32"),
        ({"isolation_level": 128}, "isolation_level: 128 does not fit int8"),
    ],
)
def test_a_wrong_field_is_named(value: object, words: str) -> None:
    with pytest.raises(MessageError) as raised:
        from_json(ListOffsetsRequest, value)

    assert words in str(raised.value)
