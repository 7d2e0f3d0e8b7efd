"""``python -m codegen.options``: what is written from the declarations of options.

That is ``kafkaio/_config/options.py``, with the keyword types that type checkers read,
and the options in ``docs/reference/options.md``. ``--check`` only compares.
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
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
from kafkaio._config.declaration import Option, option_of

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
#: Defaults that the page does not show as they are.
_DEFAULTS: Final = {
    "bootstrap_servers": '"localhost:9092"',
    "retries": "2147483647",
}
#: Types that the page shows by another name, or with the path that leads to them.
_PATHS: Final = {
    "AllowedHosts": "~collections.abc.Collection[str] | "
    "~collections.abc.Callable[[str, int], bool]",
    "Deserializer": "~kafkaio.serde.DeserializerLike",
    "MaxVersions": "~collections.abc.Mapping[str, int] | str",
    "OffsetStore": "~kafkaio.OffsetStore",
    "Partitioner": "~collections.abc.Callable[[str, bytes | None, bytes | None, int], "
    "int]",
    "Sequence": "~collections.abc.Sequence",
    "Serializer": "~kafkaio.serde.SerializerLike",
    "TokenProvider": "~collections.abc.Callable[[], "
    "~collections.abc.Awaitable[~kafkaio.types.Token]]",
    "ssl.SSLContext": "~ssl.SSLContext",
    "timedelta": "~datetime.timedelta",
}
_INDENT: Final = " " * 3
_DEEP: Final = " " * 6
_NAME: Final = re.compile(r"(?<!\")\b(?:ssl\.)?[A-Za-z]+\b(?!\")")
#: The greatest value of an option that has no limit of its own.
_NO_LIMIT: Final = 2**31 - 1


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


def described(config: Config) -> str:
    """Return the options that a class declares itself, as directives of Sphinx."""
    kind = config.__name__.removesuffix("Config")
    summary, _, _ = str(config.__doc__).partition("Attributes:")
    parts = [
        "```{eval-rst}",
        f".. py:class:: kafkaio.{config.__name__}",
        "",
        textwrap.indent(inspect.cleandoc(summary).strip(), _INDENT),
        "",
        *_index(config),
        "",
    ]
    for declared in _own(config):
        parts += _described_option(f"kafkaio.{config.__name__}", declared)
    parts += [
        f".. py:class:: kafkaio.{kind}Options",
        "",
        f"{_INDENT}The same as a `typing.TypedDict`: the type of ``**options`` of",
        f"{_INDENT}`kafkaio.{kind}`.",
        "```",
    ]
    return "\n".join(parts)


def _index(config: Config) -> list[str]:
    """Return a paragraph of links to the options."""
    names = [
        f"`~kafkaio.{config.__name__}.{declared.name}`" for declared in _own(config)
    ]
    text = ", ".join(names)
    return textwrap.wrap(text, 88, initial_indent=_INDENT, subsequent_indent=_INDENT)


def _described_option(owner: str, declared: Field[Any]) -> Iterable[str]:
    option, name = option_of(declared), declared.name
    yield f"{_INDENT}.. py:attribute:: {owner}.{name}"
    yield f"{_DEEP}:type: {_shown_type(declared)}"
    yield f"{_DEEP}:value: {_DEFAULTS.get(name) or _shown_default(declared.default)}"
    yield ""
    yield from textwrap.wrap(
        option.doc, 88, initial_indent=_DEEP, subsequent_indent=_DEEP
    )
    yield ""
    yield _DEEP + " ".join(_facts(name, option))
    yield ""


def _facts(name: str, option: Option) -> Iterable[str]:
    """What a reader may want to know beside the meaning, in short sentences."""
    if option.bounds is not None:
        yield _shown_range(*option.bounds)
    kafka_name = option.kafka_name or name.replace("_", ".")
    yield "kafkaio's own." if option.is_own else f"Java: ``{kafka_name}``."
    if option.aliases:
        aliases = ", ".join(f"``{alias}``" for alias in option.aliases)
        yield f"librdkafka: {aliases}."


def _shown_type(declared: Field[Any]) -> str:
    shown = _keyword_type(declared)
    if declared.name == "bootstrap_servers":
        shown = "str | Sequence[str]"
    elif found := re.fullmatch(r"Literal\[(.*)\]( \| \w+)?", shown):
        shown = found[1].replace(", ", " | ") + (found[2] or "")
    return _NAME.sub(lambda name: _PATHS.get(name[0], name[0]), shown)


def _shown_default(value: object) -> str:
    if type(value) is int and abs(value) >= 10_000:
        return f"{value:_}"
    return _quoted(value)


def _shown_range(low: float, high: float) -> str:
    if high >= _NO_LIMIT:
        return f"At least {int(low):,}."
    return f"{int(low):,} to {int(high):,}."


def updated(page: str) -> str:
    """Return the page with its options as they are to be."""
    for config in (
        ClientConfig,
        ProducerConfig,
        ConsumerConfig,
        ShareConsumerConfig,
    ):
        page = with_part(page, "options", config.__name__, described(config))
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
