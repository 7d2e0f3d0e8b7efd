"""Write the Python source of the message modules."""

from __future__ import annotations

import re

from codegen.facts import PRIMITIVES, FieldFact, MessageFact, StructFact, snake
from codegen.names import class_names, public_names

__all__ = ["SECRETS", "message_module", "module_of", "package_init"]

#: Fields that hold credentials: never part of a repr, so never part of a log line.
SECRETS = frozenset({"auth_bytes", "hmac", "salted_password", "salt"})
#: Requests whose field ``value`` may be a password in a broker's configuration.
SECRET_VALUES = frozenset({"AlterConfigsRequest", "IncrementalAlterConfigsRequest"})

_ANNOTATION = {
    "bool": "bool",
    "float64": "float",
    "uuid": "UUID",
    "string": "str",
    "bytes": "bytes",
    "records": "Buffer",
}
_ZERO = {
    "bool": "False",
    "float64": "0.0",
    "uuid": "ZERO_UUID",
    "string": '""',
    "bytes": 'b""',
    "records": 'b""',
}


def module_of(message: str) -> str:
    """Return the module of a message: requests share one with their responses."""
    return snake(re.sub(r"(?<!Header)(?:Request|Response)$", "", message))


def message_module(messages: list[MessageFact]) -> str:
    """Return the source of one module: a request and its response, or a data type."""
    ordered = sorted(messages, key=lambda m: m.kind == "request")
    names = class_names(ordered)
    body: list[str] = []
    for message in ordered:
        for struct in message.structs:
            body += _struct(message, struct, names)
        body += _message(message, names)
    exported = sorted([*names.values(), *(m.name for m in ordered)])
    if len(set(exported)) != len(exported):
        raise ValueError(f"two classes of one name in {exported}")
    text = "\n".join(body)
    head = [f'"""{_title(ordered)}"""', "", "from __future__ import annotations", ""]
    return "\n".join([*head, *_imports(text), "", _all(exported), "", "", text])


def package_init(groups: dict[str, list[MessageFact]]) -> str:
    """Return the source of the package: every class, imported when first named.

    Args:
        groups: the messages of each module.
    """
    tops = {m.name: (module, m.name) for module, ms in groups.items() for m in ms}
    classes = {module: class_names(messages) for module, messages in groups.items()}
    homes = {**tops, **public_names(classes, tops)}
    pairs = sorted(homes.items())
    imports = [
        f"    from kafkaio.protocol.messages.{module} import {_aliased(inner, name)}"
        for name, (module, inner) in pairs
    ]
    table = [f'    "{name}": ("{home[0]}", "{home[1]}"),' for name, home in pairs]
    return "\n".join(
        [
            _PACKAGE_DOC,
            "from __future__ import annotations",
            "",
            "from importlib import import_module",
            "from typing import TYPE_CHECKING",
            "",
            "if TYPE_CHECKING:",
            *imports,
            "",
            _all([name for name, _ in pairs]),
            "",
            "#: The module of each class, and the name it has there.",
            "_HOMES = {",
            *table,
            "}",
            "",
            "",
            "def __getattr__(name: str) -> object:",
            "    home = _HOMES.get(name)",
            "    if home is None:",
            '        raise AttributeError(f"{__name__} has no message {name!r}")',
            '    module = import_module(f"{__name__}.{home[0]}")',
            "    found: object = getattr(module, home[1])",
            "    globals()[name] = found",
            "    return found",
            "",
            "",
            "def __dir__() -> list[str]:",
            "    return sorted({*globals(), *_HOMES})",
            "",
        ]
    )


def _aliased(inner: str, name: str) -> str:
    return name if inner == name else f"{inner} as {name}"


_PACKAGE_DOC = '''"""Kafka's messages as dataclasses, written by ``python -m codegen``.

Every message, and every struct inside one, is a name of this package; its module is
imported when it is first used::

    request = messages.OffsetFetchRequest(
        groups=[messages.OffsetFetchRequestGroup(group_id="billing", topics=None)]
    )

One module per API, named after it in snake case, holds the request, the response and
the structs inside them. A struct keeps the name it has in Kafka's schema. Where that
name is not unique, the name of the struct's message precedes it:

- In a module, if both messages have a struct of that name, or it is the name of a
  message there: ``JoinGroupRequestProtocol``.
- In this package, if structs of several modules have that name: ``FetchPartition`` of
  the module ``fetch`` is ``FetchRequestFetchPartition`` here, because ``share_fetch``
  has a ``FetchPartition`` too. The class is the same, and its ``repr`` shows the name
  that it has in its module.

The classes are slotted and take keywords only, but are not frozen: decoding assigns
the fields one by one, which is several times faster than going through a frozen
``__init__``. Every field has a default: Kafka's, or else the zero of its type. A field
that the version on the wire does not have decodes to its default.
"""
'''


def _title(messages: list[MessageFact]) -> str:
    last = messages[-1]
    names = " and ".join(m.name for m in reversed(messages))
    key = "" if last.api_key is None else f" (API key {last.api_key})"
    return f"{names}{key}, versions {last.versions[0]} to {last.versions[1]}."


