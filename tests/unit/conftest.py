"""What all unit tests share."""

import gc
import os

#: A worker of pytest-xdist is measured; the programs that its tests start are not, as
#: without workers.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.pop("COVERAGE_PROCESS_CONFIG", None)


def pytest_collection_finish() -> None:
    """Leave what collecting made to itself.

    Thousands of test items would be looked at by every garbage collection of every
    test; they took a fifth of the suite's time.
    """
    gc.collect()
    gc.freeze()
