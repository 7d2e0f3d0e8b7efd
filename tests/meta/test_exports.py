"""The public surface: a name that comes or goes does so on purpose."""

from __future__ import annotations

import ast
import inspect
import pickle
import pickletools
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import kafkaio
from kafkaio import errors, types
from kafkaio._records._impl import converted
from kafkaio.protocol import messages as messages_of_protocol

ROOT = Path(kafkaio.__file__).parent
#: The modules that users may import. Each message has one of its own, too.
PROMISED = [
    *("kafkaio", "kafkaio.admin", "kafkaio.arrow", "kafkaio.errors", "kafkaio.metrics"),
    "kafkaio.metrics.instrumentation",
    *("kafkaio.metrics.opentelemetry", "kafkaio.metrics.prometheus"),
    *("kafkaio.protocol", "kafkaio.protocol.messages", "kafkaio.registry"),
    *("kafkaio.security", "kafkaio.serde"),
    *("kafkaio.spark", "kafkaio.testing", "kafkaio.testing.kafka"),
    *("kafkaio.testing.pytest_plugin", "kafkaio.types"),
]
MESSAGES = "kafkaio.protocol.messages"
#: It has one module for each of aiokafka's; tests/unit/aiokafka/ compares them.
AIOKAFKA = "kafkaio.aiokafka"
#: Modules that are imported for type checkers alone, because they load slowly.
FOR_TYPES_ALONE = {"Client", "ClientConfig", "pa", "ssl"}
#: Packages that are only the place of others.
EMPTY = {"kafkaio.metrics"}
#: Packages with a stub.
LAZY = [
    "kafkaio",
    "kafkaio.protocol",
    "kafkaio.registry",
    "kafkaio.security",
    "kafkaio.spark",
    "kafkaio.testing",
]


def modules() -> Iterator[str]:
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        yield ".".join(part for part in parts if part != "__init__")


def is_private(module: str) -> bool:
    return any(part.startswith("_") for part in module.split("."))


PROMISED += sorted(
    name
    for name in modules()
    if f"{name}.".startswith(f"{AIOKAFKA}.") and not is_private(name)
)
#: Each module, and its public names. PySpark is not there where most tests run; the
#: tests of `kafkaio.spark` load its names.
NAMES = {
    module: getattr(import_module(module), "__all__", ())
    for module in PROMISED
    if module != MESSAGES and (module != "kafkaio.spark" or find_spec("pyspark"))
}


def defined(module: str) -> Iterator[tuple[str, Any]]:
    """The classes and functions of kafkaio that a promised module lists."""
    for name in NAMES[module]:
        value = getattr(import_module(module), name)
        is_ours = getattr(value, "__module__", "").startswith("kafkaio")
        if is_ours and (inspect.isclass(value) or inspect.isfunction(value)):
            yield name, value


def test_every_import_path_says_whether_it_is_promised() -> None:
    found = {name for name in modules() if not is_private(name)}
    messages = {name for name in found if name.startswith(f"{MESSAGES}.")}
    assert messages
    assert found - messages == set(PROMISED)


@pytest.mark.parametrize("module", PROMISED)
def test_a_promised_module_lists_its_names(module: str) -> None:
    assert hasattr(import_module(module), "__all__") is (module not in EMPTY)


def test_a_private_module_has_no_list_of_names() -> None:
    listed = re.compile(r"^__all__\b", re.MULTILINE)
    for path in ROOT.rglob("*.py"):
        if is_private(".".join(path.relative_to(ROOT).with_suffix("").parts)):
            if path.name == "__init__.py" and not is_private(path.parent.name):
                continue
            assert not listed.search(path.read_text("utf-8")), path


@pytest.mark.parametrize("module", NAMES)
def test_a_public_name_shows_its_public_path(module: str) -> None:
    for name in NAMES[module]:
        value = getattr(import_module(module), name)
        assert value is getattr(import_module(module), name), name
    for name, value in defined(module):
        shown = value.__module__
        assert shown in PROMISED, name
        assert getattr(import_module(shown), value.__qualname__) is value, name
        if name in kafkaio.__all__ and value is getattr(kafkaio, name):
            assert shown == "kafkaio", name


