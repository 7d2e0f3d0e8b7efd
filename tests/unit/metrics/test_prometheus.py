"""The metrics for Prometheus: names, labels and units, and what adds to them."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from kafkaio._runtime.observer import (
    AcknowledgedBatch,
    AcknowledgedPart,
    AcquiredPart,
    FetchedPart,
    Observer,
    guarded,
)
from kafkaio.errors import ConfigurationError, KafkaError, LockLost
from kafkaio.metrics._gauges import GAUGES
from kafkaio.metrics.prometheus import COUNTERS, HISTOGRAMS, PrometheusObserver
from kafkaio.types import OffsetAndMetadata, TopicPartition

ONE = TopicPartition("one", 3)
BATCH = AcknowledgedBatch(
    partition=ONE,
    node_id=1,
    records=10,
    size=1000,
    wire_size=400,
    queue_seconds=0.005,
    seconds=0.02,
    attempts=2,
)
LOST = LockLost("gone", topic_partition=ONE, first_offset=5, last_offset=7)
#: Something of each event that is counted.
EVENTS: dict[str, tuple[Any, ...]] = {
    "connection_opened": (1, "shared", "h", 9),
    "connection_lost": (1, "shared", OSError("cut")),
    "authenticated": (1, "shared", "PLAIN", 0.0, 0.25),
    "authentication_failed": (1, "shared", "PLAIN", OSError("no")),
    "request_sent": ("Fetch", 17, 1, 100),
    "request_answered": ("Fetch", 17, 1, 0.3, 5000),
    "throttled": (1, 0.5, "Fetch"),
    "metadata_updated": (3, 7),
    "retrying": ("metadata", 1, 0.1, OSError("cut")),
    "batch_acknowledged": (BATCH,),
    "batch_retried": (ONE, 10, 1, OSError("cut")),
    "batch_split": (ONE, 10),
    "record_failed": (ONE, OSError("x"), 3),
    "delivery_lost": (ONE, OSError("x"), 2),
    "fetch_answered": (1, 0.4, {ONE: FetchedPart(7, 700)}),
    "records_handed_out": (ONE, 7),
    "records_acquired": ("s", 1, 0.6, {ONE: AcquiredPart(9, 900, 4)}),
    "records_acknowledged": ("s", 1, 0.2, {ONE: AcknowledgedPart(5, 2, 0, 1)}),
    "acknowledgement_failed": ("s", ONE, 5, 7, LOST),
    "lock_lost": ("s", ONE, 5, 6, LOST),
    "locks_renewed": ("s", 1, ONE, 8),
    "handler_failed": ("s", ONE, 5, 2, "released", OSError("x")),
    "heartbeat_answered": ("g", 0.001),
    "rebalance": ("STABLE", (), (), (ONE,)),
    "rebalance_completed": ("g", 2.0),
    "rebalance_failed": ("g", None),
    "offsets_committed": ({ONE: OffsetAndMetadata(5)}, 0.125),
    "commit_failed": ("g", OSError("x")),
    "transaction_step": ("t", "commit", 0.75),
}
KIND = {"authenticated", "authentication_failed"}


def play(observer: Any) -> None:
    for name, arguments in EVENTS.items():
        more = {"is_renewal": True} if name in KIND else {}
        getattr(observer, name)(*arguments, **more)


@dataclass
class Facts:
    """What a snapshot says, by attribute."""

    facts: dict[str, Any]
    raises: list[Exception] = field(default_factory=list)

    def statistics(self) -> Any:
        if self.raises:
            raise self.raises.pop()
        return self

    def __getattr__(self, name: str) -> Any:
        return self.facts[name]


def consumer(lag: int | None = 5, lead: int | None = 9, partition: int = 3) -> Facts:
    place = Facts({"lag": lag, "lead": lead})
    return Facts(
        {
            "assigned": 1,
            "buffered_bytes": 300,
            "idle_seconds": 1.5,
            "partitions": {TopicPartition("one", partition): place},
        }
    )


def share_consumer() -> Facts:
    return Facts(
        {
            "assigned": 4,
            "in_flight": 100,
            "buffered": 60,
            "buffered_bytes": 6000,
            "idle_seconds": 2.5,
        }
    )


def producer(waited: float = 0.5) -> Facts:
    return Facts(
        {
            "buffer": Facts({"used_bytes": 10}),
            "buffer_memory": 100,
            "waiting_for_room": 2,
            "waited_for_room": waited,
            "room_timeouts": 1,
        }
    )


def query() -> Facts:
    lag = {TopicPartition("one", 0): 6, TopicPartition("one", 1): 2}
    behind = {"min": 2, "max": 6, "avg": 4}
    metrics = {f"{name}OffsetsBehindLatest": n for name, n in behind.items()}
    return Facts({"lag": lag, "metrics": metrics})


def client() -> Facts:
    connection = Facts({"in_flight": 4})
    return Facts({"connections": (connection, connection), "metadata_age": 30.0})


def values(registry: CollectorRegistry) -> dict[str, float]:
    """All samples but those of buckets, as ``name{label=value}``."""
    found = {}
    for metric in registry.collect():
        for sample in metric.samples:
            if sample.name.endswith(("_bucket", "_created")):
                continue
            labels = ",".join(f"{k}={v}" for k, v in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}"] = sample.value
    return found


EXPECTED = {
    "kafkaio_connections_opened_total{client_id=c,node=1}": 1,
    "kafkaio_connections_lost_total{cause=OSError,client_id=c,node=1}": 1,
    "kafkaio_authentications_total{client_id=c,kind=renewal,mechanism=PLAIN,"
    "outcome=ok}": 1,
    "kafkaio_authentications_total{client_id=c,kind=renewal,mechanism=PLAIN,"
    "outcome=failed}": 1,
    "kafkaio_authentication_seconds_sum{client_id=c,mechanism=PLAIN}": 0.25,
    "kafkaio_requests_total{api=Fetch,client_id=c,node=1}": 1,
    "kafkaio_request_bytes_total{api=Fetch,client_id=c,node=1}": 100,
    "kafkaio_response_bytes_total{api=Fetch,client_id=c,node=1}": 5000,
    "kafkaio_request_seconds_sum{api=Fetch,client_id=c,node=1}": 0.3,
    "kafkaio_throttle_seconds_total{api=Fetch,client_id=c,node=1}": 0.5,
    "kafkaio_retries_total{client_id=c}": 1,
    "kafkaio_metadata_refreshes_total{client_id=c}": 1,
    "kafkaio_produced_batches_total{client_id=c,topic=one}": 1,
    "kafkaio_produced_records_total{client_id=c,topic=one}": 10,
    "kafkaio_produced_bytes_total{client_id=c,topic=one}": 400,
    "kafkaio_produced_uncompressed_bytes_total{client_id=c,topic=one}": 1000,
    "kafkaio_produce_queue_seconds_sum{client_id=c,topic=one}": 0.005,
    "kafkaio_produce_seconds_sum{client_id=c,topic=one}": 0.02,
    "kafkaio_produce_retried_records_total{client_id=c,topic=one}": 10,
    "kafkaio_produce_failed_records_total{client_id=c,topic=one}": 3,
    "kafkaio_produce_unawaited_failures_total{client_id=c,topic=one}": 2,
    "kafkaio_produce_split_batches_total{client_id=c,topic=one}": 1,
    "kafkaio_fetch_seconds_sum{client_id=c,node=1}": 0.4,
    "kafkaio_fetched_records_total{client_id=c,topic=one}": 7,
    "kafkaio_fetched_bytes_total{client_id=c,topic=one}": 700,
    "kafkaio_consumed_records_total{client_id=c,topic=one}": 7,
    "kafkaio_share_fetch_seconds_sum{client_id=c,node=1}": 0.6,
    "kafkaio_share_acquired_records_total{client_id=c,topic=one}": 9,
    "kafkaio_share_acquired_bytes_total{client_id=c,topic=one}": 900,
    "kafkaio_share_redelivered_records_total{client_id=c,topic=one}": 4,
    "kafkaio_share_acknowledge_seconds_sum{client_id=c,node=1}": 0.2,
    "kafkaio_share_acknowledged_records_total{client_id=c,outcome=accepted,"
    "topic=one}": 5,
    "kafkaio_share_acknowledged_records_total{client_id=c,outcome=released,"
    "topic=one}": 2,
    "kafkaio_share_acknowledged_records_total{client_id=c,outcome=gap,topic=one}": 1,
    "kafkaio_share_failed_acknowledgements_total{client_id=c,error=LockLost,"
    "topic=one}": 3,
    "kafkaio_share_lost_locks_total{client_id=c,topic=one}": 2,
    "kafkaio_share_renewed_locks_total{client_id=c,topic=one}": 8,
    "kafkaio_share_handler_failures_total{client_id=c,outcome=released,topic=one}": 1,
    "kafkaio_committed_partitions_total{client_id=c}": 1,
    "kafkaio_commit_seconds_sum{client_id=c}": 0.125,
    "kafkaio_failed_commits_total{client_id=c,group=g}": 1,
    "kafkaio_heartbeat_seconds_sum{client_id=c,group=g}": 0.001,
    "kafkaio_rebalance_seconds_sum{client_id=c,group=g}": 2.0,
    "kafkaio_failed_rebalances_total{client_id=c,group=g}": 1,
    "kafkaio_lost_partitions_total{client_id=c}": 1,
    "kafkaio_transaction_seconds_sum{client_id=c,step=commit}": 0.75,
}


def test_every_event_adds_to_its_metrics() -> None:
    registry = CollectorRegistry()
    play(PrometheusObserver(registry, client_id="c"))
    found = values(registry)
    counts = {name for name in found if "_seconds_count" in name}
    assert {n.replace("_sum{", "_count{") for n in EXPECTED if "_sum{" in n} == counts
    assert {name: found[name] for name in found.keys() - counts} == EXPECTED
    names = {name.split("{")[0].removeprefix("kafkaio_") for name in EXPECTED}
    assert names == {f"{name}_total" for name in COUNTERS} | {
        f"{name}_sum" for name in HISTOGRAMS
    }


def test_every_method_is_an_event() -> None:
    events = {name for name in vars(Observer) if not name.startswith("_")}
    mine = {name for name in vars(PrometheusObserver) if not name.startswith("_")}
    assert mine - {"started", "closed"} == EVENTS.keys()
    assert mine <= events


def test_labels_of_partitions_are_for_those_who_want_them() -> None:
    registry = CollectorRegistry()
    observer = PrometheusObserver(registry, client_id="c", partition_labels=True)
    play(observer)
    reads = consumer()
    observer.started("consumer", "g", reads)
    found = values(registry)
    name = "kafkaio_produced_records_total{client_id=c,partition=3,topic=one}"
    assert found[name] == 10
    lag = "kafkaio_consumer_lag{client_id=c,group=g,partition=3,topic=one}"
    assert found[lag] == 5
    assert found["kafkaio_consumer_lag_max{client_id=c,group=g,topic=one}"] == 5
    assert reads is not None


def test_gauges_are_read_at_the_scrape() -> None:
    registry = CollectorRegistry()
    observer = PrometheusObserver(registry, client_id="c")
    sources = [
        *(client(), producer(), consumer(5, 9), consumer(7, 2, 4)),
        *(share_consumer(), query()),
    ]
    kinds = ["client", "producer", "consumer", "consumer", "share_consumer", "query"]
    for kind, source in zip(kinds, sources, strict=True):
        observer.started(kind, "g", source)
    found = values(registry)
    assert found == {
        "kafkaio_connections{client_id=c}": 2,
        "kafkaio_requests_in_flight{client_id=c}": 8,
        "kafkaio_metadata_age_seconds{client_id=c}": 30,
        "kafkaio_buffer_bytes{client_id=c}": 10,
        "kafkaio_buffer_limit_bytes{client_id=c}": 100,
        "kafkaio_buffer_waiting_calls{client_id=c}": 2,
        "kafkaio_buffer_wait_seconds_total{client_id=c}": 0.5,
        "kafkaio_buffer_timeouts_total{client_id=c}": 1,
        "kafkaio_consumer_assigned_partitions{client_id=c,group=g}": 2,
        "kafkaio_consumer_buffer_bytes{client_id=c,group=g}": 600,
        "kafkaio_consumer_idle_seconds_total{client_id=c,group=g}": 3,
        "kafkaio_consumer_lag{client_id=c,group=g,topic=one}": 12,
        "kafkaio_consumer_lag_max{client_id=c,group=g,topic=one}": 7,
        "kafkaio_consumer_lead_min{client_id=c,group=g,topic=one}": 2,
        "kafkaio_share_assigned_partitions{client_id=c,group=g}": 4,
        "kafkaio_share_records_in_flight{client_id=c,group=g}": 100,
        "kafkaio_share_buffered_records{client_id=c,group=g}": 60,
        "kafkaio_share_buffer_bytes{client_id=c,group=g}": 6000,
        "kafkaio_share_idle_seconds_total{client_id=c,group=g}": 2.5,
        "kafkaio_query_lag{client_id=c,query=g,topic=one}": 8,
        "kafkaio_query_offsets_behind_min{client_id=c,query=g}": 2,
        "kafkaio_query_offsets_behind_max{client_id=c,query=g}": 6,
        "kafkaio_query_offsets_behind_avg{client_id=c,query=g}": 4,
    }
    assert len(found) == len(GAUGES)
    sources[1].facts["waiting_for_room"] = 0
    assert values(registry)["kafkaio_buffer_waiting_calls{client_id=c}"] == 0


def test_totals_stay_when_their_source_closes_and_is_collected() -> None:
    registry = CollectorRegistry()
    observer = PrometheusObserver(registry, client_id="c")
    first, second = producer(0.5), producer(0.25)
    observer.started("producer", "p", first)
    observer.started("producer", "p", second)
    observer.closed("producer", "p", first)
    found = values(registry)
    assert found["kafkaio_buffer_wait_seconds_total{client_id=c}"] == 0.75
    assert found["kafkaio_buffer_bytes{client_id=c}"] == 10
    del second
    gc.collect()
    found = values(registry)
    assert found["kafkaio_buffer_wait_seconds_total{client_id=c}"] == 0.5
    assert "kafkaio_buffer_bytes{client_id=c}" not in found


def test_a_snapshot_that_another_thread_disturbs_is_tried_again() -> None:
    registry = CollectorRegistry()
    observer = PrometheusObserver(registry)
    disturbed = producer()
    disturbed.raises = [RuntimeError("dictionary changed size during iteration")] * 2
    observer.started("producer", "p", disturbed)
    name = "kafkaio_buffer_bytes{client_id=kafkaio}"
    assert values(registry)[name] == 10
    disturbed.raises = [RuntimeError("dictionary changed size during iteration")] * 5
    assert name not in values(registry)
    assert values(registry)[name] == 10


def test_unknown_places_have_no_figures() -> None:
    registry = CollectorRegistry()
    observer = PrometheusObserver(registry)
    reads = consumer(None, None)
    observer.started("consumer", "g", reads)
    assert not [name for name in values(registry) if "_lag" in name or "_lead" in name]


def test_several_observers_share_a_registry() -> None:
    registry = CollectorRegistry()
    one = PrometheusObserver(registry, client_id="a")
    two = PrometheusObserver(registry, client_id="b")
    again = PrometheusObserver(registry, client_id="a")
    guarded([one, two, again]).records_handed_out(ONE, 2)
    sources = [consumer(1), consumer(2)]
    one.started("consumer", "g", sources[0])
    again.started("consumer", "g", sources[1])
    found = values(registry)
    assert found["kafkaio_consumed_records_total{client_id=a,topic=one}"] == 4
    assert found["kafkaio_consumed_records_total{client_id=b,topic=one}"] == 2
    assert found["kafkaio_consumer_lag{client_id=a,group=g,topic=one}"] == 3
    assert found["kafkaio_consumer_lag_max{client_id=a,group=g,topic=one}"] == 2
    other = PrometheusObserver(CollectorRegistry(), "mine")
    other.metadata_updated(1, 1)
    assert values(registry) == found
    with pytest.raises(ConfigurationError, match="another namespace or registry"):
        PrometheusObserver(registry, partition_labels=True)


async def test_an_observer_that_raises_harms_no_metric() -> None:
    reports: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, c: reports.append(c))

    class Bad:
        def batch_acknowledged(self, batch: AcknowledgedBatch) -> None:
            raise KafkaError("oops")

    registry = CollectorRegistry()
    guard = guarded([Bad(), PrometheusObserver(registry, client_id="c")])
    guard.batch_acknowledged(BATCH)
    assert len(reports) == 1
    name = "kafkaio_produced_records_total{client_id=c,topic=one}"
    assert values(registry)[name] == 10


#: Forks, and says what the child's scrape has: in a process with one thread.
FORK = """
import os
from prometheus_client import CollectorRegistry
from kafkaio.metrics.prometheus import PrometheusObserver
from tests.unit.metrics.test_prometheus import producer, values
name = "kafkaio_buffer_bytes{client_id=c}"
registry = CollectorRegistry()
observer = PrometheusObserver(registry, client_id="c")
mine = producer()
observer.started("producer", "p", mine)
print("parent", values(registry)[name], flush=True)
if not os.fork():
    print("child", values(registry).get(name), flush=True)
    own = producer()
    observer.started("producer", "p", own)
    print("child's own", values(registry)[name], flush=True)
    os._exit(0)
