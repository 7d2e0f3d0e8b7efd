"""The life of an admin client."""

import gc
import subprocess
import sys

import anyio
import pytest

from kafkaio._config import ClientConfig
from kafkaio.admin import Admin
from kafkaio.errors import (
    ArgumentValueError,
    BrokerNotAvailable,
    ClosedError,
    ConfigurationError,
    InternalError,
)
from kafkaio.protocol._api_keys import ApiKey
from tests.fakes.broker import HANG, FakeCluster
from tests.unit.client.support import client_of


class Heard:
    """Notes what starts and closes."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []

    def started(self, kind: str, name: str, source: object) -> None:
        self.events.append(("started", kind, name))

    def closed(self, kind: str, name: str, source: object) -> None:
        self.events.append(("closed", kind, name))


def admin_of(cluster: FakeCluster, observer: object | None = None) -> Admin:
    config = ClientConfig(bootstrap_servers=cluster.bootstrap_servers)
    return Admin.from_config(config, observer=observer, dial=cluster.dial)


async def test_from_start_to_close(cluster: FakeCluster) -> None:
    heard = Heard()
    admin = admin_of(cluster, heard)
    assert admin.statistics().state == "new"
    with pytest.raises(ClosedError, match="not started"):
        await admin.list_transactions()
    async with admin:
        name = admin.config.client_id
        assert repr(admin) == f"<Admin {name!r} running | fake-cluster, 3 brokers>"
        assert name.startswith("kafkaio-admin-")
        assert admin.statistics().brokers == 3
    assert admin.statistics().state == "closed"
    with pytest.raises(ClosedError):
        await admin.list_transactions()
    with pytest.raises(ClosedError):
        await admin.start()
    await admin.close()
    assert heard.events == [
        ("started", "client", name),
        ("started", "admin", name),
        ("closed", "client", name),
        ("closed", "admin", name),
    ]


def test_the_constructors_need_no_loop() -> None:
    assert Admin(["a:1"], client_id="me").config.client_id == "me"
    admin = Admin.from_properties({"bootstrap.servers": "a:1", "client.id": "you"})
    assert admin.config.client_id == "you"
    assert repr(admin) == "<Admin 'you' new | unknown cluster, 0 brokers>"
    with pytest.raises(ConfigurationError, match="client_id"):
        Admin(clientid="x")  # type: ignore[call-arg]  # the point of the test


async def test_one_that_was_never_started_is_closed(cluster: FakeCluster) -> None:
    heard = Heard()
    admin = admin_of(cluster, heard)
    await admin.close()
    assert admin.statistics().state == "closed"
    assert heard.events == []


async def test_a_start_that_is_cancelled_leaves_nothing(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.METADATA, HANG)
    admin = admin_of(cluster)
    with anyio.move_on_after(1):
        await admin.start()
    assert admin.statistics().state == "closed"


async def test_a_shared_client_stays_open(cluster: FakeCluster) -> None:
    async with client_of(cluster) as client:
        async with Admin(client) as admin:
            assert admin.config.client_id == client.config.client_id
        assert admin.statistics().state == "closed"
        assert client.statistics().state == "running"
        with pytest.raises(ConfigurationError, match="client_id"):
            Admin(client, client_id="x")
        with pytest.raises(ConfigurationError, match="observer"):
            Admin(client, observer=Heard())
    with pytest.raises(ClosedError):
        await Admin(client).start()


async def test_a_cluster_that_does_not_answer(cluster: FakeCluster) -> None:
    for node in cluster.nodes:
        cluster.stop(node)
    admin = admin_of(cluster)
    with pytest.raises(BrokerNotAvailable):
        await admin.start(timeout=2)
    assert admin.statistics().state == "closed"


async def test_times_that_can_never_be(cluster: FakeCluster) -> None:
    admin = admin_of(cluster)
    with pytest.raises(ArgumentValueError, match="timeout"):
        await admin.start(timeout=-1)
    await admin.start(timeout=5)
    with pytest.raises(ArgumentValueError, match="timeout"):
        await admin.close(timeout=-1)
    assert admin.statistics().state == "running"
    await admin.close(timeout=1)


async def test_a_call_that_waits_ends_with_the_client(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.LIST_TRANSACTIONS, HANG)
    admin = admin_of(cluster)
    await admin.start()
    async with anyio.create_task_group() as group:

        async def listing() -> None:
            with pytest.raises(ClosedError):
                await admin.list_transactions()

        group.start_soon(listing)
        await cluster.received(ApiKey.LIST_TRANSACTIONS)
        await admin.close()


async def test_a_crash_of_the_client_is_told(cluster: FakeCluster) -> None:
    async def crash() -> None:
        raise ValueError("boom")

    async with client_of(cluster) as client:
        admin = Admin(client)
        await admin.start()
        client._cluster.start_soon(crash, "crash")
        await anyio.sleep(0.1)
        assert admin.statistics().state == "failed"
        with pytest.raises(InternalError):
            await admin.list_transactions()
        await admin.close()


@pytest.mark.parametrize("is_shared", [False, True])
async def test_one_that_is_forgotten_warns_and_ends(
    cluster: FakeCluster, *, is_shared: bool
) -> None:
    async with client_of(cluster) as client:
        admin = Admin(client) if is_shared else admin_of(cluster)
        await admin.start()
        left = [admin]
        del admin
        with pytest.warns(ResourceWarning, match=r"admin .*never closed"):
            left.clear()
        gc.collect()
        await anyio.sleep(0.1)
        listeners = client._cluster.life._listeners
        assert len(listeners) == 1  # the client's own
        assert client.statistics().state == "running"


def test_no_name_stands_in_two_subjects() -> None:
    # They are one object: a second method of a name would silently replace the first.
    homes: dict[str, list[str]] = {}
    for kind in Admin.__mro__[1:]:
        for name in vars(kind):
            if kind.__module__.startswith("kafkaio.admin.") and name[:2] != "__":
                homes.setdefault(name, []).append(kind.__name__)
    assert len(homes) > 70
    assert not {name: kinds for name, kinds in homes.items() if len(kinds) > 1}


def test_the_subjects_load_no_messages_before_they_are_used() -> None:
    loaded = (
        "import sys, kafkaio.admin\n"
        "print(*(n for n in sys.modules if n.startswith('kafkaio.protocol.messages.')))"
    )
    command = [sys.executable, "-c", loaded]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    names = {each.rpartition(".")[2] for each in done.stdout.split()}
    assert not names & {"create_topics", "describe_configs", "list_groups"}
