"""Give every generated class a name of its own, in its module and in the package."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from codegen.facts import MessageFact

__all__ = ["class_names", "public_names"]


def class_names(messages: list[MessageFact]) -> dict[tuple[str, str], str]:
    """Map (message, struct name in the schema) to the class name in the module.

    A struct keeps its name, unless a sibling message in the same module has a struct
    of that name too, or it is the name of a message in the module: then it is prefixed
    with its message's name. The rule looks at names alone, so the result is stable.
    """
    tops = {message.name for message in messages}
    users: dict[str, int] = {}
    for message in messages:
        for struct in message.structs:
            users[struct.name] = users.get(struct.name, 0) + 1
    return {
        (message.name, struct.name): (
            f"{message.name}{struct.name}"
            if users[struct.name] > 1 or struct.name in tops
            else struct.name
        )
        for message in messages
        for struct in message.structs
    }


def public_names(
    modules: dict[str, dict[tuple[str, str], str]], tops: Collection[str]
) -> dict[str, tuple[str, str]]:
    """Name the structs of all modules in the package that holds the modules.

    A struct has the name of its class, unless classes of several modules have it or it
    is the name of a message: then the name of the struct's message precedes it.

    Args:
        modules: what `class_names` returned, for each module.
        tops: the names of all messages.

    Returns:
        The module of each public name, and the name of the class there.

    Raises:
        ValueError: if two classes would have one name.
    """
    users = Counter(tops)
    users.update(name for names in modules.values() for name in names.values())
    found: dict[str, tuple[str, str]] = {}
    for module, names in modules.items():
        for (message, _), name in names.items():
            public = name if users[name] == 1 else f"{message}{name}"
            if public in found or public in tops:
                raise ValueError(f"two classes would have the name {public}")
            found[public] = (module, name)
    return found
