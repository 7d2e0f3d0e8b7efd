"""Every public name of aiokafka is here, with its signature, defaults and bases.

It compares `kafkaio.aiokafka` with the aiokafka that is installed, by introspection: a
new version of it shows here what is missing.
"""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

import kafkaio
from kafkaio import aiokafka as ours

theirs = pytest.importorskip("aiokafka")

#: The modules of aiokafka that programs import from.
MODULES = [
    *("aiokafka", "aiokafka.abc", "aiokafka.admin", "aiokafka.admin.client"),
    *("aiokafka.admin.config_resource", "aiokafka.admin.new_partitions"),
    *("aiokafka.admin.new_topic", "aiokafka.admin.records_to_delete"),
    *("aiokafka.client", "aiokafka.cluster", "aiokafka.consumer"),
    *("aiokafka.consumer.consumer", "aiokafka.coordinator.assignors.abstract"),
    *("aiokafka.coordinator.assignors.range",),
    *("aiokafka.coordinator.assignors.roundrobin",),
    *("aiokafka.coordinator.assignors.sticky.sticky_assignor",),
    *("aiokafka.errors", "aiokafka.helpers", "aiokafka.partitioner"),
    *("aiokafka.producer", "aiokafka.producer.producer", "aiokafka.structs"),
    "aiokafka.util",
]
#: The modules that are not here: the protocol, connections, codecs and record batches,
#: which are kafkaio's own.
ABSENT = ["aiokafka.codec", "aiokafka.conn", "aiokafka.protocol", "aiokafka.record"]
#: What classes and modules define that is part of how aiokafka works inside.
INSIDE = {
    *("aiokafka.coordinator.assignors.sticky.sticky_assignor.ConsumerGenerationPair",),
    *("aiokafka.coordinator.assignors.sticky.sticky_assignor.ConsumerSubscription",),
    *(
        "aiokafka.coordinator.assignors.sticky.sticky_assignor.StickyAssignmentExecutor",
    ),
    "aiokafka.coordinator.assignors.sticky.sticky_assignor"
    ".StickyAssignorMemberMetadataV1",
    "aiokafka.coordinator.assignors.sticky.sticky_assignor.StickyAssignorUserDataV1",
    "aiokafka.coordinator.assignors.sticky.sticky_assignor.has_identical_list_elements",
    "aiokafka.coordinator.assignors.sticky.sticky_assignor.partitions_comparator_key",
    "aiokafka.coordinator.assignors.sticky.sticky_assignor.remove_if_present",
    "aiokafka.coordinator.assignors.sticky.sticky_assignor"
    ".subscriptions_comparator_key",
}


def here(module: str) -> Any:
    return import_module(f"kafkaio.{module}")


def public(module: str) -> Iterator[str]:
    """The names of a module that are its own: what it lists, or what it defines."""
    found = import_module(module)
    listed = getattr(found, "__all__", ())
    own = (
        name
        for name, value in vars(found).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module
    )
    yield from dict.fromkeys((*listed, *own))


NAMES = [
    (module, name)
    for module in MODULES
    for name in public(module)
    if f"{module}.{name}" not in INSIDE
    and not (name.isupper() or len(name) == 1)
    and name not in {"KT", "VT"}
] + [("aiokafka.producer.message_accumulator", "BatchBuilder")]
CLASSES = [
    (module, name)
    for module, name in NAMES
    if inspect.isclass(getattr(import_module(module), name))
]


def pair(module: str, name: str) -> tuple[Any, Any]:
    return getattr(import_module(module), name), getattr(here(module), name)


def test_the_version_is_that_of_the_installed_aiokafka() -> None:
    assert ours.__version__ == theirs.__version__


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_the_name_is_there(module: str, name: str) -> None:
    their, our = pair(module, name)
    assert inspect.isclass(our) is inspect.isclass(their)
    assert callable(our) is callable(their)


@pytest.mark.parametrize("module", MODULES)
def test_lists_of_names(module: str) -> None:
    listed = set(getattr(import_module(module), "__all__", ()))
    assert listed <= set(here(module).__all__)


