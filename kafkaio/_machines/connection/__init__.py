"""One connection to a broker as a pure machine: no socket, no clock.

``machine`` has the machine that the driver uses, ``states`` its table, ``handshake``
the negotiation of versions, ``pipeline`` the requests in flight, ``large_answers``
those that are decoded in slices, and ``throttle`` the rule by which a quota makes the
client pause.
"""
