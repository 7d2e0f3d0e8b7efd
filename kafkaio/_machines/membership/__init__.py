"""Group membership as pure machines.

``protocol`` has the interface of a member's machine; ``classic`` and ``kip848``
implement it, each with a table of states. ``effects`` are what a machine asks its
caller to do, ``ledger`` tracks the revocation of each assignment (KIP-983),
``heartbeat`` has the timers, ``subscription`` what members tell each other, and
``assignors`` the arithmetic of a classic group's leader.
"""