os.wait()
"""


def test_a_forked_process_has_gauges_of_its_own_clients() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORK], text=True, capture_output=True, check=True
    )
    said = done.stdout.splitlines()
    assert said == ["parent 10.0", "child None", "child's own 10.0"]


#: A process of many: it counts, sets its gauges, and says what a scrape would give.
MANY = """
import sys, time
from prometheus_client import CollectorRegistry, generate_latest, multiprocess
from kafkaio.metrics.prometheus import PrometheusObserver
from tests.unit.metrics.test_prometheus import client, consumer, play, producer
observer, other = PrometheusObserver(client_id="c"), PrometheusObserver(client_id="c")
sources = producer(), consumer(int(sys.argv[1]))
observer.started("producer", "p", sources[0])
observer.started("consumer", "g", sources[1])
other.started("producer", "p", sources[0])
gone = {"client": client(), "producer": producer(1.0), "consumer": consumer(99, 1, 7)}
for kind, each in gone.items():
    other.started(kind, "gone", each)
play(observer)
for kind, each in gone.items():
    other.closed(kind, "gone", each)
registry = CollectorRegistry()
multiprocess.MultiProcessCollector(registry)
print(generate_latest(registry).decode())
input()
"""


def test_many_processes_write_files_for_one_scrape(tmp_path: Any) -> None:
    environ = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    command = [sys.executable, "-c", MANY]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    first = subprocess.Popen([*command, "4"], env=environ, **pipes)
    try:
        assert first.stdout is not None
        for line in first.stdout:
            if line == "\n":
                break
        second = subprocess.run(
            [*command, "6"], env=environ, input="\n", text=True, capture_output=True
        )
    finally:
        first.communicate("\n")
    lines = second.stdout.splitlines()
    assert 'kafkaio_produced_records_total{client_id="c",topic="one"} 20.0' in lines
    assert 'kafkaio_consumer_lag{client_id="c",group="g",topic="one"} 10.0' in lines
    assert 'kafkaio_consumer_lag_max{client_id="c",group="g",topic="one"} 6.0' in lines
    # What has closed is gone; what it has counted stays.
    assert 'kafkaio_consumer_lag{client_id="c",group="gone",topic="one"} 0.0' in lines
    assert 'kafkaio_connections{client_id="c"} 0.0' in lines
    # Both observers of a process add up: 0.5 twice and 1.0, in each of two.
    assert 'kafkaio_buffer_wait_seconds_total{client_id="c"} 4.0' in lines
    assert 'kafkaio_buffer_bytes{client_id="c"} 40.0' in lines


def test_observers_are_made_while_an_exporter_reads() -> None:
    """As in a web service that is scraped; the threads change places all the time."""
    registry = CollectorRegistry()
    kept = deque([PrometheusObserver(registry)], maxlen=500)

    def read() -> None:
        for _ in range(100):
            list(registry.collect())

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(1) as pool:
            reading = pool.submit(read)
            while not reading.done():
                kept.append(PrometheusObserver(registry))
            reading.result()
    finally:
        sys.setswitchinterval(before)
