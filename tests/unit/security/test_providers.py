"""Providers of tokens, against a token endpoint on this machine."""

from __future__ import annotations

import asyncio
import base64
import json
import pickle
import ssl
import subprocess
import sys
import time
import traceback
from collections.abc import AsyncIterator
from importlib.machinery import ModuleSpec
from inspect import signature
from pathlib import Path
from types import ModuleType
from urllib.parse import parse_qs

import joserfc.jwt
import pytest
import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from joserfc.jwk import ECKey, RSAKey

from kafkaio import security
from kafkaio._config import ClientConfig
from kafkaio._config.login_properties import AssertionFacts, TokenRequest
from kafkaio.errors import AuthenticationError, ConfigurationError
from kafkaio.security import (
    ClientAssertion,
    ClientCredentials,
    FileToken,
    JwtBearer,
    MskToken,
    SignedAssertion,
    TokenEndpointOptions,
    UnsecuredToken,
)
from kafkaio.security._providers import _Endpoint, provider_for
from kafkaio.security._tokens import TokenSource

SECRET = "s3cr3t-of-orders"
RIGHT = {"access_token": "opaque", "expires_in": 300}


def jwt(**claims: object) -> str:
    parts = [{"alg": "RS256"}, claims]
    texts = [base64.urlsafe_b64encode(json.dumps(p).encode()).decode() for p in parts]
    return ".".join([*(text.rstrip("=") for text in texts), "c2lnbmF0dXJl"])


class Endpoint:
    """Answers by its list; the last answer holds. None never answers."""

    def __init__(self) -> None:
        self.url = ""
        self.answers: list[tuple[int, object] | None] = [(200, RIGHT)]
        self.heads: list[str] = []
        self.forms: list[dict[str, str]] = []

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            await self._answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            assert writer.transport
        finally:
            writer.close()

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.lower().partition("content-length: ")[2].split("\r\n")[0])
        form = parse_qs((await reader.readexactly(length)).decode())
        self.heads.append(head)
        self.forms.append({name: value for name, (value,) in form.items()})
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is None:
            await reader.read()
            return
        status, body = answer
        if status == 0:  # closes without an answer
            return
        writer.write(b"HTTP/1.1 %d X\r\nLocation: /other\r\n" % status)
        writer.write(b"Connection: close\r\n\r\n")
        while body is Endless:
            writer.write(b"x" * 8192)
            await writer.drain()
        writer.write(body if isinstance(body, bytes) else json.dumps(body).encode())
        await writer.drain()


class Endless:
    """A body without an end."""


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    made = Endpoint()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/token"
    yield made
    server.close()


def credentials(endpoint: Endpoint, timeout: float = 10.0) -> ClientCredentials:
    return ClientCredentials(endpoint.url, "orders", SECRET, timeout=timeout)


async def test_client_credentials(endpoint: Endpoint) -> None:
    provider = ClientCredentials(
        endpoint.url, "orders", SECRET, scope="a b", extensions={"logicalCluster": "x"}
    )
    before = time.time()
    token = await pickle.loads(pickle.dumps(provider))()
    assert token.value == "opaque"
    assert before + 299 <= token.expires <= time.time() + 300
    assert token.extensions == {"logicalCluster": "x"}
    basic = base64.b64encode(f"orders:{SECRET}".encode()).decode()
    assert f"authorization: basic {basic}".lower() in endpoint.heads[0].lower()
    assert endpoint.forms == [{"grant_type": "client_credentials", "scope": "a b"}]


