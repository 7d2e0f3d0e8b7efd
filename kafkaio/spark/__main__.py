"""``python -m kafkaio.spark``: lists and deletes markers of writes from a shell."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from kafkaio.errors import KafkaError
from kafkaio.spark._markers import MarkedApp, cleanup, marked_apps


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code: 1 if the cluster refused."""
    parser = argparse.ArgumentParser(
        prog="python -m kafkaio.spark",
        description="Lists and deletes what writes with exactlyOnce leave in Kafka.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    shown = commands.add_parser("list", help="list what has markers")
    removed = commands.add_parser(
        "delete", help="delete the markers of a query that will never run again"
    )
    removed.add_argument("app", help="the id of the query, or the txnAppId")
    for command in (shown, removed):
        command.add_argument(
            "options",
            nargs="+",
            metavar="NAME=VALUE",
            help="options of the write, such as kafka.bootstrap.servers=host:9092",
        )
    given = parser.parse_args(arguments)
    options: dict[str, str] = {}
    for each in given.options:
        name, sign, value = each.partition("=")
        if not sign:
            parser.error(f"{name!r} is not of the form NAME=VALUE")
        options[name] = value
    try:
        if given.command == "list":
            _say(
                [_row(each) for each in marked_apps(options)] or ["nothing has markers"]
            )
        else:
            deleted = cleanup(given.app, options)
            _say(deleted or [f"{given.app} has no markers"])
    except KafkaError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    return 0


def _row(each: MarkedApp) -> str:
    when = "-" if each.written is None else each.written.isoformat(timespec="seconds")
    state = "done" if each.is_done else "-"
    return "\t".join(
        [
            each.app,
            each.topic or "-",
            str(each.version),
            state,
            str(each.tasks),
            when,
            each.store,
        ]
    )


def _say(lines: Sequence[str]) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    sys.exit(main())
