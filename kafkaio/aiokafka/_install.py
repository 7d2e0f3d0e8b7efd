"""`install`: libraries that import aiokafka get this package."""

from __future__ import annotations

import sys

from kafkaio._public import public
from kafkaio.errors import UsageError

_HERE = "kafkaio.aiokafka"
_THERE = "aiokafka"


@public(_HERE)
def install() -> None:
    """Put this package in the place of aiokafka, for the rest of the process.

    From then on ``import aiokafka``, and the import of each of its modules, gives the
    modules of ``kafkaio.aiokafka``, whether aiokafka is installed or not. If it is not,
    ``importlib.metadata`` finds a distribution ``aiokafka`` nevertheless, because
    libraries ask for its version.

    Call it before anything imports aiokafka, as the first thing that a program does.
    A second call has no effect. It holds for this process and those forked from it;
    one that is spawned calls it by itself.

    Raises:
        UsageError: another aiokafka is imported already. Its classes are in use by
            then, and objects of both would meet.
    """
    package = sys.modules[_HERE]
    if sys.modules.get(_THERE) is package:
        return
    found = min(_imported(), default=None)
    if found is not None:
        where = getattr(sys.modules[found], "__file__", None) or "without a file"
        raise UsageError(
            f"{found} is imported already ({where}): call kafkaio.aiokafka.install() "
            "before anything imports aiokafka, or start the program with "
            "python -m kafkaio.aiokafka"
        )
    # Not loaded by programs that import kafkaio.aiokafka by its own name.
    from kafkaio.aiokafka._finder import FINDER

    sys.meta_path.insert(0, FINDER)
    sys.modules[_THERE] = package


@public(_HERE)
def uninstall() -> None:
    """Undo `install`, for tests: aiokafka is then imported as if nothing had been.

    What was imported meanwhile keeps the classes that it has.
    """
    if sys.modules.get(_THERE) is not sys.modules[_HERE]:
        return
    from kafkaio.aiokafka._finder import FINDER

    sys.meta_path.remove(FINDER)
    for name in _imported():
        del sys.modules[name]


def _imported() -> list[str]:
    """Return the names in ``sys.modules`` that are aiokafka's."""
    return [name for name in sys.modules if f"{name}.".startswith(f"{_THERE}.")]