async def test_the_earlier_end_holds(endpoint: Endpoint) -> None:
    end = int(time.time()) + 100
    value = jwt(exp=end, sub="alice")
    endpoint.answers = [(200, {"access_token": value, "expires_in": "3600"})]
    token = await credentials(endpoint)()
    assert (token.expires, token.principal) == (end, "alice")
    endpoint.answers = [(200, {"access_token": value})]
    assert (await credentials(endpoint)()).expires == end
    endpoint.answers = [(200, {"access_token": value, "expires_in": 5})]
    assert (await credentials(endpoint)()).expires < end


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (401, {"error": "invalid_client", "error_description": "no"}, "client: no"),
        (401, {"error": "bad", "error_description": SECRET}, r"bad: \[hidden\]"),
        (403, b"<html>", "status 403"),
        (400, {"error": "a\nb"}, "a b"),
        (302, b"", "status 302: redirects are not followed"),
        (200, b"<html>", "not a JSON object"),
        (200, b"[" * 60_000, "not a JSON object"),
        (200, [1], "not a JSON object"),
        (200, {}, "no access_token"),
        (200, {"access_token": 7, "expires_in": 1}, "no access_token"),
        (200, {"access_token": "a b", "expires_in": 1}, "no access_token"),
        (200, {"access_token": "opaque"}, "neither expires_in nor"),
        *(
            (200, {"access_token": "opaque", "expires_in": life}, "expires_in is no")
            for life in ("soon", -1, 0, True, 10**300, float("nan"), {}, "9" * 5000)
        ),
        (200, Endless, "more than 65536 bytes"),
    ],
    ids=lambda value: repr(value)[:40],
)
async def test_answers_that_are_wrong(
    endpoint: Endpoint, status: int, body: object, reason: str
) -> None:
    endpoint.answers = [(status, body)]
    with pytest.raises(AuthenticationError, match=reason) as caught:
        await credentials(endpoint)()
    error = caught.value
    assert (error.mechanism, error.step) == ("OAUTHBEARER", "get a token")
    assert error.reason in str(error)
    assert len(endpoint.forms) == 1
    check_text(error)


def check_text(error: BaseException) -> None:
    """No secret is in the traceback, even if it shows the variables of ours."""
    basic = base64.b64encode(f"orders:{SECRET}".encode()).decode()
    shown = "".join(traceback.format_exception(error))
    frames = traceback.TracebackException.from_exception(error, capture_locals=True)
    ours = [f for f in frames.stack if "kafkaio/security" in f.filename]
    assert ours
    shown += "".join(str(frame.locals) for frame in ours)
    assert SECRET not in shown
    assert basic not in shown
    assert error.__cause__ is None


@pytest.mark.parametrize("status", [0, 429, 500, 503])
async def test_another_attempt(endpoint: Endpoint, status: int) -> None:
    endpoint.answers = [(status, {"error": "busy"}), (200, RIGHT)]
    assert (await credentials(endpoint)()).value == "opaque"
    assert len(endpoint.forms) == 2


async def test_the_time_limit(endpoint: Endpoint) -> None:
    endpoint.answers = [None]
    with pytest.raises(AuthenticationError, match=r"no token within 0\.3 s") as caught:
        await credentials(endpoint, 0.3)()
    check_text(caught.value)
    endpoint.answers = [(500, {"error": "down"})]
    with pytest.raises(AuthenticationError, match=r"within 0\.5 s: down") as caught:
        await credentials(endpoint, 0.5)()
    assert caught.value.reason == "down"


async def test_tls(tmp_path: Path) -> None:
    made, authority = Endpoint(), trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    trusted = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(trusted)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    url = f"https://localhost:{port}/token"
    provider = ClientCredentials(url, "orders", SECRET, ca_file=trusted)
    assert (await provider()).value == "opaque"
    with pytest.raises(AuthenticationError, match="CERTIFICATE_VERIFY_FAILED") as one:
        await ClientCredentials(url, "orders", SECRET)()
    check_text(one.value)
    trusted.unlink()
    with pytest.raises(AuthenticationError, match=r"ca_file=.*No such file"):
        await provider()
    server.close()
    assert len(made.forms) == 1


