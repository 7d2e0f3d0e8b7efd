"""How long tests wait for what has to come.

A test that passes takes no longer for it: this is the time after which something is
taken to hang. On a machine that is busy with other work everything takes ten times as
long and more, so a limit that says "quick" says nothing about kafkaio. What has to be
quick is shown by a count, by CPU time or on the clock of the simulation, or at night.
"""

from typing import Final

#: Seconds.
HANGS: Final = 300.0
#: Milliseconds, for a limit of kafkaio's that a test is not to wait for: who waits for
#: it hangs.
NEVER_MS: Final = 1_000_000
