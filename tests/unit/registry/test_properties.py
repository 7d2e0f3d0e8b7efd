"""Confluent's properties, and what becomes of them."""

from __future__ import annotations

import base64
import math
from pathlib import Path
from typing import Any

import pytest
import trustme

from kafkaio.errors import ConfigurationError
from kafkaio.registry import Registry, RegistryTls
from kafkaio.registry._properties import read_properties
from kafkaio.security import ClientCredentials, FileToken
from tests.support.registries import FakeRegistry, answer

URL = "http://localhost:8081"


def read(**properties: Any) -> dict[str, Any]:
    """Read properties, given with ``_`` for ``.``, beside a URL."""
    dotted = {name.replace("_", "."): value for name, value in properties.items()}
    return read_properties({"schema.registry.url": URL, **dotted})


def test_the_least() -> None:
    assert read() == {"url": URL}
    assert read_properties({"url": URL}) == {"url": URL}
    assert read_properties({"schema.registry.url": [URL, URL]})["url"] == f"{URL},{URL}"
    assert isinstance(Registry.from_properties({"url": URL}), Registry)


@pytest.mark.parametrize("prefix", ["", "schema.registry."])
def test_a_user(prefix: str) -> None:
    found = read_properties(
        {
            "schema.registry.url": URL,
            f"{prefix}basic.auth.credentials.source": "USER_INFO",
            f"{prefix}basic.auth.user.info": "user:pass:word",
        }
    )
    assert found == {"url": URL, "basic_auth": ("user", "pass:word")}
    # As for confluent-kafka, which has no source.
    assert read(basic_auth_user_info="u:p")["basic_auth"] == ("u", "p")


def test_a_user_in_the_url() -> None:
    url = "http://user:secret@localhost"
    found = read_properties({"url": url, "basic.auth.credentials.source": "URL"})
    assert found == {"url": url}


@pytest.mark.parametrize(
    "sasl",
    [
        {"sasl.username": "user", "sasl.password": "word"},
        {
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": (
                "org.apache.kafka.common.security.plain.PlainLoginModule required "
                'username="user" password="word";'
            ),
        },
    ],
)
def test_the_user_of_kafka(sasl: dict[str, str]) -> None:
    source = {"url": URL, "basic.auth.credentials.source": "SASL_INHERIT"}
    assert read_properties({**source, **sasl})["basic_auth"] == ("user", "word")
    with pytest.raises(ConfigurationError, match=r"SASL_INHERIT needs sasl\.username"):
        read_properties(source)


def test_a_token() -> None:
    found = read(
        bearer_auth_credentials_source="STATIC_TOKEN",
        bearer_auth_token="tok3n",
        bearer_auth_logical_cluster="lsrc-1",
        bearer_auth_identity_pool_id="pool-2",
    )
    assert found == {
        "url": URL,
        "bearer_token": "tok3n",
        "headers": {
            "target-sr-cluster": "lsrc-1",
            "Confluent-Identity-Pool-Id": "pool-2",
        },
    }


def test_client_credentials() -> None:
    found = read(
        bearer_auth_credentials_source="OAUTHBEARER",
        bearer_auth_issuer_endpoint_url="https://idp.example/token",
        bearer_auth_client_id="me",
        bearer_auth_client_secret="s3cret",
        bearer_auth_scope="schemas",
    )
    provider = found["bearer_token"]
    assert isinstance(provider, ClientCredentials)
    assert "https://idp.example/token" in repr(provider)
    assert "s3cret" not in repr(provider)
    with pytest.raises(ConfigurationError, match=r"needs bearer\.auth\.issuer"):
        read(bearer_auth_credentials_source="OAUTHBEARER")


def test_the_token_of_kafka() -> None:
    found = read_properties(
        {
            "url": URL,
            "bearer.auth.credentials.source": "SASL_OAUTHBEARER_INHERIT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": "file:///var/run/token",
        }
    )
    assert isinstance(found["bearer_token"], FileToken)
    with pytest.raises(ConfigurationError, match=r"needs sasl\.mechanism"):
        read(bearer_auth_credentials_source="SASL_OAUTHBEARER_INHERIT")


def test_numbers() -> None:
    found = read(
        request_timeout_ms="2500",
        max_retries="5",
        cache_capacity=50,
        cache_latest_ttl_sec="7.5",
        cache_unknown_ttl_sec=3,
    )
    assert found == {
        "url": URL,
        "timeout": 2.5,
        "retries": 5,
        "cache_size": 50,
        "latest_ttl": 7.5,
        "unknown_ttl": 3,
    }
    assert read(timeout=3)["timeout"] == 3
    assert read(latest_cache_ttl_sec="-1")["latest_ttl"] == math.inf
    assert read(missing_id_cache_ttl_sec="5")["unknown_ttl"] == 5


def test_proxies() -> None:
    assert read(proxy="http://p:3128")["proxy"] == "http://p:3128"
    found = read(proxy_host="p", proxy_port="3128")
    assert found["proxy"] == "http://p:3128"


