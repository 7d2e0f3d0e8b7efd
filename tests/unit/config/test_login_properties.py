"""Logins as Java's clients and librdkafka write them."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from kafkaio._config import ClientConfig
from kafkaio._config.jaas import LoginModule
from kafkaio._config.login_properties import AssertionFacts, TokenRequest
from kafkaio._config.msk import MskFacts
from kafkaio.errors import ConfigurationError

PACKAGE = "org.apache.kafka.common.security"
PLAIN = f"{PACKAGE}.plain.PlainLoginModule"
SCRAM = f"{PACKAGE}.scram.ScramLoginModule"
OAUTH = f"{PACKAGE}.oauthbearer.OAuthBearerLoginModule"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"
HANDLER = f"{PACKAGE}.oauthbearer.OAuthBearerLoginCallbackHandler"
MSK = "software.amazon.msk.auth.iam"
UNSECURED = "unsecuredLoginStringClaim_sub"
URL = "https://login.example.com/token"
SECRET = "alice-secret"


def read(mechanism: str | None, jaas: Any = None, **given: Any) -> ClientConfig:
    """Read properties; ``oauth_x_y`` stands for ``sasl.oauthbearer.x.y``."""
    properties: dict[str, Any] = {
        "bootstrap.servers": "a:1",
        "security.protocol": "SASL_SSL",
    }
    if mechanism:
        properties["sasl.mechanism"] = mechanism
    if jaas is not None:
        properties["sasl.jaas.config"] = jaas
    for name, value in given.items():
        dotted = name.replace("_", ".").replace("oauth.", "sasl.oauthbearer.", 1)
        properties[dotted] = value
    return ClientConfig.from_properties(properties)


def request(*args: Any, **given: Any) -> TokenRequest:
    found = read("OAUTHBEARER", *args, **given).sasl_oauth_token_provider
    assert isinstance(found, TokenRequest)
    assert SECRET not in repr(found)
    assert pickle.loads(pickle.dumps(found)) == found
    return found


@pytest.mark.parametrize(
    ("mechanism", "jaas", "options"),
    [
        (
            "PLAIN",
            f'{PLAIN} required username="alice" password="{SECRET}";',
            {"sasl_username": "alice", "sasl_password": SECRET},
        ),
        (
            "SCRAM-SHA-512",
            f'kafkashaded.{SCRAM} required username="alice" password="{SECRET}";',
            {"sasl_username": "alice", "sasl_delegation_token": False},
        ),
        (
            "SCRAM-SHA-256",
            f'{SCRAM} required username="id" password="hmac" tokenauth="true";',
            {"sasl_username": "id", "sasl_delegation_token": True},
        ),
        (
            "GSSAPI",
            f'{KERBEROS} required useKeyTab=true keyTab="/k" principal="a@B" '
            "storeKey=true serviceName=broker;",
            {
                "sasl_kerberos_keytab": "/k",
                "sasl_kerberos_principal": "a@B",
                "sasl_kerberos_service_name": "broker",
            },
        ),
        (
            "GSSAPI",
            f"{KERBEROS} required useTicketCache=true;",
            {"sasl_kerberos_keytab": None, "sasl_kerberos_service_name": "kafka"},
        ),
        (
            "PLAIN",
            LoginModule(PLAIN, {"username": "alice", "password": 'any "; text'}),
            {"sasl_password": 'any "; text'},
        ),
    ],
)
def test_login_modules(mechanism: str, jaas: Any, options: dict[str, Any]) -> None:
    config = read(mechanism, jaas)
    assert {name: getattr(config, name) for name in options} == options
    assert SECRET not in repr(config)
    assert pickle.loads(pickle.dumps(config)) == config


def test_tokens_by_the_clients_secret() -> None:
    wanted = TokenRequest(
        kind="client credentials",
        url=URL,
        client_id="orders",
        client_secret=SECRET,
        scope="kafka",
        extensions=(("logicalCluster", "lkc-1"),),
    )
    module = f"{OAUTH} required"
    of_java = request(
        f'{module} extension_logicalCluster="lkc-1";',
        oauth_token_endpoint_url=URL,
        oauth_client_credentials_client_id="orders",
        oauth_client_credentials_client_secret=SECRET,
        oauth_scope="kafka",
    )
    older = request(
        f'{module} clientId="orders" clientSecret="{SECRET}" scope="kafka" '
        'extension_logicalCluster="lkc-1";',
        oauth_token_endpoint_url=URL,
        sasl_login_callback_handler_class=HANDLER,
    )
    librdkafka = request(
        oauth_method="oidc",
        oauth_token_endpoint_url=URL,
        oauth_client_id="orders",
        oauth_client_secret=SECRET,
        oauth_scope="kafka",
        oauth_extensions="logicalCluster=lkc-1",
    )
    assert of_java == older == librdkafka == wanted


@pytest.mark.parametrize(
    "given",
    [
        {"oauth_grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer"},
        {"oauth_jwt_retriever_class": f"{PACKAGE}.oauthbearer.JwtBearerJwtRetriever"},
    ],
)
def test_tokens_for_a_signed_jwt(given: dict[str, str]) -> None:
    found = request(oauth_token_endpoint_url=URL, oauth_assertion_file="/jwt", **given)
    assert (found.kind, found.assertion) == ("JWT bearer", AssertionFacts(file="/jwt"))


def test_a_client_that_signs_by_its_key() -> None:
    found = request(
        oauth_token_endpoint_url=URL,
        oauth_client_credentials_client_id="orders",
        oauth_assertion_private_key_file="/key.pem",
        oauth_assertion_private_key_passphrase=SECRET,
        oauth_assertion_algorithm="ES256",
        oauth_assertion_claim_aud=URL,
        oauth_assertion_claim_iss="orders",
        oauth_assertion_claim_exp_seconds="120",
        oauth_assertion_claim_jti_include="true",
    )
    assert found.kind == "client assertion"
    assert found.assertion == AssertionFacts(
        key_file="/key.pem",
        passphrase=SECRET,
        algorithm="ES256",
        claims=(("aud", URL), ("iss", "orders")),
        lifetime=120,
        has_id=True,
    )


def test_tokens_of_a_file_and_of_nobody() -> None:
    found = request(oauth_token_endpoint_url="file:///var/run/jwt")
    assert (found.kind, found.url) == ("file", "/var/run/jwt")
    found = request(
        f'{OAUTH} required {UNSECURED}="alice" unsecuredLoginLifetimeSeconds="60";'
    )
    assert (found.kind, found.principal, found.lifetime) == ("unsecured", "alice", 60)


# ---- AWS MSK -------------------------------------------------------------------------


def msk(
    options: str = "", servers: object = "b-1.kafka.eu-west-1.amazonaws.com:9098"
) -> MskFacts | None:
    """What the properties of AWS's library say, by both of its mechanisms."""
    by_mechanism = {
        "sasl.mechanism": "AWS_MSK_IAM",
        "sasl.jaas.config": f"{MSK}.IAMLoginModule required {options};",
        "sasl.client.callback.handler.class": f"{MSK}.IAMClientCallbackHandler",
    }
    handler = f"{MSK}.IAMOAuthBearerLoginCallbackHandler"
    by_token = {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{OAUTH} required {options};",
        "sasl.login.callback.handler.class": handler,
        "sasl.client.callback.handler.class": handler,
    }
    by_name = {
        "sasl.mechanisms": "OAUTHBEARER",
        "sasl.jaas.config": f"{OAUTH} required {options};",
        "sasl.login.callback.handler.class": "MskToken",
    }
    found = []
    for login in (by_mechanism, by_token, by_name):
        given = {"bootstrap.servers": servers, "security.protocol": "SASL_SSL", **login}
        config = ClientConfig.from_properties(given)
        assert config.sasl_mechanism == "OAUTHBEARER"
        asked = config.sasl_oauth_token_provider
        assert isinstance(asked, TokenRequest)
        assert pickle.loads(pickle.dumps(config)) == config
        assert hash(pickle.loads(pickle.dumps(asked))) == hash(asked)
        assert SECRET not in repr(config)
        found.append(asked.msk)
    assert found[0] == found[1] == found[2]
    return found[0]