def test_a_message_shows_the_module_of_its_own() -> None:
    for name in messages_of_protocol.__all__:
        value = getattr(messages_of_protocol, name)
        assert value.__module__.rpartition(".")[0] == MESSAGES
        found = getattr(import_module(value.__module__), value.__qualname__)
        assert found is value


@pytest.mark.parametrize("module", NAMES)
def test_a_pickle_names_public_paths(module: str) -> None:
    for name, value in defined(module):
        pickled = pickle.dumps(value, 2)
        assert pickle.loads(pickled) is value, name
        assert not any(map(is_private, globals_of(pickled))), name


def globals_of(pickled: bytes) -> set[str]:
    """The modules that a pickle of protocol 2 imports from."""
    found = pickletools.genops(pickled)
    return {str(arg).split(" ")[0] for code, arg, _ in found if code.name == "GLOBAL"}


@pytest.mark.parametrize("key", [b"k", "k", None])
def test_a_pickled_record_names_public_paths(key: Any) -> None:
    record = kafkaio.Record("t", 0, 1, 2, None, b"v", [("h", b"x")])
    record = converted(record, key, b"v")
    pickled = pickle.dumps(record, 2)
    assert pickle.loads(pickled) == record
    # Pickles keep their names when private modules move.
    assert globals_of(pickled) <= {"kafkaio", "__builtin__", "_codecs"}


@pytest.mark.parametrize("module", [m for m in NAMES if m != "kafkaio.spark"])
def test_type_hints_are_found(module: str) -> None:
    for _, value in defined(module):
        try:
            get_type_hints(value)
        except NameError as error:
            if error.name not in FOR_TYPES_ALONE:
                raise


NAMED = {
    id(getattr(import_module(module), name))
    for module, names in NAMES.items()
    for name in names
} | {id(kind) for kind in vars(messages_of_protocol).values()}


def signatures(kind: type) -> Iterator[tuple[str, object]]:
    """The types in what users see of a class, its fields and the bases' included."""
    for base in kind.__mro__:
        if not base.__module__.startswith("kafkaio"):
            continue
        with suppress(NameError):  # of a library that is imported for types alone
            yield from get_type_hints(base).items()
        for name, value in vars(base).items():
            if name.startswith("_") and name != "__aiter__":
                continue
            function = value.fget if isinstance(value, property) else value
            function = getattr(function, "__func__", function)
            if inspect.isfunction(function):
                with suppress(NameError):
                    for hint in get_type_hints(function).values():
                        yield name, hint


def types_of(hint: object) -> Iterator[type]:
    if isinstance(hint, type) and hint.__module__.startswith("kafkaio"):
        yield hint
    for part in get_args(hint):
        for each in part if isinstance(part, list | tuple) else [part]:
            yield from types_of(each)


#: What the embedded broker calls of its own parts, and how a cluster is run.
INSIDE = {
    *("Acl.concerns", "AclStore.allows", "AclStore.allows_any", "Credentials.get"),
    *("PushedTelemetry.get", "PushedTelemetry.push"),
    *("Credentials.put", "Kafka.engine", "Kafka.on", "Security.mechanism"),
    *("Security.session", "Topic.partitions", "TopicSettings.log_config"),
}


@pytest.mark.parametrize("module", NAMES)
def test_every_type_of_a_public_signature_has_a_public_name(module: str) -> None:
    unnamed = {
        f"{kind.__module__}.{kind.__qualname__} in {name}.{where}"
        for name, value in defined(module)
        if inspect.isclass(value)
        for where, hint in signatures(value)
        if not where.startswith("_") or where == "__aiter__"
        if not (module.startswith("kafkaio.testing") and f"{name}.{where}" in INSIDE)
        for kind in types_of(hint)
        if id(kind) not in NAMED
    }
    assert not unnamed


@pytest.mark.parametrize("package", LAZY)
def test_the_stub_says_what_the_package_has(package: str) -> None:
    module = import_module(package)
    stub = Path(str(module.__file__)).with_suffix(".pyi").read_text("utf-8")
    shown: set[str] = set()
    for node in ast.parse(stub).body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                assert alias.asname in {alias.name, None}
                shown |= {alias.name} - {"*"}
                if alias.name == "*":
                    shown |= set(import_module(str(node.module)).__all__)
    assert shown == set(module.__all__) | (
        set(import_module("kafkaio.admin").__all__) if package == "kafkaio" else set()
    )
    assert shown <= set(dir(module))