def test_tls() -> None:
    found = read_properties(
        {
            "url": "https://localhost",
            "schema.registry.ssl.truststore.location": "/trust.p12",
            "schema.registry.ssl.truststore.password": "a",
            "schema.registry.ssl.keystore.location": "/key.p12",
            "schema.registry.ssl.keystore.type": "PKCS12",
            "schema.registry.ssl.key.password": "b",
            "schema.registry.ssl.endpoint.identification.algorithm": "",
        }
    )
    assert found["tls"] == RegistryTls(
        truststore_location="/trust.p12",
        truststore_password="a",
        keystore_location="/key.p12",
        keystore_type="PKCS12",
        key_password="b",
        endpoint_identification_algorithm="",
    )


def test_tls_as_confluent_kafka_has_it() -> None:
    found = read_properties(
        {
            "url": "https://localhost",
            "ssl.ca.location": "/ca.pem",
            "ssl.certificate.location": "/cert.pem",
            "ssl.key.location": "/key.pem",
        }
    )
    assert found["tls"] == RegistryTls(
        truststore_location="/ca.pem",
        certificate_location="/cert.pem",
        key_location="/key.pem",
    )
    # One file with both.
    found = read_properties({"url": URL, "ssl.certificate.location": "/both.pem"})
    assert found["tls"] == RegistryTls(keystore_location="/both.pem")


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("auto.register.schemas", "true", r"use register= of Avro"),
        ("use.latest.version", True, r"use use_latest= of Avro"),
        ("normalize.schemas", True, r"use normalize= of Avro"),
        ("value.subject.name.strategy", "x", r"use subject= of Avro"),
        ("specific.avro.reader", "true", r"pass a class to Avro"),
        ("http.read.timeout.ms", 5, r"use request\.timeout\.ms"),
        ("retries.wait.ms", 5, r"leave it out"),
        ("bootstrap.servers", "a:1", r"from_properties\(\) of Producer"),
        ("security.protocol", "SSL", r"from_properties\(\) of Producer"),
        ("sasl.username", "secret", r"from_properties\(\) of Producer"),
        ("basic.auth.user.infos", "secret", r"did you mean 'basic.auth.user.info'"),
        ("cache.capasity", 5, r"did you mean 'cache.capacity'"),
        ("ssl.truststore.lokation", "x", r"did you mean 'ssl.truststore.location'"),
        ("secret value", "x", r"unknown property \(str\)"),
        (5, "x", r"a name is int"),
        ("basic.auth.user.info", "secret", r"the form user:password"),
        ("basic.auth.credentials.source", "SECRET", r"not one of USER_INFO"),
        ("basic.auth.credentials.source", "USER_INFO", r"user\.info is missing"),
        ("bearer.auth.credentials.source", "CUSTOM", r"pass bearer_token="),
        ("bearer.auth.credentials.source", "STATIC_TOKEN", r"token is missing"),
        ("bearer.auth.custom.provider.class", "x", r"pass bearer_token="),
        ("max.retries", "many", r"not a number"),
        ("max.retries", "1.5", r"not an integer"),
        ("cache.capacity", True, r"not a number"),
        ("request.timeout.ms", "nan", r"not a number"),
        ("proxy.port", 5, r"need each other"),
        ("url", "secret", r"given twice"),
        ("bearer.auth.token", 5, r"not a text"),
    ],
)
def test_what_is_refused(name: Any, value: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem) as caught:
        read_properties({"schema.registry.url": URL, name: value})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("properties", [{}, {"url": ""}, {"url": None}])
def test_the_url_is_needed(properties: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"schema\.registry\.url is missing"):
        read_properties(properties)


def test_what_contradicts() -> None:
    with pytest.raises(ConfigurationError, match="mapping"):
        read_properties("url")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="give one of"):
        read(
            basic_auth_credentials_source="URL",
            bearer_auth_credentials_source="STATIC_TOKEN",
        )
    with pytest.raises(ConfigurationError, match="no effect"):
        read(basic_auth_credentials_source="URL", basic_auth_user_info="u:p")
    with pytest.raises(ConfigurationError, match="give one of"):
        read(request_timeout_ms=5, timeout=5)
    with pytest.raises(ConfigurationError, match="give one of"):
        read(proxy="http://p", proxy_host="p", proxy_port=5)
    with pytest.raises(ConfigurationError, match="token has no effect"):
        read(
            basic_auth_credentials_source="USER_INFO",
            basic_auth_user_info="u:p",
            bearer_auth_token="x",
        )


async def test_all_of_it_at_work(fake: FakeRegistry, tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(str(ca))
    registry = Registry.from_properties(
        {
            "schema.registry.url": f"https://localhost:1,{fake.url}",
            "schema.registry.basic.auth.user.info": "user:word",
            "schema.registry.ssl.truststore.location": str(ca),
            "request.header.X-Team": "billing",
        }
    )
    fake.always = answer([1])
    assert await registry.versions("orders") == [1]
    headers = fake.asked[0].headers
    assert headers["authorization"] == (
        "Basic " + base64.b64encode(b"user:word").decode()
    )
    assert headers["x-team"] == "billing"
