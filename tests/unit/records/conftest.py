"""The twins of the record codec, as one fixture that runs each test on both."""

from __future__ import annotations

import importlib
import importlib.util
import os
from types import ModuleType

import pytest

COMPILED = "kafkaio._records._speedups"
NOT_BUILT = (
    "the compiled codec is not built here: run `pip install -e .` with a C compiler"
)


def compiled_codec() -> ModuleType:
    if importlib.util.find_spec(COMPILED) is None:
        if os.environ.get("KAFKAIO_CODEC") == "compiled":
            pytest.fail(NOT_BUILT)
        pytest.skip(NOT_BUILT)
    return importlib.import_module(COMPILED)


@pytest.fixture(scope="module", params=["python", "compiled"])
def codec(request: pytest.FixtureRequest) -> ModuleType:
    if request.param == "compiled":
        return compiled_codec()
    return importlib.import_module("kafkaio._records._pure")


@pytest.fixture(scope="module")
def twins() -> tuple[ModuleType, ModuleType]:
    return importlib.import_module("kafkaio._records._pure"), compiled_codec()
