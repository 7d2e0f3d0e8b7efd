"""Words of other tools are answered with what to type here."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest

from kafkaio._cli.local.bare import run_bare
from kafkaio._cli.registry import BARE, COMMANDS
from kafkaio._cli.root import root
from kafkaio._cli.shell.command import COMMON, Group
from kafkaio._cli.text import habits
from tests.support.cli import run

NAMES = [*(name for section in COMMANDS.values() for name in section), *BARE]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        # Commands.
        ("topic list", "No such command 'topic'. Did you mean kafkaio topics list?"),
        ("topic ls", "Did you mean kafkaio topics list?"),
        ("topic", "Did you mean kafkaio topics?"),
        ("topics ls", "No such command 'ls'. Did you mean kafkaio topics list?"),
        ("topics show orders", "Did you mean kafkaio topics describe?"),
        ("topics lsit", "Did you mean kafkaio topics list?"),
        ("topics consume orders", "Did you mean kafkaio consume?"),
        ("group seek g", "Did you mean kafkaio groups reset?"),
        ("kafka-topics.sh --list", "Did you mean kafkaio topics list?"),
        ("console-consumer", "Did you mean kafkaio consume?"),
        ("kafka-console-producer", "Did you mean kafkaio produce?"),
        ("kafka-get-offsets.sh", "Did you mean kafkaio offsets?"),
        ("acl list", "Did you mean kafkaio acls list?"),
        ("user add bob", "Did you mean kafkaio users set?"),
        ("cosume x", "Did you mean kafkaio consume?"),
        ("nonsense", "No such command 'nonsense'.\n"),
        ("topics nonsense", "No such command 'nonsense'.\n"),
        # Options that are commands here.
        ("topics --list", "No such option '--list': use kafkaio topics list"),
        ("topics --describe --topic t", "use kafkaio topics describe"),
        ("topics list --describe", "use kafkaio topics describe"),
        ("topics describe --describe", "leave it out: the command says it"),
        ("groups --reset-offsets", "use kafkaio groups reset"),
        ("configs --alter", "use kafkaio configs set KIND NAME KEY=VALUE"),
        ("reassign --generate", "use kafkaio reassign plan"),
        ("-L", "use kafkaio topics list"),
        ("-C -t orders", "use kafkaio consume TOPIC"),
        # Options.
        (
            "consume --topic orders",
            "write the topic without an option: kafkaio consume",
        ),
        ("consume -t orders", "write the topic without an option"),
        (
            "consume orders --from-beginning",
            "leave it out: it reads from the beginning",
        ),
        ("consume orders --max-messages 5", "use -c COUNT"),
        ("consume orders -K :", "use -f LAYOUT"),
        ("consume orders --property print.key=true", "use -f LAYOUT"),
        ("consume orders --use-schema-registry=value", "use -s avro, json or protobuf"),
        ("consume orders --property schema.registry.url=x", "use -r URL with -s avro"),
        ("consume orders --skip-message-on-error", "use --skip-errors"),
        ("produce orders --value-schema-id 5", "use -s avro --schema-id ID"),
        ("kafka-avro-console-consumer", "Did you mean kafkaio consume?"),
        ("schema list", "Did you mean kafkaio schemas list?"),
        ("registry", "Did you mean kafkaio schemas?"),
        ("schemas rm s", "Did you mean kafkaio schemas delete?"),
        ("schemas check-compatibility s", "Did you mean kafkaio schemas check?"),
        ("schemas get --subject s", "write the subject without an option"),
        ("produce --broker-list b:1 orders", "use -b HOST:PORT"),
        ("produce -t orders", "write the topic without an option"),
        ("topics create --topic orders", "kafkaio topics create TOPIC"),
        ("topics --topic orders", "kafkaio topics describe TOPIC"),
        ("topics list --zookeeper z:1", "use -b HOST:PORT: kafkaio asks the brokers"),
        ("lag --group g", "write the group without an option: kafkaio lag GROUP"),
        ("groups describe --group g", "kafkaio groups describe GROUP"),
        ("groups list --command-config f", "use --config FILE"),
        ("bench produce t --num-records 5", "use -n RECORDS"),
        ("configs get --entity-type topics", "write the kind and the name"),
        ("offsets t --time -1", "use --at TIME"),
        ("users set bob --password x", "leave it out: the password is asked for"),
    ],
)
def test_what_to_type_instead(line: str, message: str) -> None:
    result = run(*line.split()).check(2)
    assert message in result.err
    assert len(result.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("broker --override a=b", "kafkaio broker: No such option '--override': use "),
        (
            "broker --sasl-password s3cret",
            "kafkaio broker: No such option '--sasl-pass",
        ),
        (
            "broker --sasl-password=s3cret",
            "kafkaio broker: No such option '--sasl-pass",
        ),
        ("broker s3cret", "kafkaio broker: 1 words too many"),
        (
            "log dump --files f",
            "kafkaio log dump: No such option '--files': write the ",
        ),
    ],
)
def test_commands_that_need_no_extra(
    line: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run_bare(line.split())
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert told.startswith(message)
    assert "s3cret" not in told


@pytest.mark.parametrize(
    "line",
    [
        "users set alice s3cret",
        "users set alice --password=s3cret",
        "users set alice --password s3cret",
        "users set alice -ps3cret",
        "topics list -X s3cret",
        "produce t -H s3cret",
        "topics list -X sasl.password=s3cret",
        "topics list -b alice:s3cret@b:1",
        "topics list -b alice:s3cret",
        "topics list -X sasl.mechanism=s3cret -X security.protocol=SASL_SSL",
        "topics list -X security.protocol=s3cret",
        "topics list --password=s3cret",
        "schemas list -X basic.auth.user.info=s3cret",
        "schemas list -X schema.registry.basic.auth.user.info=s3cret",
        "schemas list -r http://alice:s3cret",
        "schemas list -r http://alice:s3cret@host:port",
    ],
)
def test_no_message_repeats_a_password(line: str) -> None:
    assert "s3cret" not in run(*line.split()).check(2).err


def test_a_config_of_a_topic_is_no_file() -> None:
    line = "topics create orders --config retention.ms=1"
    assert "-c retention.ms=" in run(*line.split()).check(2).err
    line = "topics list --config retention.ms=1"
    assert "-X KEY=VALUE" in run(*line.split()).check(2).err


# ---- the advice itself ---------------------------------------------------------------


def subcommands(name: str) -> dict[str, click.Command]:
    if name in BARE or not name:
        return {}
    found = root.get_command(click.Context(root), name)
    assert found is not None, name
    return dict(found.commands) if isinstance(found, Group) else {name: found}


def options(name: str) -> set[str]:
    """The options of a command and of its subcommands."""
    found = {option for each in root.params for option in each.opts} | set(COMMON)
    for each in subcommands(name).values():
        found.update(option for param in each.params for option in param.opts)
    return found


def named(text: str) -> Iterator[str]:
    """The commands that a text names."""
    yield from re.findall(r"kafkaio ([a-z-]+(?: [a-z-]+)?)", text)


ADVICE = [
    (name, option, hint)
    for name, table in habits._BY_COMMAND.items()
    for option, hint in table.items()
]


@pytest.mark.parametrize(("name", "option", "hint"), ADVICE)
def test_what_is_advised_exists(name: str, option: str, hint: str) -> None:
    for words in named(hint):
        assert_command(words)
    if name in BARE:
        return
    known = options(name)
    elsewhere = {o for words in named(hint) for o in options(words.split()[0])}
    for used in re.findall(r"(?<![\w'.-])--?[A-Za-z][a-z-]*", hint):
        assert used in known | elsewhere, (hint, used)
    alone = {
        frozenset(each.opts) for c in subcommands(name).values() for each in c.params
    }
    assert len(subcommands(name)) > 1 or not any(option in opts for opts in alone)


@pytest.mark.parametrize("hint", habits._ANYWHERE.values())
def test_what_is_advised_everywhere_exists(hint: str) -> None:
    known = options("") | {"--yes"}
    for used in re.findall(r"(?<![\w'.-])--?[A-Za-z][a-z-]*", hint):
        assert used in known


@pytest.mark.parametrize(
    "words", [*habits._COMMANDS.values(), *habits._ELSEWHERE.values()]
)
def test_commands_that_are_advised_exist(words: str) -> None:
    assert_command(words)


def assert_command(words: str) -> None:
    first, _, second = words.partition(" ")
    if first.startswith("--"):
        return
    assert first in NAMES, words
    known = subcommands(first)
    if second and len(known) > 1:
        assert second.split()[0] in known or second.isupper(), words


@pytest.mark.parametrize("verb", habits._VERBS)
def test_each_verb_is_somewhere(verb: str) -> None:
    every = {sub for name in NAMES for sub in subcommands(name)}
    assert any(meant in every for meant in habits._VERBS[verb])
