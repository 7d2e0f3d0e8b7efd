"""Kafka's messages as dataclasses, written by ``python -m codegen``.

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

from __future__ import annotations

from importlib import import_module


def __getattr__(name: str) -> object:
    # The table is as large as the modules of ten APIs: programs that
    # import these modules never load it.
    if name == "__all__" or name[:1].isupper():
        from kafkaio.protocol.messages._homes import HOMES

        if name == "__all__":
            return list(HOMES)
        if name in HOMES:
            module, inner = HOMES[name]
            home = import_module(f"{__name__}.{module}")
            kind: object = getattr(home, inner)
            globals()[name] = kind
            return kind
    raise AttributeError(f"{__name__} has no message {name!r}")


def __dir__() -> list[str]:
    from kafkaio.protocol.messages._homes import HOMES

    return sorted({*globals(), *HOMES})
