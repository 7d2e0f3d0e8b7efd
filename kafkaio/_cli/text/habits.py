"""Words of other tools, and their equivalents here.

The words are those of Kafka's own scripts, of kcat, rpk and kcl. The error for an
unknown command or option suggests the equivalent. The module is loaded only after a
mistake.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Final

#: Commands of other tools, without the ``kafka-`` before them.
_COMMANDS: Final[Mapping[str, str]] = {
    "consumer-groups": "groups",
    "consumer-group": "groups",
    "delegation-tokens": "tokens",
    "txn": "transactions",
    "brokers": "cluster brokers",
    "nodes": "cluster brokers",
    "metadata": "cluster describe",
    "info": "cluster describe",
    "health": "cluster describe",
    "console-consumer": "consume",
    "console-share-consumer": "consume --share",
    "consumer": "consume",
    "read": "consume",
    "cat": "consume",
    "tail": "consume",
    "console-producer": "produce",
    "producer": "produce",
    "send": "produce",
    "publish": "produce",
    "write": "produce",
    "producer-perf-test": "bench produce",
    "consumer-perf-test": "bench consume",
    "e2e-latency": "bench both",
    "perf": "bench",
    "benchmark": "bench",
    "mirror": "copy",
    "mirror-maker": "copy",
    "connect-mirror-maker": "copy",
    "get-offsets": "offsets",
    "delete-records": "records delete",
    "leader-election": "elect",
    "reassign-partitions": "reassign",
    "partitions": "reassign",
    "metadata-quorum": "quorum",
    "broker-api-versions": "api-versions",
    "versions": "api-versions",
    "dump-log": "log dump",
    "server": "broker",
    "server-start": "broker",
    "start": "broker",
    "serve": "broker",
    "raw-req": "request",
    "misc": "request",
    "list": "topics list",
    "ls": "topics list",
    "describe": "topics describe",
    "create": "topics create",
    "delete": "topics delete",
    "seek": "groups reset",
    "reset": "groups reset",
    "reset-offsets": "groups reset",
    "schema": "schemas",
    "subject": "schemas",
    "subjects": "schemas list",
    "schema-registry": "schemas",
    "registry": "schemas",
    "avro-console-consumer": "consume",
    "avro-console-producer": "produce",
    "json-schema-console-consumer": "consume",
    "json-schema-console-producer": "produce",
    "protobuf-console-consumer": "consume",
    "protobuf-console-producer": "produce",
    "version": "--version",
    "help": "--help",
}
#: Verbs of other tools, with candidates: the first one that the command has is meant.
_VERBS: Final[Mapping[str, tuple[str, ...]]] = {
    "ls": ("list",),
    "show": ("describe", "get", "status", "list"),
    "get": ("describe", "status", "list"),
    "info": ("describe", "status"),
    "desc": ("describe",),
    "status": ("describe",),
    "rm": ("delete", "unset", "expire"),
    "remove": ("delete", "unset", "expire"),
    "drop": ("delete",),
    "del": ("delete", "unset"),
    "new": ("create", "set"),
    "add": ("create", "set"),
    "make": ("create",),
    "put": ("set", "create"),
    "update": ("alter", "set", "upgrade"),
    "change": ("alter", "set"),
    "edit": ("alter", "set"),
    "set": ("alter",),
    "alter": ("set",),
    "alter-config": ("alter",),
    "seek": ("reset",),
    "reset-offsets": ("reset",),
    "offset-delete": ("delete-offsets",),
    "members": ("describe",),
    "generate": ("plan",),
    "run": ("execute",),
    "check": ("verify",),
    "end": ("terminate", "abort"),
}
#: Actions of other tools that are commands of their own here.
_ELSEWHERE: Final[Mapping[tuple[str, str], str]] = {
    ("topics", "consume"): "consume",
    ("topics", "produce"): "produce",
    ("topics", "trim"): "records delete",
    ("topics", "trim-prefix"): "records delete",
    ("groups", "lag"): "lag",
    ("cluster", "config"): "configs get broker default",
    ("cluster", "info"): "cluster describe",
    ("cluster", "metadata"): "cluster describe",
    ("cluster", "health"): "cluster describe",
    ("cluster", "quotas"): "quotas describe",
    ("cluster", "txn"): "transactions list",
    ("cluster", "logdirs"): "log-dirs",
    ("schemas", "check-compatibility"): "schemas check",
    ("schemas", "validate"): "schemas check",
    ("schemas", "compatibility-level"): "schemas compatibility",
    ("schemas", "config"): "schemas compatibility",
    ("schemas", "describe"): "schemas get",
    ("schemas", "show"): "schemas get",
    ("schemas", "create"): "schemas register",
    ("schemas", "schema"): "schemas",
    ("schemas", "subject"): "schemas list",
}
#: Kafka's scripts take the action as an option; here it is a subcommand.
_ACTIONS: Final[Mapping[str, str]] = {
    "--list": "list",
    "--describe": "describe",
    "--create": "create",
    "--delete": "delete",
    "--alter": "alter",
    "--add": "create",
    "--remove": "delete",
    "--reset-offsets": "reset",
    "--delete-offsets": "delete-offsets",
    "--members": "describe",
    "--offsets": "offsets",
    "--generate": "plan",
    "--execute": "execute",
    "--verify": "verify",
    "--cancel": "cancel",
    "--renew": "renew",
    "--expire": "expire",
}
#: Kafka's scripts take topics and groups by an option; here they are arguments.
_TOPIC: Final = frozenset({"--topic", "--topics", "-t", "--include", "--whitelist"})
_TOPIC_COMMANDS: Final = frozenset(
    {"topics", "offsets", "consume", "produce", "bench", "copy", "replay", "elect"}
)
_GROUP: Final = frozenset({"--group", "--groups", "-g", "-G", "--group-id"})
_GROUP_COMMANDS: Final = frozenset({"groups", "lag", "share-groups"})

#: Hints that several options share.
_SERVERS: Final = "use -b HOST:PORT"
_FILE: Final = "use --config FILE"
_PROPERTY: Final = "use -X KEY=VALUE"
_LAYOUT: Final = "use -f LAYOUT, such as -f '%k:%v\\n'"
_REGISTRY: Final = "use -r URL with -s avro, json or protobuf"
_AVRO: Final = "use -s avro, json or protobuf, with -r URL"
_LAYOUT_OR_REGISTRY: Final = f"{_LAYOUT}; for a schema registry {_REGISTRY}"
_BEGINNING: Final = (
    "leave it out: it reads from the beginning, unless -o says otherwise"
)
_COUNT: Final = "use -c COUNT"
_RECORDS: Final = "use -n RECORDS"
_SASL: Final = "use -X sasl.username=NAME -X 'sasl.password=${env:VARIABLE}'"
_SECURITY: Final = "use -X security.protocol=SSL -X ssl.truststore.location=FILE"
_CONFIG: Final = "use kafkaio configs set KIND NAME KEY=VALUE"
_NO_CONFIG: Final = "use kafkaio configs unset KIND NAME KEY"
#: For every command, unless `_BY_COMMAND` has an entry of its own.
_ANYWHERE: Final[Mapping[str, str]] = {
    "--bootstrap-servers": _SERVERS,
    "--bootstrap": _SERVERS,
    "--broker-list": _SERVERS,
    "--brokers": _SERVERS,
    "--broker": _SERVERS,
    "--server": _SERVERS,
    "--zookeeper": f"{_SERVERS}: kafkaio asks the brokers",
    "--bootstrap-controller": "use -X bootstrap.controllers=HOST:PORT",
    "--command-config": _FILE,
    "--consumer.config": _FILE,
    "--producer.config": _FILE,
    "--consumer-config": _FILE,
    "--producer-config": _FILE,
    "--admin.config": _FILE,
    "--command-property": _PROPERTY,
    "--consumer-property": _PROPERTY,
    "--producer-property": _PROPERTY,
    "--producer-props": _PROPERTY,
    "--user": _SASL,
    "--password": _SASL,
    "--sasl-mechanism": "use -X sasl.mechanism=MECHANISM",
    "--tls-enabled": _SECURITY,
    "--tls-truststore": _SECURITY,
    "--request-timeout": "use --timeout SECONDS",
    "--timeout-ms": "use --timeout SECONDS",
    "--format": "use --json, --jsonl, or a pipe for columns with tabs",
    "--quiet": "leave it out: only results go to stdout",
    "--debug": "use -v",
    "--version": "use kafkaio --version",
    "--force": "use --yes",
}
#: Options of kcat that mean the same for its consumer and its producer.
_KCAT: Final[Mapping[str, str]] = {
    "-F": _FILE,
    "-m": "use --timeout SECONDS",
    "-q": "leave it out: only results go to stdout",
    "-d": "use -v",
}
#: Options of Kafka's console consumer, of kcat and of rpk.
_CONSUME: Final[Mapping[str, str]] = {
    **_KCAT,
    "--from-beginning": _BEGINNING,
    "-C": "leave it out: the command says it",
    "--max-messages": _COUNT,
    "--num": _COUNT,
    "-n": _COUNT,
    "--timeout-ms": "use -e: it exits at the end",
    "--isolation-level": "use --read-committed",
    "--property": _LAYOUT_OR_REGISTRY,
    "--formatter": _LAYOUT,
    "--formatter-property": _LAYOUT_OR_REGISTRY,
    "--formatter-config": _LAYOUT,
    "--key-deserializer": "use -s key=FORMAT, such as -s key=long",
    "--value-deserializer": "use -s FORMAT, such as -s long",
    "--key-format": "use -s key=FORMAT, such as -s key=avro",
    "-D": _LAYOUT,
    "-K": _LAYOUT,
    "-Z": _LAYOUT,
    "--enable-systest-events": "use --jsonl",
    "-u": "leave it out: lines are printed as they come",
    "-G": "use -g GROUP",
    "--use-schema-registry": _AVRO,
    "--value-format": _AVRO,
    "--schema-registry-endpoint": _REGISTRY,
    "--schema-registry-url": _REGISTRY,
    "--skip-message-on-error": "use --skip-errors",
    "--offsets": "use -o PLACE",
    "--follow": "leave it out: without -e it goes on",
}
#: Options of Kafka's console producer, of kcat and of rpk.
_PRODUCE: Final[Mapping[str, str]] = {
    **_KCAT,
    "-P": "leave it out: the command says it",
    "--property": _LAYOUT_OR_REGISTRY,
    "--reader-property": _LAYOUT_OR_REGISTRY,
    "--reader-config": _FILE,
    "--line-reader": _LAYOUT,
    "-D": _LAYOUT,
    "-K": "use -f LAYOUT, such as -f '%k:%v\\n'",
    "-l": "use --file FILE",
    "--compression-codec": "use -z CODEC",
    "--sync": "leave it out: the command waits for every record",
    "--batch-size": "use -X batch.size=BYTES",
    "--request-required-acks": "use -X acks=all",
    "--acks": "use -X acks=all",
    "--max-block-ms": "use -X max.block.ms=MILLISECONDS",
    "--message-send-max-retries": "use -X retries=NUMBER",
    "--allow-empty": "leave it out: an empty value is sent",
    "--value-format": _AVRO,
    "--key-format": "use -s key=FORMAT, such as -s key=avro",
    "--schema-registry-endpoint": _REGISTRY,
    "--schema-registry-url": _REGISTRY,
    "--value-schema": "use -s avro --schema FILE",
    "--key-schema": "use -s key=avro --schema key=FILE",
    "--value-schema-id": "use -s avro --schema-id ID",
    "--key-schema-id": "use -s key=avro --schema-id key=ID",
    "--schema-key-id": "use -s key=avro --schema-id key=ID",
    "--value-schema-file": "use -s avro --schema FILE",
    "--schema-type": "use -s avro, json or protobuf",
}
#: Options of kafka-producer-perf-test and kafka-consumer-perf-test.
_BENCH: Final[Mapping[str, str]] = {
    "--from-beginning": _BEGINNING,
    "--from-latest": "use -o end",
    "--num-records": _RECORDS,
    "--messages": _RECORDS,
    "--record-size": "use --size BYTES",
    "--throughput": "use --rate RECORDS, or leave it out for as fast as it goes",
    "--print-metrics": "leave it out",
    "--show-detailed-stats": "leave it out",
    "--payload-file": "use kafkaio produce --file FILE",
    "--acks": "use -X acks=all",
    "--threads": "leave it out",
    "--fetch-size": "use -X max.partition.fetch.bytes=BYTES",
}
_TOPICS: Final[Mapping[str, str]] = {
    "--under-replicated-partitions": "use --under-replicated",
    "--unavailable-partitions": "use --unavailable",
    "--exclude-internal": "leave it out: internal topics need --internal",
    "--topics-with-overrides": "use kafkaio configs get topic NAME",
    "--at-min-isr-partitions": "use --under-replicated",
    "--under-min-isr-partitions": "use --under-replicated",
    "--partition": "use -p PARTITIONS",
    "--replicas": "use -r REPLICATION_FACTOR",
    "--topic-id": "write the topic's name",
    "--set": "use -c KEY=VALUE",
}
_LAG: Final[Mapping[str, str]] = {
    "--all-groups": "write '*' in place of a group",
    "--describe": "leave it out: the command says it",
    "--members": "use kafkaio groups describe GROUP",
    "--state": "use kafkaio groups list",
}
_GROUPS: Final[Mapping[str, str]] = {
    "--all-groups": "write '*' in place of a group",
    "--all-topics": "leave it out: without --topic all topics are meant",
    "--to": "use --to-earliest, --to-latest or --to-datetime TIME",
    "--instance-ids": "use --instance-id ID",
}
_CONFIGS: Final[Mapping[str, str]] = {
    "--describe": "use kafkaio configs get KIND NAME",
    "--alter": _CONFIG,
    "--add-config": _CONFIG,
    "--set": _CONFIG,
    "--delete-config": _NO_CONFIG,
    "--delete": _NO_CONFIG,
    "--entity-type": "write the kind and the name, as in kafkaio configs get topic t",
    "--entity-name": "write the kind and the name, as in kafkaio configs get topic t",
    "--entity-default": "write default in place of the name",
    **dict.fromkeys(
        ("--topic", "--group", "--client-metrics", "--broker-logger"),
        "write the kind and the name, as in kafkaio configs get topic t",
    ),
    "--broker": "write the kind and the name, as in kafkaio configs get broker 0",
}
_REASSIGN: Final[Mapping[str, str]] = {
    "--reassignment-json-file": "write FILE without an option",
    "--broker-list": "use --broker NODE",
    "--preserve-throttles": "leave --clear-throttle out",
    "--additional": "leave it out",
}
_OFFSETS: Final[Mapping[str, str]] = {
    "--time": "use --at TIME",
    "--topic-partitions": "write TOPIC:0,1 without an option",
    "--partitions": "write TOPIC:0,1 without an option",
    "--exclude-internal-topics": "leave it out: internal topics need --internal",
    "-Q": "leave it out: the command says it",
}
_QUOTAS: Final[Mapping[str, str]] = {
    "--entity-type": "use --user NAME, --client-id ID or --ip ADDRESS",
    "--entity-name": "use --user NAME, --client-id ID or --ip ADDRESS",
    "--add-config": "use kafkaio quotas set NAME=NUMBER",
    "--delete-config": "use kafkaio quotas unset NAME",
    "--name": "use --user NAME, --client-id ID or --ip ADDRESS",
}
_USERS: Final[Mapping[str, str]] = {
    "--password": "leave it out: the password is asked for, or in KAFKAIO_NEW_PASSWORD",
    "-p": "leave it out: the password is asked for, or in KAFKAIO_NEW_PASSWORD",
    "--add-config": "use kafkaio users set NAME",
    "--delete-config": "use kafkaio users delete NAME",
    "--entity-type": "write the user without an option",
    "--entity-name": "write the user without an option",
    "--user": "write the user without an option",
}
#: kcat has modes in place of commands.
_ROOT: Final[Mapping[str, str]] = {
    "-L": "use kafkaio topics list",
    "-C": "use kafkaio consume TOPIC",
    "-P": "use kafkaio produce TOPIC",
    "-G": "use kafkaio consume TOPIC -g GROUP",
    "-Q": "use kafkaio offsets TOPIC --at TIME",
    "-t": "use kafkaio consume TOPIC or kafkaio produce TOPIC",
    "-V": "use --version",
}
#: Options of kafka-server-start, and of this command under other names.
_BROKER: Final[Mapping[str, str]] = {
    "--override": "use --config NAME=VALUE",
    "--topics": "use --topic NAME:PARTITIONS",
    "--log-dir": "use --data-dir DIR",
    "--log-dirs": "use --data-dir DIR",
    "--users": "use --user NAME:PASSWORD",
    "--acl": "use --acls",
    "--ssl": "use --tls",
    "--brokers": "use --nodes NUMBER",
    "--version": "use --as-version RELEASE",
    "-p": "use --port PORT",
    "-b": "use --host ADDRESS --port PORT",
    "--bootstrap-server": "use --host ADDRESS --port PORT",
}
#: Options of kafka-dump-log.
_LOG: Final[Mapping[str, str]] = {
    "--files": "write the files without an option",
    "--print-data-log": "use --records",
    "--deep-iteration": "use --records",
    "--verify-index-only": "use kafkaio log verify",
    "--index-sanity-check": "use kafkaio log verify",
    "--offsets-decoder": "use --records",
    "--transaction-log-decoder": "use --records",
}
#: By command; the empty name stands for options before any command.
_BY_COMMAND: Final[Mapping[str, Mapping[str, str]]] = {
    "": _ROOT,
    "consume": _CONSUME,
    "replay": {"--from-beginning": _BEGINNING},
    "copy": {
        "--from-beginning": _BEGINNING,
        "--consumer.config": "use --config FILE",
        "--producer.config": "use --to-profile NAME",
        "--num.streams": "leave it out",
    },
    "produce": _PRODUCE,
    "bench": _BENCH,
    "topics": _TOPICS,
    "groups": _GROUPS,
    "lag": _LAG,
    "share-groups": {
        "--to": "use --to-earliest, --to-latest or --to-datetime TIME",
        "--all-topics": "use --topic TOPIC",
    },
    "configs": _CONFIGS,
    "reassign": _REASSIGN,
    "offsets": _OFFSETS,
    "quotas": _QUOTAS,
    "users": _USERS,
    "broker": _BROKER,
    "log": _LOG,
    "elect": {
        "--election-type": "use kafkaio elect preferred or kafkaio elect unclean",
        "--path-to-json-file": "write TOPIC:PARTITION without an option",
        "--all-topic-partitions": "use --all",
        "--partition": "write TOPIC:PARTITION without an option",
    },
    "log-dirs": {
        "--broker-list": "use --broker NODE",
        "--topic-list": "use --topic TOPIC",
        "--describe": "leave it out",
    },
    "tokens": {
        "--max-life-time-period": "use --max-lifetime DURATION",
        "--renewer-principal": "use --renewer PRINCIPAL",
        "--owner-principal": "use --owner PRINCIPAL",
        "--hmac": "write the token's id without an option",
        "--renew-time-period": "use --period DURATION",
        "--expiry-time-period": "use --period DURATION",
    },
    "transactions": {
        "--transactional-id": "write the transactional id without an option",
        "--broker-id": "use --broker NODE",
        "--partition": "write TOPIC:PARTITION without an option",
        "--start-offset": "write the offset behind TOPIC:PARTITION",
    },
    "acls": {
        "--allow-host": "use --allow-principal with it",
        "--resource-pattern-type": "use --pattern TYPE",
        "--authorizer-properties": _SERVERS,
    },
    "schemas": {
        "--schema": "write FILE without an option",
        "--subject": "write the subject without an option",
        "--schema-version": "use --version VERSION",
        "--schema-id": "use --id ID",
        "--level": "use --set LEVEL",
        "--global": "leave SUBJECT out",
        "--references": "use --reference NAME=SUBJECT:VERSION",
        "--refs": "use --reference NAME=SUBJECT:VERSION",
        "--schema-registry-endpoint": "use -r URL",
        "--schema-registry-url": "use -r URL",
        "--url": "use -r URL",
    },
    "features": {"--feature": "write NAME=LEVEL without an option"},
    "request": {"-k": "write the name of the API without an option"},
    "client-metrics": {
        "--name": "write the name without an option",
        "--interval": "use --interval-ms MILLISECONDS",
    },
    "quorum": {
        "--replication": "use kafkaio quorum replication",
        "--status": "use kafkaio quorum status",
        "--controller-id": "write the node's id without an option",
        "--controller-directory-id": "write the directory's id without an option",
    },
}


def command_for(word: str, known: Collection[str]) -> str:
    """Return the command that a word stands for; empty if none is close.

    Args:
        word: the word typed in place of a command.
        known: the names of all commands.
    """
    # People type the names of Kafka's scripts: kafka-topics.sh, kafka_topics.
    name = word.lower().replace("_", "-").removeprefix("kafka-")
    name = name.removesuffix(".sh").removesuffix(".bat")
    if name in known:
        return name
    if f"{name}s" in known:
        return f"{name}s"
    return _COMMANDS.get(name) or _near(name, known)


def subcommand_for(group: str, word: str, known: Collection[str]) -> str:
    """Return the subcommand that a word stands for.

    Args:
        group: the command.
        word: the word typed in place of a subcommand.
        known: its subcommands.

    Returns:
        The command and the subcommand; empty if none is close.
    """
    name = word.lower().replace("_", "-")
    if (group, name) in _ELSEWHERE:
        return _ELSEWHERE[group, name]
    meant = [name, *_VERBS.get(name, ())]
    found = next((verb for verb in meant if verb in known), "") or _near(name, known)
    return f"{group} {found}" if found else ""


def _near(name: str, known: Collection[str]) -> str:
    # With the default of 0.6, words of three letters match that share two of them.
    near = get_close_matches(name, known, 1, 0.7)
    return near[0] if near else ""


def option_hint(
    path: Sequence[str], option: str, subcommands: Collection[str] = ()
) -> str:
    """Return an equivalent of an unknown option.

    Args:
        path: the words of the command, without ``kafkaio``.
        option: the option, without its value.
        subcommands: those of the command, or of the one above it.

    Returns:
        A hint such as ``use -b HOST:PORT``; empty if there is none.
    """
    first = path[0] if path else ""
    # An action that the command has comes first: `groups --describe` is not answered
    # with the general meaning of --describe. Then the command, then all commands.
    action = _ACTIONS.get(option, "")
    if action in subcommands:
        if [*path[1:]] == [action]:
            return "leave it out: the command says it"
        return f"use kafkaio {first} {action}"
    own = _BY_COMMAND.get(first, {}).get(option)
    if own is not None:
        return own
    if option in _TOPIC and first in _TOPIC_COMMANDS:
        return _without("topic", path, subcommands)
    if option in _GROUP and first in _GROUP_COMMANDS:
        return _without("group", path, subcommands)
    return _ANYWHERE.get(option, "")


def _without(what: str, path: Sequence[str], subcommands: Collection[str]) -> str:
    words = [*path]
    if subcommands and len(words) == 1:
        words.append("describe" if "describe" in subcommands else "COMMAND")
    command = " ".join(["kafkaio", *words, what.upper()])
    return f"write the {what} without an option: {command}"
