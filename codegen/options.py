"""``python -m codegen.options``: what is written from the declarations of options.

That is ``kafkaio/_config/options.py``, with the keyword types that type checkers read,
and the tables in ``docs/reference/options.md``. ``--check`` only compares.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, Final, TypeAlias

from codegen.pages import with_part
from kafkaio._config import (
    ClientConfig,
    ConsumerConfig,
    ProducerConfig,
    ShareConsumerConfig,
)
from kafkaio._config.declaration import option_of

ROOT: Final = Path(__file__).parent.parent
TYPES: Final = ROOT / "kafkaio" / "_config" / "options.py"
PAGE: Final = ROOT / "docs" / "reference" / "options.md"

Config: TypeAlias = type[ClientConfig]

_TYPES_HEAD: Final = '''\
"""Keyword options with their types, so that editors and type checkers know each one.

Generated from ``configs.py`` by ``python -m codegen.options``: do not edit.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, TypedDict

from kafkaio._config.configs import (
    AllowedHosts,
    MaxVersions,
    Partitioner,
    TokenProvider,
)
from kafkaio._public import public
from kafkaio.types import OffsetStore

if TYPE_CHECKING:
    import ssl

'''
#: The longest line of source.
_LINE: Final = 88
#: Defaults that the table does not show as they are.
_DEFAULTS: Final = {
    "bootstrap_servers": "localhost:9092",
    "retries": "2147483647",
}


def _own(config: Config) -> list[Field[Any]]:
    """Return the options that a class declares itself."""
    return [f for f in fields(config) if f.name in config.__annotations__]


def _keyword_type(declared: Field[Any]) -> str:
    option = option_of(declared)
    if option.keyword_type:
        return option.keyword_type
    if option.choices:
        return f"Literal[{', '.join(map(_quoted, option.choices))}]"
    return str(declared.type)


def _quoted(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def keyword_types() -> str:
    """Return the source of the keyword types."""
    parts = [_TYPES_HEAD.rstrip()]
    for config, base in (
        (ClientConfig, "TypedDict"),
        (ProducerConfig, "ClientOptions"),
        (ConsumerConfig, "ClientOptions"),
        (ShareConsumerConfig, "ClientOptions"),
    ):
        kind = config.__name__.removesuffix("Config")
        parts += [
            "",
            "",
            '@public("kafkaio")',
            f"class {kind}Options({base}, total=False):",
            f'    """Keyword options of ``{kind}``; see `{kind}Config`."""',
            "",
        ]
        for declared in _own(config):
            if not _is_parameter(declared):
                parts += _field_lines(f"{declared.name}: {_keyword_type(declared)}")
    return "\n".join([*parts, ""])


def _is_parameter(declared: Field[Any]) -> bool:
    """Whether constructors have a parameter of its own for an option.

    A (de)serializer is one, for type checkers infer the types of keys and values by it.
    """
    return declared.name == "bootstrap_servers" or bool(option_of(declared).method)


def _field_lines(text: str) -> list[str]:
    """Return a field as the formatter has it: a long list is on a line of its own."""
    line = f"    {text}"
    if len(line) <= _LINE or not text.endswith("]"):
        return [line]
    head, bracket, rest = line.partition("[")
    return [head + bracket, f"        {rest.removesuffix(']')}", "    ]"]


def table(config: Config) -> str:
    """Return the table of the options that a class declares itself."""
    rows = [
        "| option | type | default | Kafka's name | meaning |",
        "|---|---|---|---|---|",
    ]
    rows += [f"| {' | '.join(_cells(declared))} |" for declared in _own(config)]
    return "\n".join(rows)


def _cells(declared: Field[Any]) -> Iterable[str]:
    option, name = option_of(declared), declared.name
    yield f"`{name}`"
    yield f"`{_shown_type(declared)}`".replace("|", "\\|")
    yield f"`{_DEFAULTS.get(name) or _shown_default(declared.default)}`"
    kafka_name = option.kafka_name or name.replace("_", ".")
    names = [] if option.is_own else [f"`{kafka_name}`"]
    names += [f"`{alias}` (librdkafka)" for alias in option.aliases]
    yield ", ".join(names) or "none"
    yield " ".join([*_meaning(option.doc), *_bounds(declared)])


def _shown_type(declared: Field[Any]) -> str:
    shown = _keyword_type(declared)
    if found := re.fullmatch(r"Literal\[(.*)\]( \| \w+)?", shown):
        return found[1].replace(", ", " | ") + (found[2] or "")
    if declared.name == "bootstrap_servers":
        return "str | Sequence[str]"
    return shown


def _shown_default(value: object) -> str:
    if type(value) is int and abs(value) >= 10_000:
        return f"{value:_}"
    return _quoted(value)


def _meaning(doc: str) -> Iterable[str]:
    yield doc.replace("``", "`").replace("|", "\\|")


def _bounds(declared: Field[Any]) -> Iterable[str]:
    bounds = option_of(declared).bounds
    if bounds is not None:
        low, high = bounds
        if high < 2**31 - 1:
            return
        yield f"At least {int(low):,}."


def updated(page: str) -> str:
    """Return the page with its tables as they are to be."""
    for config in (
        ClientConfig,
        ProducerConfig,
        ConsumerConfig,
        ShareConsumerConfig,
    ):
        page = with_part(page, "options", config.__name__, table(config))
    return page


def main(arguments: list[str]) -> int:
    """Write what differs, or with ``--check`` name it."""
    wanted = {TYPES: keyword_types(), PAGE: updated(PAGE.read_text())}
    differs = [path for path, text in wanted.items() if path.read_text() != text]
    if "--check" in arguments:
        for path in differs:
            print(f"{path.name} differs from the declarations of the options")
        return 1 if differs else 0
    for path in differs:
        path.write_text(wanted[path])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
