"""How a release is made: its version, its notes, its files (ADR 77).

`nox -s release` builds and checks one, and publishes nothing.
"""
