"""``python -m codegen.config_facts``: read Kafka's configs with a JVM.

Names, types, defaults, valid values and update modes are code in Kafka, so the jars are
asked once per release. The result, ``kafkaio/testing/_broker/configs.json``, is what
the embedded broker knows of configs; it holds no descriptions.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
TARGET = HERE.parent / "kafkaio" / "testing" / "_broker" / "configs.json"

_RANGE = re.compile(r"\[(?P<least>[-\d.]+),\.\.\.(,(?P<most>[-\d.]+))?\]( or (-1))?$")
_CHOICES = re.compile(
    r"(?P<any_case>\(case insensitive\) )?\[(?P<choices>[^.\]]+.*)\]$"
)

Row = list[object]


def row(kind: str, default: str | None, valid: str | None, last: str | None) -> Row:
    """Return what is kept of a config; nulls at the end are left out.

    Args:
        kind: its type.
        default: its default as a text.
        valid: Kafka's text about the values that are valid.
        last: the update mode of a broker's config, the broker's synonym of a group's.
    """
    found: Row = [kind, default, last, *_limits(valid or "")]
    while found[-1] is None:
        found.pop()
    return found


def _limits(valid: str) -> Row:
    """Return the choices, the least value and the greatest."""
    number = _RANGE.match(valid)
    if number is not None:
        least, most = number["least"], number["most"]
        if valid.endswith(" or -1"):
            return [["-1", *map(str, range(int(least), int(most) + 1))]]
        return [None, _number(least), None if most is None else _number(most)]
    text = _CHOICES.match(valid)
    if text is None:
        return []
    choices = text["choices"].split(", ")
    if text["any_case"]:
        choices += [choice.lower() for choice in choices]
    return [choices]


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)


def rendered(text: str) -> str:
    """Return the file for what ``ConfigFacts.java`` printed: one line a config."""
    facts = json.loads(text)
    parts = []
    for kind in ("broker", "internal", "group"):
        rows = {name: row(*fact) for name, fact in facts[kind].items()}
        parts.append(_section(kind, rows))
    topics = {
        name: [[synonym, int(factor)] for synonym, factor in synonyms]
        for name, synonyms in facts["topic"].items()
    }
    parts.append(_section("topic", topics))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _section(name: str, rows: dict[str, Row] | dict[str, list[list[object]]]) -> str:
    lines = (f" {json.dumps(key)}: {json.dumps(value)}" for key, value in rows.items())
    return f'"{name}": {{\n' + ",\n".join(lines) + "\n}"


def main() -> None:
    """Write ``configs.json``."""
    # Here, so that the rest needs no jgo.
    from codegen.jar import KAFKA_VERSION
    from kafkaio.testing.kafka._jars import fetch_jars, pinned

    jars = fetch_jars(pinned(KAFKA_VERSION, "broker"))
    path = ":".join(str(jar) for jar in jars)
    command = ["java", "-cp", path, str(HERE / "ConfigFacts.java")]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    TARGET.write_text(rendered(run.stdout))


if __name__ == "__main__":
    main()
