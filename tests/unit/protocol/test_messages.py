"""The generated package as its users see it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from importlib import import_module
from pkgutil import iter_modules

import pytest

from kafkaio.errors import ProtocolError
from kafkaio.protocol import _api_numbers, messages
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._message import Request, Response, Struct
from kafkaio.protocol._requests import request_type
from kafkaio.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kafkaio.protocol.messages.fetch import FetchPartition
from kafkaio.protocol.messages.incremental_alter_configs import AlterableConfig
from kafkaio.protocol.messages.metadata import MetadataRequestTopic
from kafkaio.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from tests.unit.protocol.populate import message_classes, nested

REMOVED = {
    ApiKey.LEADER_AND_ISR,
    ApiKey.STOP_REPLICA,
    ApiKey.UPDATE_METADATA,
    ApiKey.CONTROLLED_SHUTDOWN,
}


def test_importing_the_package_imports_no_message() -> None:
    code = (
        "import sys; from kafkaio.protocol import messages;"
        "names = [n for n in sys.modules if n.startswith(messages.__name__ + '.')];"
        "assert not names, names; messages.ProduceRequest;"
        "assert messages.__name__ + '.produce' in sys.modules;"
        "assert messages.__name__ + '.fetch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_names() -> None:
    assert messages.ProduceRequest.NAME == "ProduceRequest"
    assert {"FetchRequest", "ConsumerProtocolAssignment"} <= set(dir(messages))
    with pytest.raises(AttributeError, match="no message 'Nonsense'"):
        messages.Nonsense  # noqa: B018 # the point of it


def test_every_class_of_every_module_is_a_name_of_the_package() -> None:
    inner = {
        cls
        for info in iter_modules(messages.__path__)
        for cls in vars(import_module(f"{messages.__name__}.{info.name}")).values()
        if isinstance(cls, type) and cls.__module__.startswith(messages.__name__)
    }
    found = [getattr(messages, name) for name in messages.__all__]
    assert set(found) == inner
    assert len(found) == len(inner)
    assert set(messages.__all__) <= set(dir(messages))


def test_a_name_that_several_modules_have_is_prefixed_with_its_message() -> None:
    assert messages.MetadataRequestTopic is MetadataRequestTopic
    assert messages.FetchRequestFetchPartition is FetchPartition
    assert messages.ShareFetchRequestFetchPartition.__module__.endswith(".share_fetch")
    assert not hasattr(messages, "FetchPartition")


def test_every_api_key_but_the_removed_has_a_request() -> None:
    for key in ApiKey:
        if key in REMOVED:
            with pytest.raises(ProtocolError, match=f"API key {key.value}"):
                request_type(key)
        else:
            request = request_type(key)
            response = request.response_type()
            assert request.API_KEY == response.API_KEY == key
            assert issubclass(response, Response)
            assert request.NAME.removesuffix("Request").upper() == (
                key.name.replace("_", "")
            )


def test_requests_and_responses_have_the_same_versions() -> None:
    for kind in message_classes():
        assert kind.MIN_VERSION <= kind.MAX_VERSION <= kind.LAST_VERSION
        if issubclass(kind, Request):
            other = kind.response_type()
            assert (kind.MIN_VERSION, kind.MAX_VERSION, kind.FLEXIBLE_FROM) == (
                (other.MIN_VERSION, other.MAX_VERSION, other.FLEXIBLE_FROM)
            )


def test_versions_agree_with_what_a_broker_advertises() -> None:
    expected = {
        ApiKey.PRODUCE: (3, 13, 9),
        ApiKey.FETCH: (4, 18, 12),
        ApiKey.METADATA: (0, 13, 9),
        ApiKey.JOIN_GROUP: (0, 9, 6),
        ApiKey.SASL_HANDSHAKE: (0, 1, None),
        ApiKey.INIT_PRODUCER_ID: (0, 5, 2),
        ApiKey.CONSUMER_GROUP_HEARTBEAT: (0, 1, 0),
    }
    for key, facts in expected.items():
        kind = request_type(key)
        found = (kind.MIN_VERSION, kind.MAX_VERSION, kind.FLEXIBLE_FROM)
        assert found == facts


def test_schemas_name_the_attributes() -> None:
    for kind in message_classes():
        for struct in nested(kind):
            assert issubclass(struct, Struct)
            attributes = [field.name for field in fields(struct)]  # type: ignore[arg-type] # all are dataclasses
            assert [field.name for field in struct.SCHEMA] == attributes


def test_digits_and_capitals_in_names() -> None:
    names = [field.name for field in AddPartitionsToTxnRequest.SCHEMA]
    assert "v3_and_below_transactional_id" in names


def test_credentials_are_not_in_a_repr() -> None:
    assert "secret" not in repr(SaslAuthenticateRequest(auth_bytes=b"secret"))
    assert "secret" not in repr(AlterableConfig(name="password", value="secret"))


def test_the_base_request_answers_nothing() -> None:
    with pytest.raises(NotImplementedError):
        Request.response_type()


def test_the_numbers_of_our_own_code_are_those_of_the_enum() -> None:
    numbers = {name: n for name, n in vars(_api_numbers).items() if name.isupper()}
    assert numbers == {key.name: key.value for key in ApiKey}


def test_a_submodule_is_found_without_the_table_of_all_messages() -> None:
    code = (
        "import sys; from kafkaio.protocol.messages import fetch;"
        "assert fetch.FetchRequest;"
        "assert 'kafkaio.protocol.messages._homes' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no message 'Fetsch'"):
        getattr(messages, "Fetsch")  # noqa: B009 - type checkers know it, too
