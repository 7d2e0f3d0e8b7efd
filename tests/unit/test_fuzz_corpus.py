"""Every input that fuzzing once broke something with, and the ones that it begins with.

`nox -s fuzz` looks for more.
"""

import pytest

from tests.fuzz.__main__ import CORPUS
from tests.fuzz.targets import TARGETS, seeds


@pytest.mark.parametrize("target", TARGETS)
def test_the_corpus_breaks_nothing(target: str) -> None:
    found = [path.read_bytes() for path in sorted((CORPUS / target).glob("*"))]
    inputs = [b"", *seeds(target), *found]
    assert len(inputs) > 1
    for data in inputs:
        TARGETS[target](data)  # it raises what is not documented
