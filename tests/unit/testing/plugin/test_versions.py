"""The fixtures' own logic, apart from any broker."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from kafkaio.testing import pytest_plugin
from kafkaio.testing.kafka._releases import KafkaNotStarted
from kafkaio.testing.kafka._source import KAFKA_VARIABLE


@dataclass
class FakeHook:
    left_out: list[object] = field(default_factory=list)

    def pytest_deselected(self, items: list[object]) -> None:
        self.left_out += items


@dataclass
class FakeConfig:
    option: str | None = None
    hook: FakeHook = field(default_factory=FakeHook)

    def getoption(self, name: str, default: object) -> object:
        assert name == "--kafka-version"
        return self.option or default


@dataclass(eq=False)
class FakeItem:
    versions: tuple[str, ...] | None
    why_not_embedded: str | None = None

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        if name == "kafka_versions" and self.versions is not None:
            return pytest.mark.kafka_versions(*self.versions).mark
        if name == "not_embedded" and self.why_not_embedded is not None:
            return pytest.mark.not_embedded(self.why_not_embedded).mark
        return None


@pytest.fixture(autouse=True)
def _no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(pytest_plugin.VERSION_VARIABLE, raising=False)


ANY, NEW, OLD = FakeItem(None), FakeItem(("newest", "4.0")), FakeItem(("2.8",))


#: The hook, which uses only what the fakes of a session and its tests have.
modify: Callable[[FakeConfig, list[FakeItem]], None] = (
    pytest_plugin.pytest_collection_modifyitems  # type: ignore[assignment]
)


def collected(config: FakeConfig) -> list[FakeItem]:
    items = [ANY, NEW, OLD]
    modify(config, items)
    assert {*items, *config.hook.left_out} == {ANY, NEW, OLD}
    return items


def test_tests_for_other_versions_are_deselected() -> None:
    assert collected(FakeConfig()) == [ANY, NEW]
    assert collected(FakeConfig("2.8")) == [ANY, OLD]
    assert collected(FakeConfig("3.9.2")) == [ANY]


def test_the_variable_chooses_unless_the_option_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(pytest_plugin.VERSION_VARIABLE, "2.8")
    assert collected(FakeConfig()) == [ANY, OLD]
    assert collected(FakeConfig("4.0")) == [ANY, NEW]


def test_an_unknown_version_ends_the_run() -> None:
    with pytest.raises(KafkaNotStarted):
        collected(FakeConfig("0.7"))


def test_nothing_is_checked_without_marked_tests() -> None:
    items = [ANY]
    modify(FakeConfig("0.7"), items)
    assert items == [ANY]


def test_tests_not_for_the_embedded_broker_are_deselected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = FakeItem(("newest",), "kills a process")
    for variable, kept in (("", [ANY, NEW, real]), ("embedded", [ANY, NEW])):
        monkeypatch.setenv(KAFKA_VARIABLE, variable)
        items, config = [ANY, NEW, OLD, real], FakeConfig()
        modify(config, items)
        assert items == kept
        assert {*items, *config.hook.left_out} == {ANY, NEW, OLD, real}


def test_topic_names_are_legal_and_differ() -> None:
    name = pytest_plugin._unique("test_it[a/b c-ü]" + "x" * 300)
    assert re.fullmatch(r"test_it-a-b-c-.*-[0-9a-f]{8}", name)
    assert re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", name)
    assert name != pytest_plugin._unique("test_it")
