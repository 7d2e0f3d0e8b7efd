"""``python -m codegen.cli_schemas``: the schemas of what the command line prints.

They are written to ``kafkaio/_cli/schemas`` from what each command declares with
``prints=``. ``--check`` only compares.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click

import kafkaio._cli
from kafkaio._cli.local import broker, log
from kafkaio._cli.registry import COMMANDS
from kafkaio._cli.root import root
from kafkaio._cli.shell.command import Command, Printed
from kafkaio._cli.text.document import COMMON

SCHEMAS: Final = Path(kafkaio._cli.__file__).parent / "schemas"
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
#: The longest line, where one can be avoided.
_LINE: Final = 80
#: Titles that say more than ``kafkaio NAME --json``.
_TITLES: Final = {
    "broker": "kafkaio broker --json, one line as soon as the cluster listens",
    "common": "What the documents of several commands have",
    "consume": "kafkaio consume --json, and a line of --jsonl",
    "log": "kafkaio log --json, and a line of --jsonl",
    "request": (
        "kafkaio request --list --json and --schema --json; an answer has the fields "
        "that --schema shows"
    ),
}


def sources() -> dict[str, str]:
    """Return the text of every schema, by the name of its file."""
    found: dict[str, Mapping[str, object]] = {
        "common": {name: each.to_schema() for name, each in COMMON.items()},
        "broker": _definitions(broker.PRINTS),
        "log": _definitions(log.PRINTS),
    }
    context = click.Context(root)
    for name in (name for section in COMMANDS.values() for name in section):
        command = root.get_command(context, name)
        if isinstance(command, click.Group):
            found[name] = {
                key: each
                for sub in command.commands.values()
                for key, each in _of_command(sub).items()
            }
        elif command is not None:
            found[name] = _of_command(command)
    return {f"{n}.json": _text(n, each) for n, each in found.items() if each}


def _of_command(command: click.Command) -> dict[str, object]:
    """Return the schemas of a command, one of which has its name."""
    assert isinstance(command, Command), command
    found = _definitions(command.prints)
    if found and command.name not in found:
        first = next(iter(found))
        return {str(command.name): {"$ref": f"#/$defs/{first}"}, **found}
    return found


def _definitions(prints: Printed) -> dict[str, object]:
    return {name: each.to_schema() for name, each in prints.items()}


def _text(name: str, definitions: Mapping[str, object]) -> str:
    document = {
        "$schema": _DIALECT,
        "title": _TITLES.get(name, f"kafkaio {name} --json"),
        "$defs": definitions,
    }
    return _laid_out(document) + "\n"


def _laid_out(value: object, indent: str = "") -> str:
    """Return JSON whose objects and lists are in one line where they fit."""
    line = json.dumps(value)
    if len(indent) + len(line) <= _LINE or not isinstance(value, Mapping | list):
        return line
    deeper = indent + "  "
    if isinstance(value, list):
        inner = [_laid_out(each, deeper) for each in value]
        opening, closing = "[", "]"
    else:
        inner = [f'"{n}": {_laid_out(each, deeper)}' for n, each in value.items()]
        opening, closing = "{", "}"
    lines = f",\n{deeper}".join(inner)
    return f"{opening}\n{deeper}{lines}\n{indent}{closing}"


def main(arguments: list[str]) -> int:
    """Write the files, or with ``--check`` report those that differ."""
    files = sources()
    known = {path.name for path in SCHEMAS.glob("*.json")}
    stale = sorted(known - files.keys())
    changed = [
        name
        for name, text in files.items()
        if name not in known or (SCHEMAS / name).read_text("utf-8") != text
    ]
    if "--check" in arguments:
        for name in [*changed, *stale]:
            print(f"{SCHEMAS / name}: run python -m codegen.cli_schemas")
        return 1 if changed or stale else 0
    for name in changed:
        (SCHEMAS / name).write_text(files[name], "utf-8")
    for name in stale:
        (SCHEMAS / name).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