async def test_assertions(endpoint: Endpoint, tmp_path: Path) -> None:
    file = tmp_path / "jwt"
    signed = jwt(sub="orders")
    file.write_text(f"{signed}\n")

    async def sign() -> str:
        return signed

    await JwtBearer(endpoint.url, file, scope="kafka")()
    await ClientAssertion(endpoint.url, "orders", sign)()
    grant = "urn:ietf:params:oauth:grant-type:jwt-bearer"
    assert endpoint.forms[0] == {
        "grant_type": grant,
        "assertion": signed,
        "scope": "kafka",
    }
    assert endpoint.forms[1] == {
        "grant_type": "client_credentials",
        "client_id": "orders",
        "client_assertion_type": (
            "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        ),
        "client_assertion": signed,
    }
    assert "authorization" not in "".join(endpoint.heads).lower()
    again = pickle.loads(pickle.dumps(JwtBearer(endpoint.url, str(file))))
    assert (await again()).value == "opaque"


def write_key(folder: Path, kind: str, passphrase: bytes | None = None) -> Path:
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
    if kind == "ES256":
        key = ec.generate_private_key(ec.SECP256R1())
    else:
        key = rsa.generate_private_key(65537, 2048)
    how = serialization.NoEncryption()
    text = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(passphrase) if passphrase else how,
    )
    (folder / "key.pem").write_bytes(text)
    return folder / "key.pem"


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
@pytest.mark.parametrize("passphrase", [None, "orders-secret"])
async def test_assertions_signed_by_a_key(
    algorithm: str, passphrase: str | None, tmp_path: Path
) -> None:
    file = write_key(tmp_path, algorithm, passphrase.encode() if passphrase else None)
    template = tmp_path / "template.json"
    template.write_text('{"header": {"x5t": "a"}, "payload": {"iss": "x", "org": 7}}')
    sign = SignedAssertion(
        file,
        passphrase=passphrase,
        algorithm=algorithm,
        issuer="orders",
        audience="https://login",
        lifetime=60,
        leeway=5,
        has_id=True,
        template_file=template,
    )
    kind = ECKey if algorithm == "ES256" else RSAKey
    key = kind.import_key(file.read_bytes(), password=passphrase)
    seen = joserfc.jwt.decode(await sign(), key, algorithms=[algorithm])
    assert seen.header == {"typ": "JWT", "x5t": "a", "alg": algorithm}
    claims = seen.claims
    assert claims["exp"] - claims["iat"] == 60
    assert claims["iat"] - claims["nbf"] == 5
    assert (claims["iss"], claims["sub"], claims["aud"], claims["org"]) == (
        "orders",
        "orders",
        "https://login",
        7,
    )
    again = joserfc.jwt.decode(await sign(), key, algorithms=[algorithm])
    assert again.claims["jti"] != claims["jti"]
    assert "orders-secret" not in repr(sign)


async def test_keys_that_are_wrong(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="'none' is none of RS256, ES256"):
        SignedAssertion("k", algorithm="none")
    with pytest.raises(
        ConfigurationError, match="lifetime=0 is not a possible lifetime"
    ):
        SignedAssertion("k", lifetime=0)
    with pytest.raises(AuthenticationError, match="No such file"):
        await SignedAssertion(tmp_path / "none")()
    file = write_key(tmp_path, "RS256", b"orders-secret")
    for given in ({"passphrase": "wrong-secret"}, {}, {"algorithm": "ES256"}):
        with pytest.raises(AuthenticationError, match="no private key for") as caught:
            await SignedAssertion(file, **given)()
        assert "secret" not in str(caught.value)
    for text in ("[]", '{"payload": 1}', "x"):
        (tmp_path / "t").write_text(text)
        with pytest.raises(AuthenticationError, match="no JSON object with header"):
            await SignedAssertion(file, template_file=tmp_path / "t")()
    with pytest.raises(AuthenticationError, match="No such file"):
        await SignedAssertion(file, template_file=tmp_path / "none")()


