"""The commands that need no cluster and no extra: ``broker`` and ``log``."""