def test_constants() -> None:
    for name in ("INTEGER_MAX_VALUE", "INTEGER_MIN_VALUE", "NO_EXTENSIONS"):
        their, our = pair("aiokafka.util", name)
        assert our == their
    assert here("aiokafka.producer.producer")._missing is not None


# ---- signatures ----------------------------------------------------------------------


def shown(default: object) -> object:
    """A default value, so that two of them can be compared."""
    if default is inspect.Parameter.empty or default is None:
        return default
    if isinstance(default, tuple | list):
        return tuple(map(shown, default))
    if inspect.isclass(default):
        return default.__name__
    if isinstance(default, enum.Enum):
        return default.name
    if isinstance(default, bool | int | float | str | bytes):
        return default
    if type(default) is object:
        return "a value that stands for none"
    return type(default).__name__


def parameters(function: Any) -> list[tuple[str, object, object]]:
    return [
        (each.name, each.kind, shown(each.default))
        for each in inspect.signature(function).parameters.values()
        # For the interpreter's end: aiokafka keeps modules alive by it.
        if each.name != "_warnings"
    ]


SPECIAL = {"__init__", "__aenter__", "__aexit__", "__aiter__", "__anext__"}


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """The public attributes of a class that aiokafka defines, and its constructor."""
    for base in kind.__mro__:
        if not base.__module__.startswith("aiokafka"):
            continue
        for name, value in vars(base).items():
            if not name.startswith("_") or name in SPECIAL:
                yield name, value


ATTRIBUTES = sorted(
    {
        (module, name, attribute)
        for module, name in CLASSES
        if not issubclass(getattr(import_module(module), name), Exception)
        for attribute, _ in members(getattr(import_module(module), name))
        if attribute != "DEFAULT_CONFIG"
    }
)


@pytest.mark.parametrize(("module", "name", "attribute"), ATTRIBUTES)
def test_attributes(module: str, name: str, attribute: str) -> None:
    their, our = pair(module, name)
    before = inspect.getattr_static(their, attribute)
    now = inspect.getattr_static(our, attribute)
    assert isinstance(now, property) is isinstance(before, property)
    assert isinstance(now, classmethod) is isinstance(before, classmethod)
    function = getattr(their, attribute)
    if not inspect.isroutine(function):
        return
    assert parameters(getattr(our, attribute)) == parameters(function)
    is_async = inspect.iscoroutinefunction(function)
    assert inspect.iscoroutinefunction(getattr(our, attribute)) is is_async
    compare_returns(function, getattr(our, attribute))


@pytest.mark.parametrize(
    ("module", "name"), [each for each in NAMES if each not in CLASSES]
)
def test_functions(module: str, name: str) -> None:
    their, our = pair(module, name)
    if not inspect.isroutine(their):
        return
    assert parameters(our) == parameters(their)
    assert inspect.iscoroutinefunction(our) is inspect.iscoroutinefunction(their)
    compare_returns(their, our)


#: What is said more precisely here: `Response` is a class for each call, and lists of
#: anything are lists of something.
OUTERMOST = re.compile(r"[\w.]+")


def compare_returns(their: Any, our: Any) -> None:
    """Compare the outermost type that a function returns, where aiokafka tells it."""
    before = inspect.signature(their).return_annotation
    if before is inspect.Signature.empty:
        return
    now = inspect.signature(our).return_annotation
    found, expected = outermost(now), outermost(before)
    if expected == "Response":
        assert found.endswith("Response")
    else:
        assert found in {expected, *EQUAL.get(expected, ())}


def outermost(annotation: object) -> str:
    text = annotation if isinstance(annotation, str) else ""
    if not text:
        text = getattr(annotation, "__name__", None) or str(annotation)
    matched = OUTERMOST.match(text)
    return matched[0].rpartition(".")[2] if matched else text


#: Types of other names that are the same, or more precise.
EQUAL = {
    "dict": {"ClusterDescription"},
    "SSLContext": {"SSLContext"},
    "None": {"NoneType"},
    "NoneType": {"None"},
    # It only refuses.
    "StickyAssignorMemberMetadataV1": {"object"},
}


