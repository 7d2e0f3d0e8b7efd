"""The two requests, against a socket that answers what it is told."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kafkaio.testing.kafka._topics import TopicSpec, is_usable, make_topic
from kafkaio.testing.kafka._wire import (
    Address,
    TopicNotCreated,
    WireMetadata,
    WirePartition,
    create_topic,
    create_topics_body,
    metadata,
    read_metadata,
)


def text(value: str | None) -> bytes:
    if value is None:
        return b"\xff\xff"
    return struct.pack(">h", len(value)) + value.encode()


def partition(index: int, leader: int) -> bytes:
    return struct.pack(">hiiiiii", 0, index, leader, 1, 1, 1, 1)


def answer(
    brokers: dict[int, int], controller: int, topics: dict[str, list[int]]
) -> bytes:
    body = struct.pack(">i", len(brokers))
    for node_id, port in brokers.items():
        body += struct.pack(">i", node_id) + text("127.0.0.1")
        body += struct.pack(">i", port) + text(None)
    body += struct.pack(">ii", controller, len(topics))
    for name, leaders in topics.items():
        body += struct.pack(">h", 0) + text(name) + b"\0"
        body += struct.pack(">i", len(leaders))
        body += b"".join(partition(i, leader) for i, leader in enumerate(leaders))
    return body


def created(code: int, message: str | None = None) -> bytes:
    return (
        struct.pack(">ii", 0, 1) + text("t") + struct.pack(">h", code) + text(message)
    )


class Broker:
    """Answers each request with the next of its answers; keeps what it was asked."""

    def __init__(self, answers: list[bytes]):
        self.answers = answers
        self.requests: list[bytes] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address: Address = self._server.getsockname()
        self._thread = threading.Thread(target=self._serve)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            with connection:
                (size,) = struct.unpack(">i", connection.recv(4))
                self.requests.append(connection.recv(size))
                reply = self.answers.pop(0)
                connection.sendall(struct.pack(">ii", len(reply) + 4, 1) + reply)

    @contextmanager
    def serving(self) -> Iterator["Broker"]:
        self._thread.start()
        try:
            yield self
        finally:
            self._server.shutdown(socket.SHUT_RDWR)
            self._server.close()
            self._thread.join()


def test_metadata_is_read_whole() -> None:
    view = read_metadata(answer({1: 10, 2: 20}, 2, {"t": [1, -1]}))
    assert view == WireMetadata(
        {1: ("127.0.0.1", 10), 2: ("127.0.0.1", 20)},
        2,
        {"t": (WirePartition(0, 1, (1,), (1,)), WirePartition(1, -1, (1,), (1,)))},
    )


def test_metadata_asks_for_the_topics_named() -> None:
    with Broker([answer({1: 10}, 1, {})]).serving() as broker:
        assert metadata(broker.address, ("abc",)).brokers == {1: ("127.0.0.1", 10)}
    (request,) = broker.requests
    assert struct.unpack_from(">hh", request) == (3, 1)
    assert request.endswith(struct.pack(">i", 1) + text("abc"))


@pytest.mark.parametrize("reply", [b"", b"\0\0\0\x05", b"\0\0\0\1\0"])
def test_a_short_answer_is_a_lost_connection(reply: bytes) -> None:
    with Broker([reply]).serving() as broker, pytest.raises(ConnectionError):
        metadata(broker.address)


def test_nobody_there_is_an_os_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        address = gone.getsockname()
    with pytest.raises(ConnectionRefusedError):
        metadata(address)


def test_a_connection_to_ourselves_is_no_broker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def connect(address: Address, timeout: float) -> socket.socket:
        ourselves = socket.socket()
        ourselves.bind(("127.0.0.1", 0))
        ourselves.connect(ourselves.getsockname())
        return ourselves

    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(ConnectionError, match="ourselves"):
        metadata(("127.0.0.1", 1))


def test_what_is_not_kafka_is_refused() -> None:
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(1024)
            connection.sendall(b"HTTP/1.1 400 Bad Request")

    thread = threading.Thread(target=serve)
    thread.start()
    with server, pytest.raises(ConnectionError, match="not an answer"):
        metadata(server.getsockname())
    thread.join()


def test_a_refused_topic_carries_the_code() -> None:
    body = create_topics_body("t", 1, 1, {}, 1.0)
    with Broker([created(37, "too many")]).serving() as broker:
        with pytest.raises(TopicNotCreated, match="error 37: too many") as caught:
            create_topic(broker.address, body, 1)
        assert caught.value.code == 37


def test_the_request_for_a_topic_is_create_topics_v2() -> None:
    body = create_topics_body("t", 3, 2, {"k": "v"}, 1.5)
    assert body == (
        struct.pack(">i", 1)
        + text("t")
        + struct.pack(">ihi", 3, 2, 0)
        + struct.pack(">i", 1)
        + text("k")
        + text("v")
        + struct.pack(">ib", 1500, 0)
    )


TOPIC = TopicSpec("t", 2, 1, {})


def test_a_topic_is_usable_once_all_partitions_have_live_leaders() -> None:
    def view(*leaders: int) -> WireMetadata:
        return read_metadata(answer({1: 10}, 1, {"t": list(leaders)}))

    assert is_usable(view(1, 1), TOPIC)
    assert not is_usable(view(1, -1), TOPIC)
    assert not is_usable(view(1, 9), TOPIC)
    assert not is_usable(view(1), TOPIC)
    assert not is_usable(read_metadata(answer({1: 10}, 1, {})), TOPIC)


def test_making_a_topic_waits_for_its_leaders() -> None:
    broker = Broker([])
    port = broker.address[1]
    broker.answers += [
        answer({1: port}, 1, {}),
        created(0),
        answer({1: port}, 1, {"t": [1]}),
        answer({1: port}, 1, {"t": [1, 1]}),
    ]
    with broker.serving():
        make_topic(lambda: [broker.address], TOPIC, 5)
    keys = [struct.unpack_from(">h", request)[0] for request in broker.requests]
    assert keys == [3, 19, 3, 3]


def test_a_controller_that_moved_is_asked_again() -> None:
    broker = Broker([])
    port = broker.address[1]
    broker.answers += [
        answer({1: port}, 9, {}),  # the controller is not among the brokers
        answer({1: port}, 1, {}),
        created(41),
        answer({1: port}, 1, {}),
        created(36),  # the first request did work
        answer({1: port}, 1, {"t": [1, 1]}),
    ]
    with broker.serving():
        make_topic(lambda: [broker.address], TOPIC, 5)
    assert broker.answers == []


def test_a_topic_that_exists_is_an_error_when_asked_for_first() -> None:
    broker = Broker([])
    broker.answers += [answer({1: broker.address[1]}, 1, {}), created(36)]
    with broker.serving(), pytest.raises(TopicNotCreated):
        make_topic(lambda: [broker.address], TOPIC, 5)


def test_no_broker_at_all_is_a_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        address = gone.getsockname()
    with pytest.raises(TimeoutError, match="no leaders"):
        make_topic(lambda: [address], TOPIC, 0.0)
