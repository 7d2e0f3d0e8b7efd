"""Reading and writing where every listener wants a login or a certificate."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    pkcs12,
)
from pyspark.sql import SparkSession

from tests.spark.conftest import PASSWORD_VARIABLE, USER_PASSWORD
from tests.spark.reading import FAILURES
from tests.support.acls import READ, TOPIC, WRITE, allow
from tests.support.kafka import Kafka

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer"
STORE_PASSWORD = "a secret/1"


@pytest.fixture(scope="module")
def guarded() -> Iterator[Kafka]:
    users = {"alice": USER_PASSWORD}
    with Kafka(sasl=True, tls=True, oidc=True, users=users) as kafka:
        yield kafka


def trust_store(kafka: Kafka, folder: Path) -> Path:
    """The authority in PKCS12."""
    authority = x509.load_pem_x509_certificate(
        kafka.certificates.authority.read_bytes()
    )
    file = folder / "trust.p12"
    file.write_bytes(
        pkcs12.serialize_java_truststore(
            [pkcs12.PKCS12Certificate(authority, b"authority")],
            BestAvailableEncryption(STORE_PASSWORD.encode()),
        )
    )
    return file


def round_trip(
    spark: SparkSession, kafka: Kafka, listener: str, options: Mapping[str, str]
) -> None:
    """Write twenty rows in transactions of tasks, and read them."""
    topic = f"secured-{listener.lower()}-{options.get('kafka.sasl.mechanism', '')}"
    kafka.create_topic_blocking(topic, 2)
    servers = {"kafka.bootstrap.servers": kafka.bootstrap(listener)}
    rows = spark.range(20).selectExpr("CAST(id AS STRING) AS value")
    (
        rows.write.format("kafkaio")
        .options(**servers, **options)
        .option("topic", topic)
        .option("exactlyOnce", "true")
        .option("txnAppId", topic)
        .option("txnVersion", "1")
        .mode("append")
        .save()
    )
    read = (
        spark.read.format("kafkaio")
        .options(**servers, **options)
        .option("subscribe", topic)
        .option("kafka.isolation.level", "read_committed")
        .schema("value string")
        .load()
    )
    assert sorted(int(row.value) for row in read.collect()) == list(range(20))


def test_scram_over_tls(spark: SparkSession, guarded: Kafka, tmp_path: Path) -> None:
    (tmp_path / "store").write_text(STORE_PASSWORD)
    options = {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.ssl.truststore.location": str(trust_store(guarded, tmp_path)),
        "kafka.ssl.truststore.type": "PKCS12",
        "kafka.ssl.truststore.password": f"${{dir:{tmp_path}:store}}",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": (
            f'{SCRAM} required username="alice" '
            f'password="${{env:{PASSWORD_VARIABLE}}}";'
        ),
    }
    round_trip(spark, guarded, "SASL_SSL", options)


def test_plain_with_a_file_of_properties(
    spark: SparkSession, guarded: Kafka, tmp_path: Path
) -> None:
    file = tmp_path / "login.properties"
    file.write_text(f"password={USER_PASSWORD}\n")
    options = {
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": (
            f'{PLAIN} required username="alice" password="${{file:{file}:password}}";'
        ),
    }
    round_trip(spark, guarded, "SASL", options)


def test_certificates_of_both_sides(spark: SparkSession, guarded: Kafka) -> None:
    options = {
        "kafka.security.protocol": "SSL",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": str(guarded.certificates.authority),
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.location": str(guarded.certificates.clients["alice"]),
    }
    round_trip(spark, guarded, "MTLS", options)


def test_tokens_of_an_endpoint(spark: SparkSession, guarded: Kafka) -> None:
    with guarded.issuer.endpoint({"orders": USER_PASSWORD}) as endpoint:
        options = {
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "OAUTHBEARER",
            "kafka.sasl.login.callback.handler.class": (
                f"{OAUTH}.OAuthBearerLoginCallbackHandler"
            ),
            "kafka.sasl.jaas.config": (
                f'{OAUTH}.OAuthBearerLoginModule required clientId="orders" '
                f'clientSecret="${{env:{PASSWORD_VARIABLE}}}";'
            ),
            "kafka.sasl.oauthbearer.token.endpoint.url": endpoint.url,
        }
        round_trip(spark, guarded, "SASL", options)
        assert endpoint.asked


def test_a_wrong_password(spark: SparkSession, guarded: Kafka) -> None:
    frame = (
        spark.read.format("kafkaio")
        .option("kafka.bootstrap.servers", guarded.bootstrap("SASL"))
        .option("kafka.security.protocol", "SASL_PLAINTEXT")
        .option("kafka.sasl.mechanism", "PLAIN")
        .option(
            "kafka.sasl.jaas.config",
            f"{PLAIN} required username=alice password='wrong-secret';",
        )
        .option("subscribe", "t")
    )
    with pytest.raises(FAILURES) as caught:
        frame.load().collect()
    text = str(caught.value)
    assert "AuthenticationError" in text
    assert "Invalid username or password" in text
    assert "wrong-secret" not in text


@pytest.fixture(scope="module")
def limited() -> Iterator[Kafka]:
    """A Kafka where alice may write to "written" and read "read", and no more."""
    with Kafka(sasl=True, acls=True, users={"alice": USER_PASSWORD}) as kafka:
        for name in ("written", "read", "closed"):
            kafka.create_topic_blocking(name, 1)
        rights = [(TOPIC, "read", READ), (TOPIC, "written", WRITE)]
        asyncio.run(allow(kafka, "alice", *rights))
        yield kafka


def as_alice(kafka: Kafka) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": kafka.bootstrap("SASL"),
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": (
            f"{PLAIN} required username=alice password='${{env:{PASSWORD_VARIABLE}}}';"
        ),
    }


def test_no_right_to_read(spark: SparkSession, limited: Kafka) -> None:
    read = spark.read.format("kafkaio").options(**as_alice(limited))
    assert read.option("subscribe", "read").load().count() == 0
    with pytest.raises(
        FAILURES, match=r"planning .* 'closed', or the principal may not"
    ):
        read.option("subscribe", "closed").load().count()
    rows = spark.range(20).selectExpr("CAST(id AS STRING) AS value").write
    writer = rows.format("kafkaio").options(**as_alice(limited))
    writer.option("topic", "written").mode("append").save()
    with pytest.raises(FAILURES, match=r"needs READ on topic 'written'.*; grant"):
        read.option("subscribe", "written").load().count()


@pytest.mark.parametrize(
    ("topic", "once", "needed"),
    [
        ("closed", False, "'closed', or the principal may not DESCRIBE it"),
        ("read", False, "needs WRITE on topic 'read'"),
        ("written", True, "needs DESCRIBE on transactional id 'kafkaio-app-[01]'"),
    ],
)
def test_no_right_to_write(
    spark: SparkSession, limited: Kafka, topic: str, once: bool, needed: str
) -> None:
    rows = spark.range(20).selectExpr("CAST(id AS STRING) AS value").write

    def write(topic: str, options: Mapping[str, str]) -> None:
        writer = rows.format("kafkaio").options(**as_alice(limited), **options)
        writer.option("topic", topic).mode("append").save()

    write("written", {})
    marked = {"exactlyOnce": "true", "txnAppId": "app", "txnVersion": "1"}
    with pytest.raises(FAILURES, match=rf"task \d .*{needed}.*; grant the principal"):
        write(topic, marked if once else {})