@pytest.mark.parametrize(
    ("servers", "region"),
    [
        ("b-1.orders.abc1.c2.kafka.eu-west-1.amazonaws.com:9098", "eu-west-1"),
        ("boot-x.c3.kafka-serverless.us-east-1.amazonaws.com:9098", "us-east-1"),
        ("b-1.o.c2.kafka.cn-north-1.amazonaws.com.cn:9098", "cn-north-1"),
        ("b-1.o.c2.kafka.us-gov-west-1.amazonaws.com:9098", "us-gov-west-1"),
        (["own:9098", "B-2.O.C2.KAFKA.AP-SOUTHEAST-2.AMAZONAWS.COM"], "ap-southeast-2"),
        ("kafka.example.com:9098", ""),
    ],
)
def test_the_region_of_msk(servers: object, region: str) -> None:
    assert msk(servers=servers) == MskFacts(region=region)
    assert msk("awsRegion='eu-north-1'", servers) == MskFacts(region="eu-north-1")


def test_who_signs_tokens_of_msk() -> None:
    assert msk("awsProfileName=orders awsMaxRetries='3' awsDebugCreds=true") == (
        MskFacts(region="eu-west-1", profile="orders", logs_identity=True)
    )
    found = msk(
        'awsRoleArn="arn:aws:iam::1:role/r" awsRoleSessionName="s" awsStsRegion="eu" '
        f'awsRoleExternalId="{SECRET}" awsRoleAccessKeyId="AK" '
        f'awsRoleSecretAccessKey="{SECRET}" awsRoleSessionToken="{SECRET}"'
    )
    assert found == MskFacts(
        region="eu-west-1",
        role_arn="arn:aws:iam::1:role/r",
        role_session_name="s",
        role_external_id=SECRET,
        role_access_key_id="AK",
        role_secret_access_key=SECRET,
        role_session_token=SECRET,
        sts_region="eu",
    )