@pytest.mark.parametrize(("module", "name", "attribute"), ATTRIBUTES)
def test_signatures_have_types(module: str, name: str, attribute: str) -> None:
    function = getattr(getattr(here(module), name), attribute)
    if not inspect.isroutine(function) or not function.__module__.startswith("kafkaio"):
        return
    signature = inspect.signature(function)
    types = [
        each.annotation
        for each in signature.parameters.values()
        if each.name not in {"self", "cls", "_cls", "_warnings"}
    ]
    # What a deserializer makes is known to the program alone.
    shown = [
        str(each).replace("ConsumerRecord[Any, Any]", "ConsumerRecord")
        for each in (*types, signature.return_annotation)
    ]
    if attribute not in {"_make", "_replace", "_asdict"}:
        assert not [
            each for each in shown if re.search(r"\bAny\b|inspect\._empty", each)
        ]


@pytest.mark.parametrize(("module", "name"), CLASSES)
def test_named_tuples_and_enums(module: str, name: str) -> None:
    their, our = pair(module, name)
    assert getattr(our, "_fields", None) == getattr(their, "_fields", None)
    if issubclass(their, enum.Enum):
        assert [(each.name, each.value) for each in our] == [
            (each.name, each.value) for each in their
        ]


# ---- exceptions ----------------------------------------------------------------------

ERRORS = {
    name: kind
    for name, kind in vars(import_module("aiokafka.errors")).items()
    if inspect.isclass(kind) and issubclass(kind, Exception)
}


def error(name: str) -> type[Exception]:
    kind: type[Exception] = getattr(ours.errors, name)
    return kind


@pytest.mark.parametrize("name", ERRORS)
def test_exceptions_have_the_same_tree(name: str) -> None:
    for other, kind in ERRORS.items():
        is_below = issubclass(ERRORS[name], kind)
        assert issubclass(error(name), error(other)) is is_below, other
    for builtin in (RuntimeError, Exception):
        if issubclass(ERRORS[name], builtin):
            assert issubclass(error(name), builtin)


@pytest.mark.parametrize("name", ERRORS)
def test_exceptions_are_those_of_kafkaio(name: str) -> None:
    assert issubclass(error(name), kafkaio.KafkaError)
    assert error(name).__module__ == "kafkaio.aiokafka.errors"


@pytest.mark.parametrize("name", ERRORS)
def test_attributes_of_exceptions(name: str) -> None:
    for attribute in ("errno", "message", "retriable", "invalid_metadata"):
        if hasattr(ERRORS[name], attribute):
            expected = getattr(ERRORS[name], attribute)
            assert getattr(error(name), attribute) == expected, attribute
    assert bool(getattr(ERRORS[name], "description", "")) <= bool(
        getattr(error(name), "description", "")
    )


@pytest.mark.parametrize("name", ERRORS)
def test_texts_of_exceptions(name: str) -> None:
    if name in {"CommitFailedError", "ProducerFenced", "BrokerResponseError"}:
        assert str(error(name)()).startswith(f"{name}: " if name[0] != "B" else "")
        return
    assert str(error(name)()) == str(ERRORS[name]())
    assert str(error(name)("text")) == str(ERRORS[name]("text"))
    assert error(name)("text", 2).args == ("text", 2)


def test_classes_of_codes() -> None:
    for code in range(-5, 200):
        expected = theirs.errors.for_code(code).__name__
        assert ours.errors.for_code(code).__name__ == expected
    assert ours.errors.kafka_errors.keys() == theirs.errors.kafka_errors.keys()


@pytest.mark.parametrize(
    "name",
    [
        *("InvalidMessageError", "CoordinatorLoadInProgressError"),
        *("CoordinatorNotAvailableError", "NotCoordinatorError"),
    ],
)
def test_earlier_names_of_exceptions(name: str) -> None:
    assert error(name).__name__ == getattr(theirs.errors, name).__name__


# ---- what cannot be the same ---------------------------------------------------------


@pytest.mark.parametrize("module", ABSENT)
def test_row_modules_that_are_not_there(module: str) -> None:
    """The protocol, connections, codecs and record batches of aiokafka are not there.

    An import fails and names the module; ``kafkaio.messages`` has the protocol.
    """
    import_module(module)
    with pytest.raises(ModuleNotFoundError, match=module):
        here(module)