def test_the_errors_are_names_of_the_package() -> None:
    assert set(errors.__all__) < set(kafkaio.__all__)
    for name in errors.__all__:
        kind = getattr(kafkaio, name)
        assert issubclass(kind, errors.KafkaError | errors.AdminErrors)


def test_the_values_of_admin_are_names_of_the_package() -> None:
    admin = import_module("kafkaio.admin")
    assert kafkaio.NewTopic is admin.NewTopic
    assert kafkaio.NewTopic.__module__ == "kafkaio.admin"


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'AIOProducer'"):
        _ = kafkaio.AIOProducer


def loaded_by(code: str) -> set[str]:
    """The modules that are there after ``code`` ran in a process of its own."""
    script = f"import sys\n{code}\nprint(*sys.modules)"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def parts(loaded: set[str], package: str) -> set[str]:
    """What of a package is loaded."""
    return {
        name.removeprefix(f"{package}.")
        for name in loaded
        if name.startswith(f"{package}.")
    }


#: What every client says to a broker.
OF_ALL = {"api_versions", "metadata", "request_header"}
#: Slow to load, and of no use to most programs, or not before the first batch.
DEAR = {"cramjam", "lz4", "zstandard", "crc32c", "importlib.metadata", "sqlite3"}


def test_what_is_not_used_is_not_loaded() -> None:
    loaded = loaded_by("import kafkaio; kafkaio.TopicPartition; kafkaio.KafkaError")
    assert parts(loaded, "kafkaio") == {
        *("_dataclass", "_generic", "_named_tuple", "_public", "_version"),
        *("errors", "types"),
    }


def test_a_producer_loads_what_it_needs() -> None:
    loaded = loaded_by("import kafkaio; kafkaio.Producer")
    assert "kafkaio._producer.producer" in loaded
    assert not parts(loaded, "kafkaio._consumer")
    assert parts(loaded, MESSAGES) == OF_ALL | {"init_producer_id", "produce"}
    assert not loaded & DEAR


def test_a_consumer_loads_what_it_needs() -> None:
    loaded = loaded_by("import kafkaio; kafkaio.Consumer")
    assert "kafkaio._consumer.consumer" in loaded
    assert not parts(loaded, "kafkaio._producer")
    messages = parts(loaded, MESSAGES)
    assert {*OF_ALL, "fetch", "list_offsets"} < messages
    assert not messages & {"produce", "init_producer_id", "create_topics", "join_group"}
    assert not loaded & DEAR


def test_one_codec_is_loaded() -> None:
    loaded = loaded_by("import kafkaio; kafkaio.Producer; kafkaio.Consumer")
    common = {
        *("_acquired", "_impl", "_layout", "batch", "builder", "compression"),
        *("control", "sections", "view"),
    }
    compiled = {"_speedups"}
    pure = {
        *("_append", "_columns", "_crc", "_cursor", "_frame", "_header", "_murmur2"),
        *("_pure", "_receipts", "_stream"),
    }
    codec = compiled if kafkaio.accelerated else pure
    assert parts(loaded, "kafkaio._records") == common | codec


def test_classes_are_loaded_without_their_methods() -> None:
    loaded_by(
        "import kafkaio; kafkaio.Producer; kafkaio.Consumer\n"
        "modules = [m for n, m in sys.modules.items() if n.startswith('kafkaio.')]\n"
        "classes = {c for m in modules for c in vars(m).values() if type(c) is type}\n"
        "fields = [vars(c).get('__dataclass_fields__') for c in classes]\n"
        "kinds = [type(each).__name__ for each in fields]\n"
        "assert kinds.count('_Unmade') > 80, kinds.count('_Unmade')\n"
        "assert kinds.count('dict') < 12, kinds.count('dict')"
    )


def test_public_values_are_those_of_types() -> None:
    assert kafkaio.TopicPartition is types.TopicPartition
    assert repr(kafkaio.TopicPartition("t", 1)) == (
        "TopicPartition(topic='t', partition=1)"
    )
