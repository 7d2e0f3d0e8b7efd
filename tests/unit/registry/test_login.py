"""Logins of a registry: users, tokens that are renewed, headers, TLS, proxies."""

from __future__ import annotations

import asyncio
import base64
import random
import ssl
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trustme

from kafkaio._runtime.clock import replaced
from kafkaio.errors import AuthenticationError, ConfigurationError, RegistryError
from kafkaio.registry import Registry, RegistryTls, Schema
from kafkaio.security import ClientCredentials
from kafkaio.types import Token
from tests.support.patience import HANGS
from tests.support.proxies import ForwardProxy, proxy_server
from tests.support.registries import Answer, Asked, FakeRegistry, answer, refusal

SCHEMA = Schema('{"type": "string"}')


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


async def logged_in(fake: FakeRegistry, registry: Registry) -> str | None:
    """What a request says of its login."""
    fake.faults.append(answer([1]))
    assert await registry.versions("orders") == [1]
    return fake.asked[-1].headers.get("authorization")


class Provider:
    """Counts how often it was asked for a token."""

    def __init__(self, clock: Callable[[], int] = time.time_ns) -> None:
        self.calls = 0
        self.clock = clock
        self.hangs = False
        self.failure: BaseException | None = None
        self.result: Any = None
        self.running = 0

    async def __call__(self) -> Token:
        self.calls += 1
        assert not self.running
        self.running += 1
        number = self.calls
        try:
            await (asyncio.Event().wait() if self.hangs else asyncio.sleep(0))
        finally:
            self.running -= 1
        if self.failure is not None:
            raise self.failure
        if self.result is not None:
            result: Token = self.result
            return result
        return Token(value=f"tok3n-{number}", expires=self.clock() / 1e9 + 3600)


async def test_no_login(fake: FakeRegistry) -> None:
    assert await logged_in(fake, Registry(fake.url)) is None


async def test_basic(fake: FakeRegistry) -> None:
    registry = Registry(fake.url, basic_auth=("user", "pä:ss"))
    assert await logged_in(fake, registry) == basic("user", "pä:ss")


async def test_a_user_in_the_url(fake: FakeRegistry) -> None:
    url = fake.url.replace("http://", "http://us%40er:p%2Fass@")
    registry = Registry(url)
    assert await logged_in(fake, registry) == basic("us@er", "p/ass")
    fake.always = refusal(404, 40403)
    with pytest.raises(RegistryError) as caught:
        await registry.schema(1)
    assert "ass" not in str(caught.value)


async def test_each_address_has_its_own_user(fake: FakeRegistry) -> None:
    async with FakeRegistry() as other:
        urls = [
            each.url.replace("http://", f"http://{user}:x@")
            for each, user in ((fake, "one"), (other, "two"))
        ]
        fake.always = refusal(503)
        other.always = answer([1])
        await Registry(urls, timeout=HANGS).versions("orders")
        assert fake.asked[0].headers["authorization"] == basic("one", "x")
        assert other.asked[0].headers["authorization"] == basic("two", "x")


async def test_a_token(fake: FakeRegistry) -> None:
    registry = Registry(fake.url, bearer_token="tok3n")
    assert await logged_in(fake, registry) == "Bearer tok3n"
    assert "tok3n" not in repr(registry)


async def test_headers(fake: FakeRegistry) -> None:
    headers = {"target-sr-cluster": "lsrc-1", "Confluent-Identity-Pool-Id": "pool-2"}
    await logged_in(fake, Registry(fake.url, headers=headers))
    found = fake.asked[-1].headers
    assert found["target-sr-cluster"] == "lsrc-1"
    assert found["confluent-identity-pool-id"] == "pool-2"
    assert found["user-agent"].startswith("kafkaio/")


class Clock:
    """The wall clock, which a test sets."""

    def __init__(self) -> None:
        self.passed = 0.0

    def __call__(self) -> int:
        return time.time_ns() + int(self.passed * 1e9)


