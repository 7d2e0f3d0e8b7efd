"""Signed tokens, and an endpoint that gives them."""

import json
from pathlib import Path

import httpx
import pytest
from joserfc import jwt
from joserfc.errors import BadSignatureError, JoseError
from joserfc.jwk import KeySet

from kafkaio.errors import AuthenticationError
from kafkaio.security import ClientCredentials
from kafkaio.types import Token
from tests.support.kafka.oidc import Issuer

SECRETS = {"orders": "a secret/1"}


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Issuer:
    return Issuer(tmp_path_factory.mktemp("oidc"))


def claims(issuer: Issuer, token: Token) -> dict[str, object]:
    """The claims of a token that the published keys verify."""
    keys = KeySet.import_key_set(json.loads(issuer.rules.keys.read_text()))
    return jwt.decode(token.value, keys, algorithms=["RS256"]).claims


def test_the_published_keys_verify_a_token(issuer: Issuer) -> None:
    token = issuer.token("alice", lifetime=60, scope="read", iat=None)
    found = claims(issuer, token)
    assert (found["sub"], found["scope"]) == ("alice", "read")
    assert (found["iss"], found["aud"]) == (issuer.rules.issuer, issuer.rules.audience)
    assert found["exp"] == token.expires
    assert "iat" not in found


def test_the_published_keys_have_no_secret(issuer: Issuer) -> None:
    (key,) = json.loads(issuer.rules.keys.read_text())["keys"]
    assert not {"d", "p", "q"} & key.keys()
    assert issuer.rules.keys_url.startswith("file:///")


def test_a_token_that_has_ended_was_issued_before(issuer: Issuer) -> None:
    found = claims(issuer, issuer.token("alice", lifetime=-100))
    assert int(str(found["iat"])) < int(str(found["exp"]))


def test_a_foreign_key_is_not_accepted(issuer: Issuer, tmp_path: Path) -> None:
    other = Issuer(tmp_path)
    with pytest.raises(BadSignatureError):
        claims(issuer, other.token("alice"))
    with pytest.raises((JoseError, ValueError)):
        claims(issuer, issuer.foreign_token("alice"))


async def test_an_endpoint_gives_tokens_to_its_clients(issuer: Issuer) -> None:
    with issuer.endpoint(SECRETS, lifetime=60) as endpoint:
        provider = ClientCredentials(
            endpoint.url, "orders", SECRETS["orders"], scope="kafka"
        )
        token = await provider()
        assert claims(issuer, token)["sub"] == "orders"
        assert (endpoint.asked, endpoint.scopes) == (1, ["kafka"])
        endpoint.revoke("orders")
        with pytest.raises(AuthenticationError, match="invalid_client"):
            await provider()
        assert endpoint.asked == 2


async def test_what_an_endpoint_refuses(issuer: Issuer) -> None:
    async with httpx.AsyncClient() as client:
        with issuer.endpoint(SECRETS) as endpoint:
            form = {"grant_type": "client_credentials", "client_id": "orders"}
            right = form | {"client_secret": SECRETS["orders"]}
            assert (await client.post(endpoint.url, data=right)).status_code == 200
            for wrong, problem in (
                (form, "invalid_client"),
                (form | {"client_secret": "x"}, "invalid_client"),
                ({"grant_type": "password"}, "unsupported_grant_type"),
            ):
                answer = await client.post(endpoint.url, data=wrong)
                assert (answer.status_code, answer.json()["error"]) == (401, problem)
