"""What all unit tests share."""

import gc
import os

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes tells how busy the machine is, not whether code is right.
settings.register_profile(
    "default", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
#: What each change runs. Without it, as at night, hypothesis tries a hundred examples
#: of what asks for no number.
settings.register_profile("change", settings.get_profile("default"), max_examples=50)
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


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Leave what a module has made and nobody dropped to itself, too.

    Modules that were loaded, caches and reports grow with every test. A test that
    collects garbage a hundred times took 14 s behind all others, and 0.3 s alone.
    """
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()