@pytest.fixture
def clock() -> Iterator[Clock]:
    clock = Clock()
    with replaced(clock, random.Random(1)):
        yield clock


async def test_a_token_is_used_until_shortly_before_its_end(
    fake: FakeRegistry, clock: Clock
) -> None:
    provider = Provider(clock)
    registry = Registry(fake.url, bearer_token=provider)
    assert provider.calls == 0
    for _ in range(3):
        assert await logged_in(fake, registry) == "Bearer tok3n-1"
        clock.passed += 800
    assert provider.calls == 1
    clock.passed = 3_000
    assert await logged_in(fake, registry) == "Bearer tok3n-2"
    assert provider.calls == 2


async def test_a_token_is_used_until_its_end_if_no_other_one_comes(
    fake: FakeRegistry, clock: Clock
) -> None:
    provider = Provider(clock)
    registry = Registry(fake.url, bearer_token=provider, timeout=HANGS)
    await logged_in(fake, registry)
    clock.passed = 3_000
    provider.failure = OSError()
    assert await logged_in(fake, registry) == "Bearer tok3n-1"
    # A pause follows a failure.
    assert await logged_in(fake, registry) == "Bearer tok3n-1"
    assert provider.calls == 2
    clock.passed = 3_700
    with pytest.raises(RegistryError, match="no bearer token"):
        await registry.versions("orders")
    provider.failure = None
    clock.passed = 3_800
    assert await logged_in(fake, registry) == "Bearer tok3n-4"


async def test_a_provider_that_asks_what_was_cancelled(
    fake: FakeRegistry, clock: Clock
) -> None:
    provider = Provider(clock)
    registry = Registry(fake.url, bearer_token=provider, timeout=HANGS)
    await logged_in(fake, registry)
    clock.passed = 3_000
    provider.failure = asyncio.CancelledError("s3cret")
    # The token is used until its end, and a pause follows the failure.
    assert await logged_in(fake, registry) == "Bearer tok3n-1"
    assert await logged_in(fake, registry) == "Bearer tok3n-1"
    assert provider.calls == 2
    clock.passed = 3_700
    with pytest.raises(RegistryError, match="Provider ended with Canc") as caught:
        await registry.versions("orders")
    assert caught.value.retriable
    assert "s3cret" not in str(caught.value)


async def test_a_provider_that_hangs_while_there_is_a_token(
    fake: FakeRegistry, clock: Clock
) -> None:
    provider = Provider(clock)
    registry = Registry(fake.url, bearer_token=provider, timeout=2)
    await logged_in(fake, registry)
    clock.passed = 3_000
    provider.hangs = True
    assert await logged_in(fake, registry) == "Bearer tok3n-1"


async def test_requests_at_once_share_a_token(fake: FakeRegistry) -> None:
    provider = Provider()
    registry = Registry(fake.url, bearer_token=provider)
    fake.always = answer([1])
    async with asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(registry.versions(f"orders-{number}"))
    assert provider.calls == 1
    assert {asked.headers["authorization"] for asked in fake.asked} == {
        "Bearer tok3n-1"
    }


async def test_a_token_that_is_revoked_is_replaced(fake: FakeRegistry) -> None:
    provider = Provider()
    registry = Registry(fake.url, bearer_token=provider)
    await logged_in(fake, registry)
    fake.faults.append(refusal(401))
    assert await logged_in(fake, registry) == "Bearer tok3n-2"
    # A new one that is refused as well is not replaced: the login may not do that.
    fake.always = refusal(401, 40101, "Unauthorized")
    asked = len(fake.asked)
    with pytest.raises(RegistryError, match="bearer_token=") as caught:
        await registry.versions("orders")
    assert not caught.value.retriable
    assert len(fake.asked) == asked + 2
    assert "tok3n" not in str(caught.value)