def test_providers_of_properties() -> None:
    more = {"url": "https://a/token", "client_id": "orders", "client_secret": "x"}
    file, key = AssertionFacts(file="/jwt"), AssertionFacts(key_file="/key.pem")
    for request, kind in (
        (TokenRequest(kind="client credentials", **more), ClientCredentials),
        (
            TokenRequest(kind="client assertion", assertion=file, **more),
            ClientAssertion,
        ),
        (
            TokenRequest(kind="client assertion", assertion=key, **more),
            ClientAssertion,
        ),
        (TokenRequest(kind="JWT bearer", assertion=file, **more), JwtBearer),
        (TokenRequest(kind="file", url="/jwt"), FileToken),
        (TokenRequest(kind="unsecured", principal="alice"), UnsecuredToken),
    ):
        assert type(provider_for(request)) is kind


async def test_assertions_that_are_wrong(endpoint: Endpoint, tmp_path: Path) -> None:
    async def fails() -> str:
        raise KeyError(SECRET)

    async def empty() -> str:
        return ""

    with pytest.raises(AuthenticationError, match="fails failed with KeyError"):
        await JwtBearer(endpoint.url, fails)()
    with pytest.raises(
        AuthenticationError, match="empty returned str that is not a JWT"
    ):
        await JwtBearer(endpoint.url, empty)()
    with pytest.raises(AuthenticationError, match="No such file"):
        await JwtBearer(endpoint.url, tmp_path / "none")()
    assert not endpoint.forms


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://login.example/token", "allow_http=True"),
        ("http://127.0.0.1.example/token", "allow_http=True"),
        ("ftp://login.example/", "not a URL"),
        ("login.example", "not a URL"),
        ("https://login.example:port/", "not a URL"),
        ("https://login.example/\n", "not a URL"),
        ("https://user:word@login.example/", "no user"),
    ],
)
def test_addresses_that_are_refused(url: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem) as caught:
        ClientCredentials(url, "orders", SECRET)
    assert SECRET not in str(caught.value)


def test_arguments_that_are_refused(tmp_path: Path) -> None:
    url = "https://login.example/token"
    with pytest.raises(ConfigurationError, match="may not be empty"):
        ClientCredentials(url, "orders", "")
    with pytest.raises(ConfigurationError, match="may not be empty"):
        ClientAssertion(url, "", "file")
    with pytest.raises(ConfigurationError, match="timeout"):
        ClientCredentials(url, "orders", SECRET, timeout=0)
    with pytest.raises(ConfigurationError, match=r"ca_file=.*No such file"):
        ClientCredentials(url, "orders", SECRET, ca_file=tmp_path / "none")
    with pytest.raises(ConfigurationError, match="may not be empty"):
        UnsecuredToken("")
    with pytest.raises(ConfigurationError, match="not a possible lifetime"):
        UnsecuredToken("alice", seconds=float("nan"))
    with pytest.raises(ConfigurationError, match="may not be empty"):
        MskToken("")
    with pytest.raises(ConfigurationError, match="not both"):
        MskToken("eu-central-1", profile="a", role_arn="b")
    with pytest.raises(ConfigurationError, match="needs role_arn"):
        MskToken("eu-central-1", sts_region="b")
    with pytest.raises(ConfigurationError, match="role_keys is an access key id"):
        MskToken("eu-central-1", role_arn="b", role_keys=("one",))


def test_arguments_of_an_endpoint_are_declared_once() -> None:
    names = set(TokenEndpointOptions.__annotations__)
    for made in (ClientCredentials, ClientAssertion, JwtBearer):
        assert made.__init__.__annotations__["endpoint"] == (
            "Unpack[TokenEndpointOptions]"
        )
    assert set(signature(_Endpoint).parameters) - {"url"} == names
    with pytest.raises(TypeError, match="scopes"):
        ClientCredentials("https://a/", "orders", SECRET, scopes="a")  # type: ignore[call-arg]


