"""A plugin of pytest: the fixtures of aiokafka's tests without containers.

The suite's own ``conftest.py`` starts a container with an old Kafka and calls the
scripts in it. Here the broker runs already, and rights and users are changed by
`kafkaio.Admin`.
"""

from __future__ import annotations

import asyncio
import gc
import shutil
import socket
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from suite_run import address

import kafkaio
from kafkaio.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
    ScramMechanism,
    ScramUpsertion,
)

_RESOURCES = {
    "topic": AclResourceType.TOPIC,
    "group": AclResourceType.GROUP,
    "transactional_id": AclResourceType.TRANSACTIONAL_ID,
}


def _administer(call: Callable[[kafkaio.Admin], Awaitable[Any]]) -> Any:
    """Call the admin client in a thread: the tests are in a running loop."""

    async def perform() -> Any:
        async with kafkaio.Admin(address()["plain"]) as admin:
            return await call(admin)

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, perform()).result(timeout=60)


async def _alter(made: list[ScramUpsertion], admin: kafkaio.Admin) -> None:
    await admin.alter_user_scram_credentials(made)


def _binding(rights: dict[str, Any]) -> AclBinding:
    """Translate the arguments of ``kafka-acls.sh`` as the tests name them."""
    permission, user = next(
        (AclPermission(name.removesuffix("_principal").upper()), user)
        for name, user in rights.items()
        if name.endswith("_principal")
    )
    kind, resource = next(
        (
            (_RESOURCES[name], each)
            for name, each in rights.items()
            if name in _RESOURCES
        ),
        (AclResourceType.CLUSTER, "kafka-cluster"),
    )
    return AclBinding(
        resource_type=kind,
        resource_name=resource,
        pattern_type=AclPatternType.LITERAL,
        principal=f"User:{user}",
        host="*",
        operation=AclOperation(rights["operation"].upper()),
        permission=permission,
    )


class Rights:
    """The tests' ``acl_manager``."""

    def __init__(self) -> None:
        self._given: list[dict[str, Any]] = []

    def list_acl(self, principal: str | None = None) -> list[AclBinding]:
        wanted = AclBindingFilter(principal=principal and f"User:{principal}")
        found: list[AclBinding] = _administer(lambda a: a.describe_acls(wanted))
        return found

    def add_acl(self, **rights: Any) -> None:
        _administer(lambda admin: admin.create_acls([_binding(rights)]))
        self._given.append(rights)

    def remove_acl(self, **rights: Any) -> None:
        gone = _binding(rights)
        wanted = AclBindingFilter(
            resource_type=gone.resource_type,
            resource_name=gone.resource_name,
            pattern_type=gone.pattern_type,
            principal=gone.principal,
            host=gone.host,
            operation=gone.operation,
            permission=gone.permission,
        )
        _administer(lambda admin: admin.delete_acls([wanted]))
        self._given.remove(rights)

    def cleanup(self) -> None:
        for rights in self._given[:]:
            self.remove_acl(**rights)


class Users:
    """The tests' ``kafka_config``."""

    def add_scram_user(self, username: str, password: str) -> None:
        # Kafka alters one password of a user in a request.
        for kind in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            made = [ScramUpsertion(username, kind, password)]
            _administer(partial(_alter, made))


class NoKerberos:
    """The tests' ``kerberos_utils``; the nightly session `gssapi` has a Kerberos."""

    def kinit(self, _principal: str) -> None:
        pytest.skip("no Kerberos server runs beside this suite")

    def kdestroy(self) -> None:
        """Nothing was got."""


@pytest.fixture(scope="class")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield loop
    if not loop.is_closed():
        loop.call_soon(loop.stop)
        loop.run_forever()
        loop.close()
    gc.collect()
    asyncio.set_event_loop(None)


@pytest.fixture(autouse=True)
def collect_garbage() -> Iterator[None]:
    """What a test forgot is reported by that test, and not by a later one."""
    yield
    gc.collect()


@pytest.fixture(scope="session")
def unused_port() -> Callable[[], int]:
    def factory() -> int:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port: int = taken.getsockname()[1]
            return port

    return factory


@pytest.fixture(scope="session")
def ssl_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files by the names that the tests look for."""
    folder = tmp_path_factory.mktemp("ssl")
    shutil.copy(address()["authority"], folder / "ca.crt")
    for name in ("client.crt", "client.key"):
        shutil.copy(address()["certificate"], folder / name)
    return folder


@pytest.fixture(scope="class")
def setup_test_class_serverless(
    request: pytest.FixtureRequest, loop: asyncio.AbstractEventLoop
) -> None:
    request.cls.loop = loop


@pytest.fixture(scope="class")
def setup_test_class(
    request: pytest.FixtureRequest, loop: asyncio.AbstractEventLoop, ssl_folder: Path
) -> None:
    """Set the attributes that the test cases read."""
    where = address()
    host, port = where["plain"].split(":")
    cls = request.cls
    cls.loop = loop
    cls.hosts = [where["plain"]]
    cls.kafka_host = host
    cls.kafka_port = int(port)
    cls.kafka_ssl_port = int(where["ssl"].split(":")[1])
    cls.kafka_sasl_plain_port = int(where["sasl"].split(":")[1])
    cls.kafka_version = where["version"]
    cls.ssl_folder = ssl_folder
    cls.acl_manager = Rights()
    cls.kerberos_utils = NoKerberos()
    cls.kafka_config = Users()