@pytest.mark.parametrize(
    ("failure", "problem"),
    [
        (ValueError("s3cret"), "Provider failed with ValueError"),
        (
            AuthenticationError(
                "http://idp: invalid_client", mechanism="", step="", reason=""
            ),
            "invalid_client",
        ),
    ],
)
async def test_a_provider_that_fails(
    fake: FakeRegistry, failure: Exception, problem: str
) -> None:
    provider = Provider()
    provider.failure = failure
    registry = Registry(fake.url, bearer_token=provider)
    for _ in range(3):
        # Nothing is wrong with the record at hand.
        with pytest.raises(RegistryError, match=problem) as caught:
            await registry.schema(1)
        assert caught.value.retriable
        assert "s3cret" not in str(caught.value)
    assert not fake.asked
    # A pause follows a failure.
    assert provider.calls == 1


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        ("s3cret", "returned str"),
        (Token(value="s3 cret", expires=9e9), "with spaces"),
        (Token(value="s3cret", expires=1.0), "expired"),
    ],
)
async def test_a_provider_that_is_wrong(
    fake: FakeRegistry, result: Any, problem: str
) -> None:
    provider = Provider()
    provider.result = result
    with pytest.raises(RegistryError, match=problem) as caught:
        await Registry(fake.url, bearer_token=provider).schema(1)
    assert "cret" not in str(caught.value)


async def test_a_provider_that_hangs(fake: FakeRegistry) -> None:
    ended = asyncio.Event()

    async def provider() -> Token:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    registry = Registry(fake.url, bearer_token=provider, timeout=0.1)
    with pytest.raises(RegistryError) as caught:
        await registry.schema(1)
    assert caught.value.retriable
    assert ended.is_set()
    assert not fake.asked


async def test_a_provider_that_cannot_be_cancelled(fake: FakeRegistry) -> None:
    goes_on, calls = asyncio.Event(), 0

    async def provider() -> Token:
        nonlocal calls
        calls += 1
        while not goes_on.is_set():
            with suppress(asyncio.CancelledError):
                await goes_on.wait()
        return Token(value="tok3n", expires=time.time() + 60)

    registry = Registry(fake.url, bearer_token=provider, timeout=0.1)
    for _ in range(2):
        async with asyncio.timeout(HANGS):
            with pytest.raises(RegistryError) as caught:
                await registry.schema(1)
        assert caught.value.retriable
    # It is not asked a second time beside the first.
    assert calls == 1
    goes_on.set()
    assert await logged_in(fake, registry) == "Bearer tok3n"


async def test_the_provider_that_is_there(fake: FakeRegistry) -> None:
    async with FakeRegistry() as identity:

        async def token(asked: Asked) -> Answer:
            assert asked.headers["authorization"] == basic("id", "s3cret")
            return answer({"access_token": "given", "expires_in": 60})

        identity.always = token
        provider = ClientCredentials(f"{identity.url}/token", "id", "s3cret")
        registry = Registry(fake.url, bearer_token=provider)
        assert await logged_in(fake, registry) == "Bearer given"
        assert await logged_in(fake, registry) == "Bearer given"
        assert len(identity.asked) == 1
        assert "s3cret" not in repr(registry)


async def secret_token() -> Token:
    return Token(value="s3cret-word", expires=time.time() + 60)


@pytest.mark.parametrize(
    "given",
    [
        {"basic_auth": ("user", "s3cret-word")},
        {"bearer_token": "s3cret-word"},
        {"headers": {"X-Key": "s3cret-word"}},
        {"bearer_token": secret_token},
        {"user": "user:s3cret-word"},
    ],
)
async def test_a_registry_that_repeats_the_login(
    fake: FakeRegistry, given: dict[str, Any]
) -> None:
    async def repeats(asked: Asked) -> Answer:
        login = asked.headers.get("authorization", "")
        if login.startswith("Basic "):
            login += base64.b64decode(login.removeprefix("Basic ")).decode()
        return refusal(400, message=f"bad: {login} {dict(asked.headers)}")

    fake.always = repeats
    url = fake.url
    if "user" in given:
        url = url.replace("://", f"://{given.pop('user')}@")
    with pytest.raises(RegistryError, match="hidden") as caught:
        await Registry(url, **given).schema(1)
    assert "s3cret-word" not in str(caught.value)
    assert base64.b64encode(b"user:s3cret-word").decode() not in str(caught.value)