def _imports(text: str) -> list[str]:
    known = {
        "kafkaio._dataclass": ("dataclass",),
        "kafkaio.protocol._message": (
            "ZERO_UUID",
            "Buffer",
            "Buffers",
            "Data",
            "Field",
            "Header",
            "Request",
            "Response",
            "Struct",
        ),
    }
    lines = ["from typing import ClassVar"]
    if "= field(" in text:
        lines.insert(0, "from dataclasses import field")
    if re.search(r": UUID\b|list\[UUID\]", text):
        lines.append("from uuid import UUID")
    lines.append("")
    for module, names in known.items():
        used = [n for n in names if re.search(rf"(?<![\w.\"]){n}(?![\w\"])", text)]
        if used:
            lines.append(f"from {module} import {', '.join(used)}")
    return lines


def _all(names: list[str]) -> str:
    return "__all__ = [" + ", ".join(f'"{name}"' for name in names) + ",]"


Names = dict[tuple[str, str], str]


def _struct(message: MessageFact, struct: StructFact, names: Names) -> list[str]:
    name = names[message.name, struct.name]
    lines = _class(name, "Struct")
    doc = f"Part of {message.name}."
    return [*lines, f'    """{doc}"""', *_fields(message, struct.fields, names)]


def _message(message: MessageFact, names: Names) -> list[str]:
    base = message.kind.capitalize()
    reply = message.name.removesuffix("Request") + "Response"
    if base == "Request":
        base = f"Request[{reply}]"
    lines = _class(message.name, base)
    first, last = message.versions
    key = "" if message.api_key is None else f", API key {message.api_key}"
    lines.append(f'    """Versions {first} to {last}{key}."""')
    if message.api_key is not None:
        lines.append(f"    API_KEY: ClassVar[int] = {message.api_key}")
    lines += [
        f'    NAME: ClassVar[str] = "{message.name}"',
        f"    MIN_VERSION: ClassVar[int] = {first}",
        f"    MAX_VERSION: ClassVar[int] = {message.stable}",
        f"    LAST_VERSION: ClassVar[int] = {last}",
        f"    FLEXIBLE_FROM: ClassVar[int | None] = {message.flexible_from}",
        *_fields(message, message.fields, names),
    ]
    if message.kind == "request":
        lines += [
            "    @classmethod",
            f"    def response_type(cls) -> type[{reply}]:",
            f'        """Return {reply}."""',
            f"        return {reply}",
        ]
    return lines


def _class(name: str, base: str) -> list[str]:
    return [
        "",
        "",
        "@dataclass(slots=True, kw_only=True)",
        f"class {name}({base}):",
    ]


def _fields(
    message: MessageFact, fields: tuple[FieldFact, ...], names: Names
) -> list[str]:
    if not fields:
        return ["    SCHEMA: ClassVar[tuple[Field, ...]] = ()", ""]
    lines = ["    SCHEMA: ClassVar[tuple[Field, ...]] = ("]
    lines += [f"        {_schema(message, fact, names)}," for fact in fields]
    lines += ["    )", ""]
    lines += [f"    {_attribute(message, fact, names)}" for fact in fields]
    return lines


def _schema(message: MessageFact, fact: FieldFact, names: Names) -> str:
    kind = (
        f'"{fact.type}"' if fact.type in PRIMITIVES else names[message.name, fact.type]
    )
    parts = [f'"{fact.name}"', kind, repr(fact.versions)]
    if fact.array:
        parts.append("array=True")
    if fact.nullable:
        parts.append(f"nullable={fact.nullable}")
    if fact.tagged:
        parts += [f"tag={fact.tag}", f"tagged={fact.tagged}"]
    if fact.default != ():
        parts.append(f"default={_literal(fact.default)}")
    if fact.ignorable:
        parts.append("ignorable=True")
    if not fact.flexible:
        parts.append("flexible=False")
    return f"Field({', '.join(parts)})"


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _attribute(message: MessageFact, fact: FieldFact, names: Names) -> str:
    if fact.type == "records" and message.kind == "request":
        kind = "Buffers"
    elif fact.type in PRIMITIVES:
        kind = _ANNOTATION.get(fact.type, "int")
    else:
        kind = names[message.name, fact.type]
    if fact.array:
        kind = f"list[{kind}]"
    if fact.nullable or fact.default is None:
        kind += " | None"
    return f"{fact.name}: {kind} = {_initial(message, fact, kind)}"


def _initial(message: MessageFact, fact: FieldFact, kind: str) -> str:
    secret = fact.name in SECRETS or (
        fact.name == "value" and message.name in SECRET_VALUES
    )
    if fact.default is None:
        return "field(default=None, repr=False)" if secret else "None"
    if fact.array:
        return "field(default_factory=list)"
    if fact.type not in PRIMITIVES:
        return f"field(default_factory={kind.removesuffix(' | None')})"
    value = _ZERO.get(fact.type, "0")
    if fact.default != ():
        value = _literal(fact.default)
    return f"field(default={value}, repr=False)" if secret else value
