"""``python -m kafkaio.aiokafka``: run a program with this package as its aiokafka.

The program is named as for Python itself: a file or a folder, ``-m module`` or
``-c code``, and then its arguments.
"""

from __future__ import annotations

import os
import runpy
import sys
from types import ModuleType

from kafkaio.aiokafka._install import install

_USAGE = """\
usage: python -m kafkaio.aiokafka (program.py | -m module | -c code) [arguments]

Runs a Python program that imports aiokafka on kafkaio.
"""


def main(arguments: list[str]) -> None:
    """Run the program.

    Args:
        arguments: those of the command line, without its own name.
    """
    kind, name, rest = _parsed(arguments)
    install()
    if kind == "-m":
        # Python has put the current folder first, as for every ``-m``.
        sys.argv = [name, *rest]
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv = ["-c", *rest]
        sys.path[0] = ""
        module = ModuleType("__main__")
        sys.modules["__main__"] = module
        exec(compile(name, "<string>", "exec"), vars(module))  # noqa: S102 - as python -c
    else:
        sys.argv = [name, *rest]
        # Of a folder or an archive, runpy makes the first entry itself.
        sys.path[0] = os.path.dirname(os.path.realpath(name))
        runpy.run_path(name, run_name="__main__")


def _parsed(arguments: list[str]) -> tuple[str, str, list[str]]:
    """Return how the program is named, its name and its arguments."""
    first, *rest = arguments or [""]
    if first in {"-h", "--help"}:
        sys.stdout.write(_USAGE)
        raise SystemExit(0)
    kind = first[:2] if first.startswith(("-m", "-c")) else ""
    name = first[2:] if kind else first
    if kind and not name and rest:
        name, *rest = rest
    if not name or (not kind and name.startswith("-")):
        sys.stderr.write(_USAGE)
        raise SystemExit(2)
    return kind, name, rest


if __name__ == "__main__":
    main(sys.argv[1:])