# ---- TLS -----------------------------------------------------------------------------


class Authority:
    """Certificates, in files."""

    def __init__(self, folder: Path) -> None:
        self.authority = trustme.CA()
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority.issue_cert("localhost").configure_cert(self.server)
        self.ca = str(folder / "ca.pem")
        self.authority.cert_pem.write_to_path(self.ca)
        self.client = self.authority.issue_cert("client@example.com")
        self.both = str(folder / "both.pem")
        self.client.private_key_and_cert_chain_pem.write_to_path(self.both)
        self.certificate = str(folder / "cert.pem")
        self.client.cert_chain_pems[0].write_to_path(self.certificate)
        self.key = str(folder / "key.pem")
        self.client.private_key_pem.write_to_path(self.key)

    def demand(self) -> None:
        """Let the server want a certificate."""
        self.server.verify_mode = ssl.CERT_REQUIRED
        self.authority.configure_trust(self.server)


@pytest.fixture
def files(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


async def test_tls_with_an_authority_of_ones_own(files: Authority) -> None:
    async with FakeRegistry(context=files.server) as fake:
        fake.add("orders", SCHEMA.text)
        tls = RegistryTls(truststore_location=files.ca)
        assert await Registry(fake.url, tls=tls).schema(1) == SCHEMA
        context = ssl.create_default_context(cafile=files.ca)
        assert await Registry(fake.url, tls=context).schema(1) == SCHEMA


async def test_a_large_answer_with_tls(files: Authority) -> None:
    text = "x" * 3_000_000
    async with FakeRegistry(context=files.server) as fake:
        fake.add("orders", text)
        tls = RegistryTls(truststore_location=files.ca)
        async with Registry(fake.url, tls=tls) as registry:
            assert (await registry.schema(1)).text == text
            found = await registry.register("others", Schema(text))
            assert found.version == 1
        assert fake.connections == 1


async def test_a_certificate_that_is_not_trusted(files: Authority) -> None:
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    async with FakeRegistry(context=files.server) as fake:
        registry = Registry(fake.url, timeout=HANGS)
        with pytest.raises(RegistryError, match="CERTIFICATE_VERIFY_FAILED") as caught:
            await registry.schema(1)
        # It is not tried again, and nothing is wrong with the record at hand.
        assert caught.value.retriable
        assert registry.statistics().requests == 1


async def test_another_address_may_have_a_better_certificate(
    files: Authority, tmp_path: Path
) -> None:
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    other = Authority(tmp_path)
    async with (
        FakeRegistry(context=other.server) as bad,
        FakeRegistry(context=files.server) as good,
    ):
        good.add("orders", SCHEMA.text)
        context = ssl.create_default_context()
        files.authority.configure_trust(context)
        registry = Registry([bad.url, good.url], tls=context, timeout=HANGS)
        assert await registry.schema(1) == SCHEMA
        assert not bad.asked


@pytest.mark.parametrize("is_one_file", [False, True])
async def test_a_certificate_of_the_client(
    files: Authority, *, is_one_file: bool
) -> None:
    files.demand()
    own = (
        {"keystore_location": files.both}
        if is_one_file
        else {"certificate_location": files.certificate, "key_location": files.key}
    )
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    async with FakeRegistry(context=files.server) as fake:
        fake.add("orders", SCHEMA.text)
        tls = RegistryTls(truststore_location=files.ca, **own)  # type: ignore[arg-type]
        assert await Registry(fake.url, tls=tls).schema(1) == SCHEMA
        tls = RegistryTls(truststore_location=files.ca)
        with pytest.raises(RegistryError):
            await Registry(fake.url, tls=tls, retries=0).schema(1)


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    tls = RegistryTls(truststore_location=str(tmp_path / "none.pem"))
    with pytest.raises(ConfigurationError, match="ssl_truststore_location"):
        Registry("https://localhost", tls=tls)
    with pytest.raises(ConfigurationError, match="https"):
        Registry("http://localhost", tls=tls)


def test_passwords_are_not_shown() -> None:
    tls = RegistryTls(key_password="s3cret", keystore_password="s3cret")
    assert "s3cret" not in repr(tls)


# ---- proxies -------------------------------------------------------------------------


async def test_a_proxy(fake: FakeRegistry) -> None:
    # A proxy of HTTP gets the whole URL, and its own login.
    proxy = fake.url.replace("http://", "http://user:s3cret@")
    fake.always = answer([1])
    registry = Registry("http://registry.example:8081", proxy=proxy)
    assert await registry.versions("orders") == [1]
    asked = fake.asked[0]
    assert asked.target == "http://registry.example:8081/subjects/orders/versions"
    assert asked.headers["proxy-authorization"] == basic("user", "s3cret")
    assert "s3cret" not in repr(registry)


async def test_a_tunnel_through_a_proxy(files: Authority) -> None:
    login = ("user", "s3cret")
    async with (
        proxy_server(ForwardProxy("http", login=login)) as proxy,
        FakeRegistry(context=files.server) as fake,
    ):
        fake.add("orders", SCHEMA.text)
        tls = RegistryTls(truststore_location=files.ca)
        url = proxy.url(login="user:s3cret")
        registry = Registry(fake.url, tls=tls, proxy=url)
        assert await registry.schema(1) == SCHEMA
        assert proxy.asked == [("localhost", fake.port)]
        assert "proxy-authorization" not in fake.asked[0].headers
        registry = Registry(fake.url, tls=tls, proxy=proxy.url(), retries=0)
        with pytest.raises(RegistryError, match="ProxyError") as caught:
            await registry.schema(1)
        assert caught.value.retriable


async def test_the_environment_does_not_see_what_is_not_encrypted(
    fake: FakeRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://localhost:1")
    monkeypatch.setenv("ALL_PROXY", "http://localhost:1")
    assert await logged_in(fake, Registry(fake.url)) is None


async def test_the_proxy_of_the_environment(
    files: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        proxy_server(ForwardProxy("http", login=("user", "s3cret"))) as proxy,
        FakeRegistry(context=files.server) as fake,
    ):
        fake.add("orders", SCHEMA.text)
        monkeypatch.setenv("HTTPS_PROXY", proxy.url(login="user:s3cret"))
        monkeypatch.setenv("NO_PROXY", "")
        tls = RegistryTls(truststore_location=files.ca)
        assert await Registry(fake.url, tls=tls).schema(1) == SCHEMA
        assert proxy.asked == [("localhost", fake.port)]
        monkeypatch.setenv("NO_PROXY", "localhost")
        assert await Registry(fake.url, tls=tls).schema(1) == SCHEMA
        assert len(proxy.asked) == 1


@pytest.mark.parametrize(
    ("proxy", "problem"),
    [
        ("s3cret://user:word@h:1", "needs a scheme"),
        ("http://s3cret:port", "not a URL"),
        ("socks5://user:s3cret@h:1", "socksio"),
    ],
)
async def test_a_proxy_of_the_environment_that_cannot_be_used(
    monkeypatch: pytest.MonkeyPatch, proxy: str, problem: str
) -> None:
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    with pytest.raises(ConfigurationError, match=problem) as caught:
        await Registry("https://localhost:1").schema(1)
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


# ---- the library ---------------------------------------------------------------------


def test_without_httpx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpcore", None)
    with pytest.raises(ImportError, match=r"pip install 'kafkaio\[registry\]'"):
        Registry("http://localhost:8081")


def test_httpcore_is_loaded_by_the_first_request() -> None:
    import subprocess

    code = (
        "import sys, kafkaio.registry as r\n"
        "registry = r.Registry('http://localhost:8081')\n"
        "print('httpcore' in sys.modules, 'fastavro' in sys.modules)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == ["False", "False"]
