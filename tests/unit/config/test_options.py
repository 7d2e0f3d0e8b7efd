"""Each option is declared once; what is written from that is current."""

import pickle
from dataclasses import fields
from pathlib import Path

import pytest

from codegen import options
from kafkaio._config import ClientConfig, ConsumerConfig, ProducerConfig
from kafkaio._config.declaration import option_of

CONFIGS = [ClientConfig, ProducerConfig, ConsumerConfig]
DECLARED = [
    pytest.param(declared, id=f"{config.__name__}.{declared.name}")
    for config in CONFIGS
    for declared in options._own(config)
]


def test_what_is_generated_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert options.main(["--check"]) == 0, capsys.readouterr().out


def test_a_difference_is_named_or_repaired(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("TYPES", "PAGE"):
        copy = tmp_path / name
        copy.write_text(getattr(options, name).read_text())
        monkeypatch.setattr(options, name, copy)
    options.TYPES.write_text("# another")
    assert options.main(["--check"]) == 1
    assert capsys.readouterr().out.startswith("TYPES differs")
    assert options.main([]) == 0
    assert options.main(["--check"]) == 0


def test_a_page_without_a_place_is_an_error() -> None:
    with pytest.raises(SystemExit, match="no place for the options 'ClientConfig'"):
        options.updated("nothing")


@pytest.mark.parametrize("declared", DECLARED)
def test_an_option_says_what_it_means(declared) -> None:
    doc = option_of(declared).doc
    assert doc.endswith(".")
    assert "  " not in doc
    if declared.type in {"int", "float", "int | None"}:
        assert option_of(declared).bounds


def test_an_option_is_declared_by_one_class() -> None:
    names = [f.name for config in CONFIGS for f in options._own(config)]
    assert len(names) == len(set(names))
    every = {f.name for config in CONFIGS for f in fields(config)}
    assert every == set(names)


@pytest.mark.parametrize("config", CONFIGS)
def test_the_docstring_lists_the_options_of_the_class(
    config: type[ClientConfig],
) -> None:
    doc = config.__doc__
    assert isinstance(doc, str)
    assert config.of("a", {}).__doc__ == doc
    for declared in fields(config):
        listed = f"        {declared.name}: {option_of(declared).doc[:9]}" in doc
        assert listed == (declared in options._own(config)), declared.name
    assert max(map(len, doc.splitlines())) <= 88


def test_a_derived_configuration_has_its_own_docstring() -> None:
    class Plain(ProducerConfig):
        pass

    class Own(ProducerConfig):
        """Mine."""

    assert (Plain.__doc__, Own.__doc__) == (None, "Mine.")


def test_addresses_of_the_servers_can_be_read_again() -> None:
    config = ClientConfig.of("a:1,[::1]:2,b", {})
    assert config.addresses == ["a:1", "[::1]:2", "b:9092"]
    again = ClientConfig.of(config.addresses, {})
    assert again == config == pickle.loads(pickle.dumps(config))


def test_a_configuration_takes_no_text_for_servers() -> None:
    with pytest.raises(ValueError, match=r"bootstrap_servers \(str\) has the wrong"):
        ClientConfig(bootstrap_servers="a:1")  # type: ignore[arg-type]
