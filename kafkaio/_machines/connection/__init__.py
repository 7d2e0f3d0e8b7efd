"""One connection to a broker as a pure machine: no socket, no clock.

``machine`` has the machine that the driver uses, ``states`` its table, ``handshake``
what comes before the first request, ``pipeline`` the requests in flight, and
``throttle`` the rule by which a broker's quota makes the client pause.
"""
