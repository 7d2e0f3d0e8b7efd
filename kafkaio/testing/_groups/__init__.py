"""Group coordination in the embedded broker: classic groups, KIP-848 groups, offsets.

``classic`` and ``kip848`` are pure state machines of one group. ``coordinator`` drives
them with timers and writes what changes to ``__consumer_offsets`` (``journal``).
``mixed`` and ``migration`` are for groups that change from one protocol to the other.
"""