def test_http_that_is_allowed() -> None:
    url = "http://login.example/token?key=word"
    provider = ClientCredentials(url, "orders", SECRET, allow_http=True)
    assert repr(provider) == (
        "<ClientCredentials http://login.example/token client_id='orders'>"
    )
    assert repr(JwtBearer("https://a/b", "f")) == "<JwtBearer https://a/b>"
    assert SECRET not in repr(vars(provider)["_endpoint"])


def test_missing_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(ConfigurationError, match=r"pip install kafkaio\[oauth\]"):
        ClientCredentials("https://a/", "orders", SECRET)
    monkeypatch.setattr("kafkaio.security._providers._MSK_MODULE", "no_such_signer")
    with pytest.raises(ConfigurationError, match=r"pip install kafkaio\[aws\]"):
        MskToken("eu-central-1")


async def test_a_file_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "token"
    provider = pickle.loads(pickle.dumps(FileToken(file)))
    for name in ("alice", "bob"):
        value = jwt(exp=2e9, sub=name)
        file.write_text(f"{value}\n")
        token = await provider()
        assert (token.value, token.expires, token.principal) == (value, 2e9, name)
    assert repr(provider) == f"<FileToken {file}>"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "has no token"),
        ("two words", "has no token"),
        ("x" * 70_000, "more than 65536 bytes"),
        (jwt(sub="a"), "no JWT with a claim exp"),
        (jwt(exp=True), "no JWT with a claim exp"),
        ("a.b.c", "no JWT with a claim exp"),
        ("opaque", "no JWT with a claim exp"),
    ],
)
async def test_files_that_are_wrong(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    with pytest.raises(AuthenticationError, match=problem):
        await FileToken(file)()


async def test_unsecured_tokens() -> None:
    provider = pickle.loads(pickle.dumps(UnsecuredToken("alice", seconds=60)))
    source = TokenSource(provider)
    token = await source.token()
    await source.aclose()
    head, body, signature = token.value.split(".")
    assert json.loads(base64.urlsafe_b64decode(head + "==")) == {"alg": "none"}
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    assert (claims["sub"], claims["exp"], signature) == ("alice", token.expires, "")


class Signer(ModuleType):
    """The stand-in for AWS's module; notes what it is asked for."""

    def __init__(self) -> None:
        super().__init__("aws_msk_iam_sasl_signer.MSKAuthTokenProvider")
        self.asked: list[tuple[str, ...]] = []
        self.fails = False

    def generate_auth_token(self, *given: str) -> tuple[str, int]:
        if self.fails:
            raise LookupError(SECRET)
        self.asked.append(given)
        return "signed", 1_900_000_000_500

    def generate_auth_token_from_profile(self, *given: str) -> tuple[str, int]:
        return self.generate_auth_token("profile", *given)

    def generate_auth_token_from_role_arn(self, *given: str) -> tuple[str, int]:
        return self.generate_auth_token("role", *given)

    def generate_auth_token_from_credentials_provider(
        self, region: str, provider: object
    ) -> tuple[str, int]:
        assert isinstance(provider, CredentialProvider)
        return self.generate_auth_token("own", region, *provider.load())


class CredentialProvider:
    """The stand-in for botocore's class."""

    def load(self) -> tuple[str, ...]:
        """Return credentials; botocore's raises."""
        raise NotImplementedError


class Boto(ModuleType):
    """The stand-in for boto3; notes what its client is asked for."""

    def __init__(self) -> None:
        super().__init__("boto3")
        self.asked: list[dict[str, object]] = []

    def client(self, service: str, **given: object) -> Boto:
        self.asked.append({"service": service, **given})
        return self

    def assume_role(self, **given: object) -> dict[str, dict[str, str]]:
        self.asked.append(given)
        names = ("AccessKeyId", "SecretAccessKey", "SessionToken")
        return {"Credentials": dict(zip(names, "ask", strict=True))}


@pytest.fixture
def signer(monkeypatch: pytest.MonkeyPatch) -> Signer:
    signer, package = Signer(), ModuleType("aws_msk_iam_sasl_signer")
    package.__spec__ = ModuleSpec(package.__name__, None)
    monkeypatch.setitem(sys.modules, package.__name__, package)
    monkeypatch.setitem(sys.modules, signer.__name__, signer)
    return signer


def msk_provider(options: str, servers: str = "a:1") -> MskToken:
    """The provider that the properties of AWS's library ask for."""
    config = ClientConfig.from_properties(
        {
            "bootstrap.servers": servers,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "AWS_MSK_IAM",
            "sasl.jaas.config": f"a.IAMLoginModule required {options};",
        }
    )
    request = config.sasl_oauth_token_provider
    assert isinstance(request, TokenRequest)
    provider = provider_for(pickle.loads(pickle.dumps(request)))
    assert isinstance(provider, MskToken)
    return provider


async def test_msk_by_the_properties_of_java(
    signer: Signer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    await msk_provider("", "b-1.x.kafka.eu-west-1.amazonaws.com:9098")()
    with pytest.raises(ConfigurationError, match="region of the MSK cluster is not kn"):
        msk_provider("")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "d")
    await msk_provider("awsProfileName=p")()
    monkeypatch.setenv("AWS_REGION", "r")
    await msk_provider("awsRoleArn=arn awsRoleSessionName=s")()
    await msk_provider("awsRegion=own awsMaxRetries='3'")()
    assert signer.asked == [
        ("eu-west-1",),
        ("profile", "d", "p"),
        ("role", "r", "arn", "s"),
        ("own",),
    ]


async def test_a_role_of_msk_by_keys_of_its_own(
    signer: Signer, monkeypatch: pytest.MonkeyPatch
) -> None:
    boto, credentials = Boto(), ModuleType("botocore.credentials")
    credentials.CredentialProvider = CredentialProvider  # type: ignore[attr-defined]
    credentials.Credentials = lambda *given: given  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "boto3", boto)
    monkeypatch.setitem(sys.modules, "botocore", ModuleType("botocore"))
    monkeypatch.setitem(sys.modules, "botocore.credentials", credentials)
    provider = msk_provider(
        'awsRegion=eu awsRoleArn="arn" awsRoleExternalId="e" awsStsRegion="sts" '
        f'awsRoleAccessKeyId="id" awsRoleSecretAccessKey="{SECRET}"'
    )
    assert SECRET not in repr(provider)
    await provider()
    assert signer.asked == [("own", "eu", *"ask")]
    client, role = boto.asked
    assert client == {
        "service": "sts",
        "region_name": "sts",
        "aws_access_key_id": "id",
        "aws_secret_access_key": SECRET,
        "aws_session_token": None,
    }
    assert role == {
        "RoleArn": "arn",
        "RoleSessionName": "kafkaio",
        "ExternalId": "e",
    }


async def test_msk(signer: Signer) -> None:
    token = await pickle.loads(pickle.dumps(MskToken("eu")))()
    assert (token.value, token.expires) == ("signed", 1_900_000_000.5)
    await MskToken("eu", profile="p")()
    await MskToken("eu", role_arn="r")()
    assert signer.asked == [("eu",), ("profile", "eu", "p"), ("role", "eu", "r")]
    signer.fails = True
    with pytest.raises(AuthenticationError, match="failed with LookupError") as caught:
        await MskToken("eu")()
    assert SECRET not in str(caught.value)


def test_the_package_is_loaded_without_its_libraries() -> None:
    script = (
        "import sys, kafkaio.security as s; s.ClientCredentials; s.MskToken\n"
        "assert not {'httpx', 'botocore'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    assert set(security.__all__) <= set(dir(security))
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = security.Nothing
