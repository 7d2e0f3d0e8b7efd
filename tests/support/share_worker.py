"""A worker of a share group by confluent-kafka, in a process of its own.

Run as ``python -m tests.support.share_worker SERVERS GROUP TOPIC``; it does with a
record what its value says, and prints value and delivery count, see `share_workers`.
"""

from __future__ import annotations

import sys
import threading
import time

from confluent_kafka import AcknowledgeType, ShareConsumer


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(servers: str, group: str, topic: str) -> None:
    ends = threading.Event()

    def watch() -> None:
        sys.stdin.read()
        ends.set()

    threading.Thread(target=watch, daemon=True).start()
    consumer = ShareConsumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "share.acknowledgement.mode": "explicit",
        }
    )
    consumer.subscribe([topic])
    holds = False
    while not ends.is_set():
        if holds:
            time.sleep(0.05)
            continue
        got = [one for one in consumer.poll(0.2) if one.error() is None]
        for one in got:
            value, count = one.value().decode(), one.delivery_count()
            if value.startswith("hold"):
                holds = True
            elif value.startswith("bad"):
                consumer.acknowledge(one, AcknowledgeType.REJECT)
            elif value.startswith("later") and count == 1:
                consumer.acknowledge(one, AcknowledgeType.RELEASE)
            else:
                consumer.acknowledge(one)
            tell(f"{value} {count}")
        if got:
            answers = consumer.commit_sync(30.0)
            assert not any(answers.values()), answers
    consumer.close()
    tell("left")


if __name__ == "__main__":
    main(*sys.argv[1:])
