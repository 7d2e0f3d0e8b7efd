"""Give every class in a generated module a name of its own."""

from __future__ import annotations

from codegen.facts import MessageFact

__all__ = ["class_names"]


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
