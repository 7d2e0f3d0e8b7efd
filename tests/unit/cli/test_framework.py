"""What all commands have in common: options, output, failures, help."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import UUID

import click
import pytest

import kafkaio
from kafkaio._cli import main
from kafkaio._cli.groups.groups import STATES, TYPES
from kafkaio._cli.registry import BARE, COMMANDS
from kafkaio._cli.root import root
from kafkaio._cli.shell.command import COMMON, asynchronous, command
from kafkaio._cli.shell.connection import ConnectionOptions
from kafkaio._cli.shell.given import Given
from kafkaio._cli.shell.session import CommandSession
from kafkaio._cli.text.document import TEXT, Document, many
from kafkaio._cli.text.exits import CommandFailed, Exit, code_of, lines_of
from kafkaio._cli.text.named import not_of_consumers
from kafkaio._cli.text.output import Printer, Table, TableColumn, cell, plain
from kafkaio._cli.text.values import chosen, duration_of, moment_of, partitions_of_topic
from kafkaio._cli.topics.configs import KINDS, is_secret
from kafkaio._config import ConsumerConfig, ProducerConfig
from kafkaio.admin import GroupListing, GroupType
from kafkaio.errors import (
    AdminErrors,
    AuthorizationError,
    ConfigurationError,
    KafkaError,
    UnknownTopicOrPartition,
)
from kafkaio.testing._broker.configs import facts
from tests.support.cli import SCHEMAS, run, schema_names

REGISTERED = {name: each for part in COMMANDS.values() for name, each in part.items()}


def leaves() -> Iterator[tuple[str, str, click.Command]]:
    """Every command that runs something: its name, its subcommand, itself."""
    context = click.Context(root)
    for name in REGISTERED:
        found = root.get_command(context, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from ((name, sub, each) for sub, each in found.commands.items())
        else:
            yield name, "", found


# ---- the commands -------------------------------------------------------------------


@pytest.mark.parametrize("name", REGISTERED)
def test_the_registry_says_what_the_commands_say(name: str) -> None:
    entry = REGISTERED[name]
    found = getattr(
        import_module(f"kafkaio._cli.{entry.module}"), name.replace("-", "_")
    )
    assert found.name == name
    assert found.get_short_help_str(200) == f"{entry.help}."


def test_names_of_options_do_not_clash() -> None:
    for name, sub, each in leaves():
        options = [
            text
            for parameter in each.params
            if isinstance(parameter, click.Option)
            for text in (*parameter.opts, *parameter.secondary_opts)
        ]
        assert len(options) == len(set(options)), (name, sub)
        assert {*COMMON} - {"-h", "--help"} <= set(options), (name, sub)


def test_every_command_has_a_help_and_a_schema() -> None:
    for name, sub, each in leaves():
        assert each.help, (name, sub)
        if name != "completion":
            assert (sub or name) in schema_names(name), (name, sub)
    assert {"dump", "verify"} <= schema_names("log")
    assert "broker" in schema_names("broker")


def test_schemas_are_strict() -> None:
    for path in SCHEMAS.glob("*.json"):
        for found in re.findall(r'"type": "object"', path.read_text()):
            assert found
        document = json.loads(path.read_text())
        for each in _objects(document["$defs"]):
            assert each["additionalProperties"] is False, path
            assert all(re.fullmatch("[a-z0-9_]+", key) for key in each["properties"])


def _objects(schema: object) -> Iterator[dict[str, object]]:
    if isinstance(schema, dict):
        if schema.get("type") == "object" and "properties" in schema:
            yield schema
        for each in schema.values():
            yield from _objects(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from _objects(each)


def test_words_of_options_are_those_of_the_enumerations() -> None:
    assert {*STATES} == {each.value for each in kafkaio.GroupState} - {"Unknown"}
    assert {*TYPES} == {each.value for each in kafkaio.GroupType} - {"unknown"}
    assert {*KINDS.values()} == {each.value for each in kafkaio.ConfigResourceType}


def test_a_command_that_does_not_exist() -> None:
    result = run("topcs").check(2)
    assert result.err.startswith("kafkaio: No such command 'topcs'")
    assert len(result.err.splitlines()) == 1
    assert "--frm" in run("topics", "list", "--frm").check(2).err


def test_the_help_loads_no_client() -> None:
    words = [sys.executable, "-X", "importtime", "-m", "kafkaio", "--help"]
    shown = subprocess.run(words, capture_output=True, text=True, check=True)
    for name in REGISTERED | BARE:
        assert re.search(rf"^  {name} ", shown.stdout, re.MULTILINE)
    loaded = {line.rpartition("|")[2].strip() for line in shown.stderr.splitlines()}
    assert "click" in loaded
    assert not loaded & {"rich", "asyncio", "kafkaio._client", "kafkaio.admin"}
    assert not {each for each in loaded if each.startswith("kafkaio.testing")}


def test_a_command_loads_no_other() -> None:
    program = (
        "import sys; from kafkaio._cli import main; main(['lag', '--help']);"
        "print(sorted(m for m in sys.modules if m.startswith('kafkaio.')),"
        "file=sys.stderr)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "kafkaio._cli.groups.lag" in shown.stderr
    for name in (
        *("_cli.topics.configs", "_cli.groups.groups"),
        *("admin._admin", "_client.client", "_consumer.consumer"),
    ):
        assert f"'kafkaio.{name}'" not in shown.stderr


def test_without_the_extra(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "click", None)
    module = sys.modules["kafkaio._cli.main"]
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    assert main(["topics", "list"]) == 2
    printed = capsys.readouterr()
    assert printed.err == (
        "kafkaio topics: needs more packages: pip install 'kafkaio[cli]'\n"
    )
    assert main(["-b", "host:9092", "lag"]) == 2
    assert "kafkaio lag: needs" in capsys.readouterr().err
    assert main(["log", "verify", "/no/such"]) == 2
    assert "/no/such" in capsys.readouterr().err
    dump = ("log", "dump", str(tmp_path))
    for words in ([*dump, "--json"], ["--json", *dump], ["--jsonl", *dump, "--json"]):
        assert main(words) == 2
        assert json.loads(capsys.readouterr().out) == {"files": [], "errors": []}
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert "broker" in shown
    assert "kafkaio[cli]" in shown


# ---- the connection -----------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "kafkaio"
    path.mkdir()
    (path / "config.toml").write_text(
        """
        default_profile = "dev"
        [profiles.dev]
        bootstrap.servers = "dev:1"
        linger.ms = 7
        [profiles.prod]
        bootstrap_servers = ["prod:1", "prod:2"]
        security.protocol = "SASL_SSL"
        sasl.mechanism = "PLAIN"
        sasl.username = "alice"
        sasl.password = "${env:SECRET}"
        """
    )
    return tmp_path


def properties(home: Path, given: Given, **environment: str) -> dict[str, object]:
    variables = {"XDG_CONFIG_HOME": str(home), **environment}
    return ConnectionOptions(given, variables).properties()


def test_order_of_precedence(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "s")
    name = "bootstrap.servers"
    file = home / "client.properties"
    file.write_text("bootstrap.servers = file:1\nclient.id=x\n")
    env = {"KAFKAIO_BOOTSTRAP_SERVERS": "env:1"}
    nowhere = Path("/nonexistent")
    steps = [
        (properties(nowhere, Given()), "localhost:9092"),
        (properties(home, Given()), "dev:1"),
        (
            properties(home, Given(), KAFKAIO_PROFILE="prod"),
            ["prod:1", "prod:2"],
        ),
        (properties(home, Given(), KAFKAIO_CONFIG=str(file)), "file:1"),
        (properties(home, Given(), KAFKAIO_CONFIG=str(file), **env), "env:1"),
        (properties(home, Given(profile="dev"), **env), "dev:1"),
        (properties(home, Given(profile="dev", config=str(file)), **env), "file:1"),
        (properties(home, Given(config=str(file), properties={name: "x:1"})), "x:1"),
        (
            properties(home, Given(bootstrap_server="b:1", properties={name: "x:1"})),
            "b:1",
        ),
    ]
    assert [found[name] for found, _ in steps] == [wanted for _, wanted in steps]
    assert steps[6][0]["client.id"] == "x"


def test_options_of_other_clients_are_left_out(home: Path) -> None:
    connection = ConnectionOptions(Given(), {"XDG_CONFIG_HOME": str(home)})
    assert "linger.ms" not in connection.properties()
    assert "linger.ms" not in connection.properties(ConsumerConfig)
    assert connection.properties(ProducerConfig)["linger.ms"] == 7
    changed = connection.properties(
        ProducerConfig, {"linger_ms": 9, "acks": "1"}, {"client.id": "c"}
    )
    assert (changed["linger.ms"], changed["acks"], changed["client.id"]) == (
        7,
        "1",
        "c",
    )
    assert "linger.ms" not in connection.properties(
        ProducerConfig, {}, {"linger.ms": None}
    )


def test_secrets(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "s")
    found = properties(home, Given(profile="prod"))
    assert found["sasl.password"] == "s"
    monkeypatch.delenv("SECRET")
    with pytest.raises(ConfigurationError, match="no variable 'SECRET'"):
        properties(home, Given(profile="prod"))
    asked: list[str] = []
    connection = ConnectionOptions(
        Given(properties={"sasl.password": "?"}), {}, lambda n: asked.append(n) or "pw"
    )
    assert connection.properties()["sasl.password"] == "pw"
    assert asked == ["sasl.password"]
    assert connection.secrets_on_the_command_line() == []
    with pytest.raises(CommandFailed, match="cannot ask for it"):
        ConnectionOptions(Given(properties={"sasl.password": "?"}), {}).properties()
    plain_given = Given(properties={"sasl.password": "pw", "sasl.username": "u"})
    assert ConnectionOptions(plain_given, {}).secrets_on_the_command_line() == [
        "sasl.password"
    ]


@pytest.mark.parametrize(
    ("given", "environment", "message"),
    [
        (Given(profile="prd"), {}, "has no profile 'prd'; did you mean prod?"),
        (Given(config="/no/such"), {}, "/no/such: No such file"),
        (Given(), {"KAFKAIO_TIMEOUT": "x"}, "KAFKAIO_TIMEOUT: 'x' is not a number"),
    ],
)
def test_what_is_wrong(
    home: Path, given: Given, environment: dict[str, str], message: str
) -> None:
    with pytest.raises(CommandFailed, match=re.escape(message)) as caught:
        properties(home, given, **environment)
    assert caught.value.code == 2


def test_options_before_and_after_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Given] = []
    monkeypatch.setattr(
        "kafkaio._cli.shell.session.CommandSession.admin",
        lambda self: seen.append(self.given) or self.started(_Refusing()),
    )
    run(
        *("-X", "client.id=a", "-X", "sasl.username=u", "--timeout", "5", "topics"),
        *("-b", "h:1", "list", "-X", "client.id=b", "-v", "--json"),
    ).check(1)
    (given,) = seen
    assert given.properties == {"client.id": "b", "sasl.username": "u"}
    assert (given.bootstrap_server, given.timeout) == ("h:1", 5.0)
    assert (given.format, given.verbose) == ("json", True)
    for words, message in [
        (("-X", "x"), "it is not KEY=VALUE"),
        (("--json", "--jsonl"), "exclude each other"),
        (("--timeout", "0"), "0 is not above 0"),
        (("-X", "clent.id=x"), "did you mean 'client.id'?"),
    ]:
        monkeypatch.undo()
        assert message in run("topics", "list", *words).check(2).err


class _Refusing:
    async def start(self, timeout: float | None = None) -> None:
        del timeout
        raise KafkaError("no")

    async def close(self, timeout: float | None = None) -> None:
        del timeout


def test_a_password_on_the_command_line_warns() -> None:
    options = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "u",
        "sasl.password": "hunter2",
    }
    words = [word for name in options for word in ("-X", f"{name}={options[name]}")]
    words += ["-b", "localhost:1", "--timeout", "0.2"]
    result = run("topics", "list", *words).check(1)
    assert "other users of this machine can read sasl.password" in result.err
    assert "hunter2" not in result.err
    words[words.index("sasl.password=hunter2")] = "sasl_password=hunter2"
    assert "can read sasl_password" in run("topics", "list", *words).check(1).err


@pytest.mark.parametrize(
    ("url", "warns"),
    [("socks5://alice:hunter2@127.0.0.1:1", True), ("socks5://127.0.0.1:1", False)],
)
def test_a_proxy_on_the_command_line(
    url: str, warns: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["-X", f"proxy={url}", "-b", "localhost:1", "--timeout", "1"]
    result = run("topics", "list", *words).check(1)
    assert ("can read proxy" in result.err) is warns
    assert "proxy socks5://127.0.0.1:1" in result.err
    assert "hunter2" not in result.err
    monkeypatch.setenv("KAFKAIO_PROXY", "no proxy")
    assert "proxy is not a URL" in run("topics", "list", *words[2:]).check(2).err


def test_no_broker_is_one_line() -> None:
    words = ("topics", "list", "-b", "localhost:1", "--timeout", "0.3")
    result = run(*words).check(1)
    assert result.err.startswith("kafkaio topics list: ")
    assert "localhost:1" in result.err
    assert len(result.err.splitlines()) == 1
    assert "Traceback" in run(*words, "-v").check(1).err


# ---- output -------------------------------------------------------------------------


def test_values_as_json_has_them() -> None:
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    assert plain(
        {
            "text": b"\xc3\xa4",
            "bytes": b"\xff",
            "time": moment,
            "span": timedelta(minutes=1),
            "set": {"b", "a"},
            "id": UUID(int=1),
            "tp": kafkaio.TopicPartition("orders", 1),
            "state": kafkaio.GroupState.STABLE,
            "type": kafkaio.TimestampType.CREATE,
            "committed": kafkaio.OffsetAndMetadata(5),
            "none": None,
        }
    ) == {
        "text": "ä",
        "bytes": {"base64": "/w=="},
        "time": "2026-01-02T00:00:00+00:00",
        "span": 60.0,
        "set": ["a", "b"],
        "id": "00000000-0000-0000-0000-000000000001",
        "tp": "orders-1",
        "state": "Stable",
        "type": 0,
        "committed": {"offset": 5, "metadata": "", "leader_epoch": -1},
        "none": None,
    }
    error = UnknownTopicOrPartition("no topic", code=3, name="UNKNOWN")
    error.item = "orders"
    assert plain(error) == {
        "error": "UnknownTopicOrPartition",
        "message": "no topic [UNKNOWN]",
        "item": "orders",
        "code": "UNKNOWN",
    }


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (True, "yes"),
        ([], "-"),
        ([1, 2], "1,2"),
        ({"a": 1}, "a=1"),
        (1.5, "1.5"),
        (2.0, "2"),
        (b"\xff", "\\xff"),
        ("x", "x"),
    ],
)
def test_values_as_people_read_them(value: object, text: str) -> None:
    assert cell(value) == text


def test_columns_of_a_pipe_and_lines_of_json(tmp_path: Path) -> None:
    rows = [{"a": 1, "b": "x\ty\nz"}, {"a": None, "b": "ä"}]
    for form, wanted in [
        ("", "A\tBEE\n1\tx\\ty\\nz\n-\tä\n\nmore\nA\n1\n-\n"),
        ("json", None),
        ("jsonl", '{"a":1,"b":"x\\ty\\nz"}\n{"a":null,"b":"ä"}\n'),
    ]:
        path = tmp_path / "out"
        with path.open("w", encoding="utf-8") as file:
            out = Printer(file, form, is_terminal=False)
            out.show(
                {"rows": rows, "errors": []},
                Table(rows, ("a", TableColumn("b", "BEE"))),
                Table(rows, ("a",), "more"),
            )
        text = path.read_text(encoding="utf-8")
        if wanted is None:
            assert json.loads(text) == {"rows": rows, "errors": []}
        else:
            assert text == wanted


def test_nothing_of_a_table_is_lost_at_a_narrow_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "24")
    row = {"id": "963d31d8-662e-413f-9a2b", "at": datetime(2026, 1, 2, 3, 4, 5, 6, UTC)}
    path = tmp_path / "out"
    with path.open("w", encoding="utf-8") as file:
        out = Printer(file, "", is_terminal=True)
        out.show({}, Table([row], ["id"]), Table([row], ["at"]))
    shown = path.read_text(encoding="utf-8").split()
    head = shown.index("ID")
    assert "".join(shown[head + 2 : shown.index("AT")]) == row["id"]
    assert shown[-2:] == ["2026-01-02", "03:04:05Z"]


#: What a client may call itself: it colours, erases lines, and ends the row.
HOSTILE = "a\x1b[2K\x9b31m\x7f\r\n\tb"
SHOWN = r"a\x1b[2K\x9b31m\x7f\r\n\tb"


def test_names_do_not_act_on_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"id": HOSTILE, "list": [HOSTILE]}
    for is_terminal in (False, True):
        path = tmp_path / "out"
        with path.open("w", encoding="utf-8", newline="") as file:
            out = Printer(file, "", is_terminal=is_terminal)
            out.show({}, Table([row], ["id", "list"], title=HOSTILE))
            out.emit(row, ["id"])
        text = path.read_text(encoding="utf-8")
        assert text.count(SHOWN) == 4
        assert not {"\x1b", "\x9b", "\x7f", "\r"} & {*text}
    error = KafkaError(f"no group {HOSTILE}")
    error.item = "g\x1b"
    assert [*lines_of(error)] == [r"g\x1b: no group a\x1b[2K\x9b31m\x7f b"]
    session = CommandSession(Given())
    with pytest.raises(CommandFailed):
        session.confirm([f"delete group {HOSTILE}"], yes=False)
    session.note(HOSTILE)
    assert capsys.readouterr().err == f"delete group {SHOWN}\nkafkaio: {SHOWN}\n"


# ---- failures -----------------------------------------------------------------------


def test_codes_and_lines_of_errors() -> None:
    refused = AuthorizationError(
        "Request(processor=13, connectionId=1-2, session=Session(User:x,/1), "
        "listenerName=L) needs DESCRIBE permission",
        code=29,
        name="TOPIC_AUTHORIZATION_FAILED",
    )
    refused.item = "orders"
    group = AdminErrors.of("delete topics", [refused, KafkaError("b")], {})
    some = AdminErrors.of("delete topics", [refused], {"x": None})
    assert [*lines_of(group)] == [
        "orders: needs DESCRIBE permission [TOPIC_AUTHORIZATION_FAILED]",
        "b",
    ]
    named = KafkaError("alter the quotas of user 'carol'")
    named.item = "user carol"
    assert [*lines_of(named)] == [str(named)]
    assert [code_of(group), code_of(some), code_of(refused)] == [1, 3, 1]
    assert code_of(ConfigurationError("x")) == 2
    assert code_of(CommandFailed("x")) == 1


PROBED = Document(found=many(TEXT))


@command("probe", help="A command of this test.")
@click.argument("what")
@click.option("--yes", is_flag=True)
@asynchronous
async def probe(session: CommandSession, what: str, *, yes: bool) -> None:
    """Fail in the way that is asked for."""
    if what == "confirm":
        session.confirm(["burn the house"], yes=yes)
    elif what == "interrupt":
        raise KeyboardInterrupt
    elif what == "pipe":
        raise BrokenPipeError
    elif what == "no":
        session.exit_with(Exit.FAILED)
    elif what == "some":
        good = session.good({"a": 1, "b": KafkaError("lost")})
        session.show(PROBED, Table([{"x": 1}], ("x",)), found=list(good))
    session.emit({"done": b"\xff"}, ("done",))


@pytest.fixture
def _probed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = type(root).get_command
    monkeypatch.setattr(
        type(root),
        "get_command",
        lambda self, ctx, name: probe if name == "probe" else found(self, ctx, name),
    )


def test_a_result_of_one_row_is_one_line_of_json(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with path.open("w", encoding="utf-8") as file:
        row = {"a": 1, "nodes": []}
        Printer(file, "jsonl", is_terminal=False).show(row, is_row=True)
    assert path.read_text() == '{"a":1,"nodes":[]}\n'


@pytest.mark.usefixtures("_probed")
def test_how_commands_end() -> None:
    assert run("probe", "x").check().out == "\\xff\n"
    assert run("probe", "x", "--jsonl").check().lines == [{"done": {"base64": "/w=="}}]
    assert run("probe", "no").check(1).err == ""
    assert run("probe", "interrupt").check(130).err.strip() == ""
    some = run("probe", "some").check(3)
    assert some.err == "kafkaio probe: b: lost\n"
    assert some.out == "X\n1\n\\xff\n"
    asked = run("probe", "confirm").check(2)
    assert asked.err == (
        "burn the house\nkafkaio probe: nothing was done: confirm it with --yes\n"
    )
    assert run("probe", "confirm", "--yes").check().err == ""


def test_a_closed_pipe_ends_quietly() -> None:
    program = (
        "import sys; from kafkaio._cli import main; "
        "sys.exit(main(['completion', 'bash']))"
    )
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.run(
        [sys.executable, "-c", program],
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    assert (process.returncode, process.stderr) == (1, b"")


# ---- what people type ---------------------------------------------------------------


def test_configs_whose_values_are_not_printed() -> None:
    known = facts().brokers
    passwords = {name for name, each in known.items() if each.kind == "password"}
    assert {name for name in known if is_secret(name)} == passwords
    assert is_secret("listener.name.x.plain.sasl.jaas.config")


class _Groups:
    """Lists groups, as `kafkaio.Admin` does."""

    async def list_groups(self) -> dict[str, GroupListing]:
        return {
            name: GroupListing(
                group_id=name, protocol_type="", state=None, type=kind, coordinator=0
            )
            for name, kind in [
                ("a", GroupType.CONSUMER),
                ("b", GroupType.SHARE),
                ("c", GroupType.STREAMS),
            ]
        }


async def test_what_to_use_for_groups_of_other_types() -> None:
    admin: Any = _Groups()
    found = await not_of_consumers(admin, ["a", "b", "c", "d"])
    assert {name: str(error).split(": ")[1] for name, error in found.items()} == {
        "b": "use kafkaio share-groups",
        "c": (
            "kafkaio groups offsets shows its offsets, and kafka-streams-groups.sh "
            "its members"
        ),
    }
    unknown = await not_of_consumers(admin, ["a", "d"], unknown=True)
    assert [str(error) for error in unknown.values()] == ["group 'd' does not exist"]


def test_names_by_pattern() -> None:
    known = ["a1", "a2", "b1"]
    assert chosen("topic", [], known) == known
    assert chosen("topic", ["a*", "a1", "x"], known) == ["a1", "a2", "x"]
    assert chosen("topic", ["[ab]1"], known, regex=True) == ["a1", "b1"]
    with pytest.raises(CommandFailed, match="no topic matches 'c"):
        chosen("topic", ["c*"], known)
    with pytest.raises(click.UsageError, match="not a valid regular expression"):
        chosen("topic", ["("], known, regex=True)


def test_times_durations_partitions() -> None:
    day = datetime(2026, 1, 31, tzinfo=UTC)
    assert moment_of("2026-01-31") == moment_of("@1769817600000") == day
    assert moment_of("2026-01-31T01:00:00+01:00") == day
    assert moment_of("end") == moment_of("-1") == "latest"
    for text, seconds in [
        ("90s", 90),
        ("2h30m", 9000),
        ("P1DT1S", 86401),
        ("1.5s", 1.5),
    ]:
        assert duration_of(text).total_seconds() == seconds
    for text in ("", "P", "PT", "soon", "5", "P1M"):
        with pytest.raises(click.UsageError, match="is not a duration"):
            duration_of(text)
    with pytest.raises(click.UsageError, match="is too long"):
        duration_of("99999999999d")
    assert partitions_of_topic("t") == ("t", None)
    assert partitions_of_topic("t:3,0-2,3") == ("t", [3, 0, 1, 2])
    for text in ("t:", "t:2-1"):
        with pytest.raises(click.UsageError):
            partitions_of_topic(text)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "binary"
    path.write_bytes(b"\xff")
    for words in (
        ("request", "Metadata", f"@{path}"),
        ("reassign", "verify", str(path)),
        ("records", "delete", "--offset-json-file", str(path)),
        ("groups", "reset", "g", "--from-file", str(path)),
        ("topics", "list", "--config", str(path)),
    ):
        result = run(*words).check(2)
        assert result.err.endswith(f": {path}: not text in UTF-8\n")


def test_an_argument_that_is_no_text_is_refused() -> None:
    result = run("produce", "t", "-k", "\udcff").check(2)
    assert result.err == "kafkaio: '\\udcff' is not text in UTF-8\n"


# ---- completion ---------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_of_shells(shell: str) -> None:
    script = run("completion", shell).check().out
    assert "_KAFKAIO_COMPLETE" in script
    assert "kafkaio" in script


def test_words_are_completed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_KAFKAIO_COMPLETE", "bash_complete")
    for words, position, wanted in [
        ("kafkaio topi", 1, {"plain,topics"}),
        ("kafkaio topics de", 2, {"plain,describe", "plain,delete"}),
        ("kafkaio bro", 1, {"plain,broker"}),
        # No broker is there: no names, and no error.
        ("kafkaio topics describe -b localhost:1 x", 5, set()),
    ]:
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(position))
        with pytest.raises(SystemExit):
            main([])
        assert {*capsys.readouterr().out.split()} == wanted
