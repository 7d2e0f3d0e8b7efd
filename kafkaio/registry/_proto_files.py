"""Which messages a schema of Protobuf has, in which order.

A registry has a file of Protobuf as text, as Java registers it, or as the descriptor of
the file in base64, as Python does. Message indexes count its messages, so this is all
that a serde has to know of it: the generated class has the rest.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from typing import Any

from kafkaio._dataclass import dataclass
from kafkaio.errors import SchemaError
from kafkaio.registry._wire import MOST_INDEXES

_TOKEN = re.compile(
    r"""
    //[^\n]* | /\*.*?\*/                # comments
    | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
    | [A-Za-z_][A-Za-z0-9_.]*
    | [{};]
    """,
    re.VERBOSE | re.DOTALL,
)
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*")


@dataclass(slots=True, eq=False)
class MessageTree:
    """A message, or a file, and the messages in it.

    A map is a field, and in a descriptor a message, too: its entry. Python counts
    entries among the messages, and Java, which works on the text, does not.

    Attributes:
        name: its name; empty for a file.
        messages: those in it, in the order of the file, with the entries of maps.
        is_entry: whether it is the entry of a map.
        is_text: whether the file is text.
        package: the package of a file.
    """

    name: str
    messages: list[MessageTree]
    is_entry: bool = False
    is_text: bool = False
    package: str = ""

    def names(self, indexes: Sequence[int]) -> set[str]:
        """Return the names to which indexes can lead, such as ``Order.Line``."""
        found = (self._name(indexes, counts_entries=each) for each in (True, False))
        return {name for name in found if name}

    def _name(self, indexes: Sequence[int], *, counts_entries: bool) -> str:
        tree, names = self, []
        for index in indexes:
            messages = tree._counted(counts_entries=counts_entries)
            if not 0 <= index < len(messages):
                return ""
            tree = messages[index]
            names.append(tree.name)
        return ".".join(names)

    def _counted(self, *, counts_entries: bool) -> list[MessageTree]:
        if counts_entries:
            return self.messages
        return [each for each in self.messages if not each.is_entry]

    def indexes(self, name: str) -> tuple[int, ...] | None:
        """Return the indexes that lead to a name, without the package."""
        tree, found = self, []
        for part in name.split("."):
            messages = tree._counted(counts_entries=not self.is_text)
            names = [each.name for each in messages]
            if part not in names:
                return None
            found.append(names.index(part))
            tree = messages[found[-1]]
        return tuple(found)


def messages_of(text: str) -> MessageTree:
    """Return the messages of a schema.

    Args:
        text: the schema: the text of a file, or its descriptor in base64.

    Raises:
        SchemaError: it is neither.
    """
    if _BASE64.fullmatch(text):
        return _of_descriptor(text)
    return _of_text(text)


def _of_descriptor(text: str) -> MessageTree:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError

    try:
        file = FileDescriptorProto.FromString(base64.b64decode(text, validate=False))
    except (DecodeError, binascii.Error, ValueError) as error:
        raise SchemaError("", f"is not valid Protobuf: {error}") from error
    messages = _of_messages(file.message_type, 0)
    return MessageTree("", messages, package=file.package)


def _of_messages(messages: Any, depth: int) -> list[MessageTree]:
    if depth > MOST_INDEXES:
        raise SchemaError("", "is not valid Protobuf: messages nest too deeply")
    return [
        MessageTree(
            each.name,
            _of_messages(each.nested_type, depth + 1),
            is_entry=each.options.map_entry,
        )
        for each in messages
    ]


def _of_text(text: str) -> MessageTree:
    """Find the messages of a file without reading what else it says.

    A message is the word ``message`` and a name at the begin of a statement, in the
    file or in a message; so is a group. Other blocks contain none, but for ``oneof``.
    """
    file = MessageTree("", [], is_text=True)
    # None for a block that is no message.
    open_blocks: list[MessageTree | None] = [file]
    statement: list[str] = []
    for word in _tokens(text):
        if word not in "{};":
            statement.append(word)
            continue
        if word == "{":
            open_blocks.append(_open_block(open_blocks[-1], statement))
        elif word == "}":
            open_blocks.pop()
        else:
            _end_statement(file, open_blocks[-1], statement)
        if not 0 < len(open_blocks) <= MOST_INDEXES:
            raise SchemaError("", "is not valid Protobuf: its braces do not match")
        statement = []
    if len(open_blocks) > 1 or not (file.messages or "syntax" in text):
        raise SchemaError("", "is not valid Protobuf: no complete file")
    return file


def _open_block(
    within: MessageTree | None, statement: Sequence[str]
) -> MessageTree | None:
    if within is None or len(statement) < 2:
        return None
    if statement[0] == "oneof":
        return within
    place = statement.index("group") if "group" in statement[:2] else 0
    if statement[place] not in ("message", "group") or len(statement) <= place + 1:
        return None
    made = MessageTree(statement[place + 1], [])
    within.messages.append(made)
    return made


def _end_statement(
    file: MessageTree, within: MessageTree | None, statement: Sequence[str]
) -> None:
    if statement[:1] == ["package"] and len(statement) == 2:
        file.package = statement[1]
    elif statement[:1] == ["map"] and len(statement) >= 4 and within is not None:
        # The name that protoc gives it.
        entry = "".join(part[:1].upper() + part[1:] for part in statement[3].split("_"))
        within.messages.append(MessageTree(f"{entry}Entry", [], is_entry=True))


def _tokens(text: str) -> Iterator[str]:
    for found in _TOKEN.finditer(text):
        if found[0][0] not in "/\"'":
            yield found[0]
