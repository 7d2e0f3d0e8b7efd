"""Tokens of AWS MSK, signed by AWS's own library: `nox -s "nightly(aws)"`.

The library signs by keys of the environment, and asks no server.
"""

from __future__ import annotations

import base64
import traceback
from urllib.parse import parse_qs, urlsplit

import pytest

from kafkaio._config import ClientConfig
from kafkaio._config.login_properties import TokenRequest
from kafkaio._machines.sasl.oauthbearer import OAuthBearer
from kafkaio._runtime.clock import wall_ms
from kafkaio.errors import AuthenticationError
from kafkaio.security import MskToken
from kafkaio.security._providers import provider_for
from kafkaio.security._tokens import TokenSource

SECRET = "a-key-that-signs-hunter2"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")


async def test_a_token_that_is_signed() -> None:
    source = TokenSource(MskToken("eu-central-1"), timeout=60)
    token = await source.token()
    await source.aclose()
    seconds = token.expires - wall_ms() / 1000
    assert 850 < seconds <= 900
    url = urlsplit(base64.urlsafe_b64decode(token.value + "==").decode())
    assert url.hostname == "kafka.eu-central-1.amazonaws.com"
    query = parse_qs(url.query)
    assert query["Action"] == ["kafka-cluster:Connect"]
    assert query["X-Amz-Credential"][0].startswith("AKIDEXAMPLE/")
    assert SECRET not in url.query
    message = OAuthBearer(token).begin()
    assert isinstance(message, bytes)
    assert token.value.encode() in message


async def test_a_token_by_the_properties_of_java() -> None:
    config = ClientConfig.from_properties(
        {
            "bootstrap.servers": "b-1.x.c2.kafka.eu-central-1.amazonaws.com:9098",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "AWS_MSK_IAM",
            "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
        }
    )
    request = config.sasl_oauth_token_provider
    assert isinstance(request, TokenRequest)
    token = await provider_for(request)()
    url = urlsplit(base64.urlsafe_b64decode(token.value + "==").decode())
    assert url.hostname == "kafka.eu-central-1.amazonaws.com"


async def test_a_role_that_cannot_be_assumed() -> None:
    """AWS's own service of the role would be asked; it cannot be reached here."""
    provider = MskToken(
        "eu-central-1", role_arn="arn:aws:iam::1:role/r", sts_region="nowhere-1"
    )
    with pytest.raises(AuthenticationError, match="AWS's library failed with"):
        await provider()


async def test_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(AuthenticationError, match="does it find credentials"):
        await MskToken("eu-central-1")()


async def test_a_profile_that_is_not_there() -> None:
    with pytest.raises(AuthenticationError, match="ProfileNotFound") as caught:
        await MskToken("eu-central-1", profile="orders")()
    assert SECRET not in "".join(traceback.format_exception(caught.value))