def test_msk_without_a_login_module() -> None:
    assert read("AWS_MSK_IAM").sasl_mechanism == "OAUTHBEARER"


def test_msk_as_an_option() -> None:
    login = {"security_protocol": "SASL_SSL", "sasl_mechanism": "AWS_MSK_IAM"}
    with pytest.raises(ConfigurationError, match=r"MskToken\(region\), or from_prope"):
        ClientConfig.of("a:1", login)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("ClientCredentials", {"url": URL, "id": "a", "secret": SECRET}),
        ("ClientAssertion", {"url": URL, "id": "a", "oauth_assertion_file": "/jwt"}),
        (
            "JwtBearer",
            {"url": URL, "oauth_assertion_file": "/jwt"}
            | {"oauth_jwt_retriever_class": "JwtBearerJwtRetriever"},
        ),
        ("FileToken", {"url": "file:///jwt"}),
        ("UnsecuredToken", {"sasl_jaas_config": f"{OAUTH} required {UNSECURED}=a;"}),
    ],
)
def test_a_provider_by_its_name(name: str, given: dict[str, str]) -> None:
    for handler in (name, f"kafkaio.security.{name}"):
        named = {SHORT.get(each, each): value for each, value in given.items()}
        with_handler = request(**named, sasl_login_callback_handler_class=handler)
        assert with_handler == request(**named)


SHORT = {
    "url": "oauth_token_endpoint_url",
    "id": "oauth_client_id",
    "secret": "oauth_client_secret",
}


