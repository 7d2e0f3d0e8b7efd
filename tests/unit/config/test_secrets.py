"""No error repeats the value of an option that may be a secret."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import pytest

from kafkaio import AuthenticationError, ConfigurationError
from kafkaio._config import ClientConfig, ConsumerConfig, ProducerConfig
from kafkaio._config.configs import parse_servers
from kafkaio._config.jaas import parse_jaas
from kafkaio._config.login_properties import TokenRequest
from kafkaio._config.shown import shown, shown_name, shown_path, shown_server
from kafkaio.security import FileToken
from kafkaio.security._tls import contexts_for
from kafkaio.spark._options import every_option

PART = "sUp3rS3cret"
#: Secrets in the shapes in which they come, each with the part that is looked for.
SECRETS = {
    "password": (PART, PART),
    "number": (83619274, "83619274"),
    "bytes": (PART.encode(), PART),
    "hmac": ("kf9YtZ8tGQ2Hc+sUp3rS3cret/qDqUo8l3b7Q==", PART),
    "token": (f"eyJhbGciOiJSUzI1NiJ9.{PART}.c2lnbmF0dXJl", PART),
    "key": (f"-----BEGIN PRIVATE KEY-----\n{PART}\n-----END PRIVATE KEY-----", PART),
    "url": (f"https://user:{PART}@idp.test/token", PART),
    "server": (f"user:{PART}@broker:9092", PART),
    "list": ([PART], PART),
    "mapping": ({"sasl.password": PART}, PART),
}
LOGINS = [
    {},
    {"security_protocol": "SSL"},
    {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN"},
    {"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-256"},
    {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"},
    {"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI"},
]
CONFIGS = (ClientConfig, ProducerConfig, ConsumerConfig)


def errors_of(config: type[ClientConfig], name: str, value: Any) -> Iterator[str]:
    """What is told where an option has a value, by all ways of giving it."""
    is_login = name.startswith(("sasl_", "ssl_", "security_"))
    for login in LOGINS if is_login else LOGINS[:1]:
        options = {"bootstrap_servers": "b:1", **login, name: value}
        yield told_by(made_of_options, config, options)
        yield told_by(made_of_properties, config, options)


def made_of_options(config: type[ClientConfig], given: dict[str, Any]) -> ClientConfig:
    options = dict(given)
    return config.of(options.pop("bootstrap_servers"), options)


def made_of_properties(
    config: type[ClientConfig], given: dict[str, Any]
) -> ClientConfig:
    return config.from_properties(
        {name.replace("_", "."): value for name, value in given.items()}
    )


def told_by(make: Callable[..., ClientConfig], *given: Any) -> str:
    """The traceback of an error; empty if there is none."""
    try:
        contexts_for(make(*given))
    except ConfigurationError as error:
        return whole(error)
    return ""


def whole(error: BaseException) -> str:
    """The texts of an error, of what caused it, and their notes."""
    texts = [str(error), *getattr(error, "__notes__", ())]
    below = error.__cause__
    if below is None and not error.__suppress_context__:
        below = error.__context__
    return "\n".join(texts) + (whole(below) if below is not None else "")


@pytest.mark.parametrize("shape", SECRETS)
@pytest.mark.parametrize("config", CONFIGS)
def test_no_error_repeats_a_secret_given_to_any_option(
    config: type[ClientConfig], shape: str
) -> None:
    value, part = SECRETS[shape]
    told = 0
    for declared in fields(config):
        if shape == "number" and not declared.name.startswith(("sasl_", "ssl_")):
            continue  # a number that is out of bounds is shown
        if config is not ClientConfig and declared.name not in config.__annotations__:
            continue  # is tried there
        for text in errors_of(config, declared.name, value):
            assert part not in text, declared.name
            told += bool(text)
    assert told > 3 or config is not ClientConfig


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("linger_ms", "5ms", "linger_ms='5ms'"),
        ("linger_ms", "a lot", "linger_ms='a lot'"),
        ("linger_ms", 5.5, "linger_ms=5.5"),
        ("acks", True, "acks=True"),
        ("group_protocol", "CONSUMER", "group_protocol='CONSUMER'"),
        ("group_protocol", None, "group_protocol=None"),
        ("offset_store", dict, "offset_store (the class dict)"),
        ("offset_store", {"a": 1}, "offset_store (dict)"),
        ("linger_ms", PART, "linger_ms (str)"),
        ("linger_ms", "hunter2x", "linger_ms (str)"),
        ("sasl_mechanism", "hunter", "sasl_mechanism (str)"),
        ("sasl.oauthbearer.scope", "hunter", "sasl.oauthbearer.scope (str)"),
        ("ssl_key_password", 12, "ssl_key_password (int)"),
    ],
)
def test_what_is_shown_of_a_value(name: str, value: object, text: str) -> None:
    assert shown(name, value) == text


def test_a_choice_that_is_misspelt_is_shown() -> None:
    login = {"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA256"}
    with pytest.raises(ConfigurationError, match="'SCRAM-SHA256' is not one of"):
        ClientConfig.of("b:1", login)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("host:port", "'host:***'"),
        ("alice:s3cret", "'alice:***'"),
        ("http://b:9092/x?token=s3cret", "'http://b:9092'"),
        ("kafka://u:s3cret@b:9092", "'kafka://***@b:9092'"),
        ("u:s3cret@b:9092", "'***@b:9092'"),
        ("u:s3@cret@b:9092", "'***@b:9092'"),
        ("my s3cret", "(str)"),
        ("a:70000", "'a:70000'"),
        ("::1", "'::1'"),
        ("fe80::1:9092", "'fe80::1:9092'"),
    ],
)
def test_what_is_shown_of_a_server(text: str, shown: str) -> None:
    assert shown_server(text) == shown


@pytest.mark.parametrize(
    "servers",
    [
        f"user:{PART}@b:9092",
        f"a:1,user:{PART}@b:9092",
        [f"user:{PART}@b:9092", "a:1"],
        # A password with a comma, a slash, an @.
        f"user:x,{PART}@b:9092",
        f"user:{PART},x@b:9092",
        f"user:{PART}/x@b:9092",
        f"user:{PART}@x@b:9092",
        f"SASL_SSL://user:{PART}@b:9092",
        f"{PART}@b",
        f"b:9092;password={PART}",
        f"b:9092?password={PART}",
        {"password": PART},
        [PART, 1],
        PART * 30,
    ],
)
def test_no_server_shows_a_password(servers: object) -> None:
    with pytest.raises(ConfigurationError) as told:
        parse_servers(servers)
    assert PART not in whole(told.value)


def test_a_user_before_a_host_is_told_what_to_use() -> None:
    with pytest.raises(ConfigurationError, match="use sasl_username and sasl_password"):
        parse_servers("alice:secret@b:9092")


@pytest.mark.parametrize(
    "name",
    [
        "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC",
        PART,
        f"password = {PART}",
        "-----BEGIN PRIVATE KEY-----",
        7,
    ],
)
def test_what_is_no_name_is_not_shown(name: Any) -> None:
    with pytest.raises(ConfigurationError, match="unknown option") as told:
        ClientConfig.from_properties({"bootstrap.servers": "b:1", name: ""})
    assert str(name) not in str(told.value)


@pytest.mark.parametrize(
    "name", ["linger.msec", "lingerMs", "LINGER_MS", "auto-offset-reset", "x"]
)
def test_a_name_is_shown(name: str) -> None:
    assert shown_name(name) == repr(name)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/etc/kafka/client.pem", "f='/etc/kafka/client.pem'"),
        ("client.pem", "f='client.pem'"),
        ("../x", "f='../x'"),
        ("C:\\keys\\x", "f='C:\\\\keys\\\\x'"),
        (PART, "f (str)"),
        (f"/{PART}+x==", "f (str)"),
        (f"-----BEGIN PRIVATE KEY-----\n{PART}", "f (str)"),
    ],
)
def test_what_is_shown_of_a_path(path: str, text: str) -> None:
    assert shown_path("f", path) == text


@pytest.mark.parametrize(
    "text",
    [
        f"PlainLoginModule required username=alice password=a {PART};",
        f'PlainLoginModule required password="a"{PART}";',
        f"PlainLoginModule required {PART};",
        PART,
        f"{PART} required;",
        f"PlainLoginModule {PART}",
    ],
)
def test_a_login_module_shows_no_value(text: str) -> None:
    properties = {
        "bootstrap.servers": "b:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": text,
    }
    with pytest.raises(ConfigurationError) as told:
        ClientConfig.from_properties(properties)
    assert PART not in whole(told.value)


def test_no_repr_shows_a_secret() -> None:
    url = f"https://user:{PART}@idp.test/token"
    request = TokenRequest(
        kind="client credentials", url=url, client_id="c", client_secret=PART
    )
    config = ClientConfig.of(
        "b:1",
        {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_oauth_token_provider": request,
            "ssl_keystore_key": PART,
            "ssl_key_password": PART,
        },
    )
    assert PART not in repr(config)
    module = parse_jaas(f'a.PlainLoginModule required password="{PART}";')
    assert PART not in repr(module)


@pytest.mark.parametrize("token", [f"eyJhbGciOiJSUzI1NiJ9.{PART}.c2ln", PART])
async def test_a_token_in_place_of_its_file(token: str) -> None:
    provider = FileToken(token)
    assert PART not in repr(provider)
    with pytest.raises(AuthenticationError) as told:
        await provider()
    assert PART not in whole(told.value)


@pytest.mark.parametrize("option", every_option(), ids=lambda each: str(each.name))
def test_no_option_of_the_data_source_repeats_a_secret(option: Any) -> None:
    told = ""
    try:
        option.read(PART)
    except ConfigurationError as error:
        told = whole(error)
    assert PART not in told