@pytest.mark.parametrize(
    ("mechanism", "jaas", "given", "problem"),
    [
        (None, f"{PLAIN} required;", {}, "for sasl.mechanism=PLAIN.*is missing"),
        (
            "PLAIN",
            f"{SCRAM} required;",
            {},
            "SCRAM-SHA-256 or SCRAM-SHA-512, and.*PLAIN",
        ),
        ("PLAIN", "a.Own required;", {}, "kafkaio has no a.Own"),
        ("PLAIN", 7, {}, "sasl.jaas.config is a int"),
        ("PLAIN", f"{PLAIN} required password='{SECRET}';", {}, "needs username"),
        ("PLAIN", f"{PLAIN} required username=a password='';", {}, "needs password"),
        (
            "PLAIN",
            f"{PLAIN} required username=a password='{SECRET}';",
            {"sasl_password": "wrong-secret"},
            "sasl.password and sasl.jaas.config or .* differ",
        ),
        (
            "SCRAM-SHA-256",
            f"{SCRAM} required username=a password=b tokenauth=perhaps;",
            {},
            "tokenauth is neither true nor false",
        ),
        ("GSSAPI", f"{KERBEROS} required;", {}, "needs useKeyTab=true"),
        ("GSSAPI", f"{KERBEROS} required useKeyTab=true;", {}, "needs keyTab"),
        ("GSSAPI", f"{KERBEROS} required ticketCache='/c';", {}, "KRB5CCNAME"),
        (
            "OAUTHBEARER",
            f"{MSK}.IAMLoginModule required;",
            {},
            "IAMLoginModule is for sasl.mechanism=AWS_MSK_IAM, and .*OAUTHBEARER",
        ),
        (
            "AWS_MSK_IAM",
            f"{MSK}.IAMLoginModule required awsProfile=x;",
            {},
            "no option 'awsProfile' of AWS_MSK_IAM: it has aws.*, awsProfileName",
        ),
        (
            "AWS_MSK_IAM",
            f"{MSK}.IAMLoginModule required awsProfileName=x awsRoleArn=y;",
            {},
            "awsProfileName or awsRoleArn, not both",
        ),
        (
            "AWS_MSK_IAM",
            f"{MSK}.IAMLoginModule required awsStsRegion=x;",
            {},
            "awsStsRegion needs awsRoleArn",
        ),
        (
            "AWS_MSK_IAM",
            f"{MSK}.IAMLoginModule required awsRoleArn=x awsRoleAccessKeyId=y;",
            {},
            "awsRoleAccessKeyId and awsRoleSecretAccessKey together",
        ),
        (
            "AWS_MSK_IAM",
            f"{MSK}.IAMLoginModule required awsDebugCreds=perhaps;",
            {},
            "awsDebugCreds is neither true nor false",
        ),
        (
            "AWS_MSK_IAM",
            f"{MSK}.IAMLoginModule required;",
            {"sasl_client_callback_handler_class": "com.example.Own"},
            "AWS_MSK_IAM has IAMClientCallbackHandler and IAMOAuthBearer",
        ),
        ("AWS_MSK_IAM", None, {"url": URL}, "endpoint.url has no meaning here"),
        (
            "OAUTHBEARER",
            None,
            {"sasl_login_callback_handler_class": "kafkaio.security.MskTokens"},
            "none of this name; it has ClientAssertion, ClientCredentials, FileToken, ",
        ),
        (
            "OAUTHBEARER",
            None,
            {"sasl_login_callback_handler_class": "FileToken", "url": URL}
            | {"id": "a", "secret": SECRET},
            "FileToken needs sasl.oauthbearer.token.endpoint.url=file.*is for ClientCr",
        ),
        (
            "OAUTHBEARER",
            None,
            {"sasl_login_callback_handler_class": "JwtBearer"},
            "JwtBearer needs sasl.oauthbearer.token.endpoint.url and .*assertion",
        ),
        (
            "OAUTHBEARER",
            f"{OAUTH} required;",
            {"sasl_login_callback_handler_class": "com.example.Own"},
            "no classes of Java, .* use sasl_oauth_token_provider",
        ),
        (
            "OAUTHBEARER",
            f"{OAUTH} required;",
            {"sasl_login_callback_handler_class": HANDLER},
            "token.endpoint.url is missing",
        ),
        ("OAUTHBEARER", f"{OAUTH} required;", {}, f"{UNSECURED} for tokens"),
        (
            "OAUTHBEARER",
            f"{OAUTH} required {UNSECURED}=a unsecuredLoginLifetimeSeconds='x';",
            {},
            "LifetimeSeconds is not an integer",
        ),
        ("OAUTHBEARER", None, {"oauth_method": "default"}, "use sasl_oauth_token_prov"),
        ("OAUTHBEARER", None, {"url": URL}, "client.id is missing"),
        ("OAUTHBEARER", None, {"url": URL, "id": "a"}, "client.secret is missing"),
        (
            "OAUTHBEARER",
            None,
            {"url": URL, "oauth_grant_type": "x"},
            "grant.type is neither",
        ),
        (
            "OAUTHBEARER",
            None,
            {"url": URL, "oauth_jwt_retriever_class": "a.JwtBearerJwtRetriever"},
            "assertion.file or .* is missing",
        ),
        (
            "OAUTHBEARER",
            None,
            {"url": URL, "oauth_jwt_retriever_class": "a.Own"},
            "retriever.class: use sasl_oauth_token_provider",
        ),
        (
            "OAUTHBEARER",
            None,
            {
                "url": URL,
                "oauth_assertion_file": "a",
                "oauth_assertion_private_key_file": "b",
            },
            "not both",
        ),
        (
            "OAUTHBEARER",
            None,
            {"url": URL, "oauth_assertion_claim_exp_seconds": "x"},
            r"exp.seconds \(str\) is not an integer",
        ),
        (
            "OAUTHBEARER",
            None,
            {"url": URL, "oauth_assertion_claim_jti_include": "x"},
            r"jti.include \(str\) is neither true nor false",
        ),
        (
            "OAUTHBEARER",
            None,
            {"url": URL, "oauth_header_urlencode": "true"},
            "header.urlencode: kafkaio sends",
        ),
        ("OAUTHBEARER", None, {"url": URL, "oauth_extensions": "x"}, "use name=value"),
        (
            "OAUTHBEARER",
            None,
            {"url": URL, "id": "a", "secret": SECRET, "oauth_jwks_x": "y"},
            "sasl.oauthbearer.jwks.x is a broker's",
        ),
        ("PLAIN", None, {"oauth_scope": "x"}, "scope has no meaning here"),
        ("OAUTHBEARER", None, {}, "needs sasl_oauth_token_provider"),
    ],
)
def test_what_is_refused(
    mechanism: str | None, jaas: Any, given: dict[str, Any], problem: str
) -> None:
    named = {SHORT.get(name, name): value for name, value in given.items()}
    with pytest.raises(ConfigurationError, match=problem) as caught:
        read(mechanism, jaas, **named)
    assert "secret'" not in str(caught.value)
    assert SECRET not in str(caught.value)


def test_options_have_no_place_for_a_login_module() -> None:
    with pytest.raises(ConfigurationError, match=r"from_properties\(\) reads it"):
        ClientConfig.of("a:1", {"sasl_jaas_config": "x"})
    with pytest.raises(ConfigurationError, match="is not a function that returns"):
        ClientConfig.of(
            "a:1",
            {
                "security_protocol": "SASL_SSL",
                "sasl_mechanism": "OAUTHBEARER",
                "sasl_oauth_token_provider": 7,
            },
        )
