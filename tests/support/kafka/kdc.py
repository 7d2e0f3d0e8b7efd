"""A Kerberos server for tests: MIT's ``krb5kdc`` as a child process (RFC 4120).

It listens on 127.0.0.1 only. Its database, keys and settings are in a directory of its
own, and whoever uses it finds its settings by ``KRB5_CONFIG``: it neither reads nor
changes what the machine has in ``/etc``, and needs no rights of root.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from kafkaio.testing.kafka._launcher import Launcher
from kafkaio.testing.kafka._nodes import JvmNode, free_ports
from kafkaio.testing.kafka._options import ClusterOptions
from kafkaio.testing.kafka._properties import Properties, listener_prefix
from kafkaio.testing.kafka._releases import KafkaNotStarted
from kafkaio.testing.kafka._sidecar import Sidecar

_REALM: Final = "KAFKAIO.TEST"
_SERVICE: Final = "kafka/127.0.0.1"
_KDC: Final = "KDC"
_PROGRAMS: Final = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit", "klist", "env")
_PACKAGES: Final = "krb5-kdc krb5-admin-server krb5-user"
#: Debian has the server's programs where an ordinary user's PATH does not look.
_MORE_PLACES: Final = ("/usr/sbin", "/sbin")
_READY: Final = "commencing operation"
_PORT_TAKEN: Final = "Address already in use"
_START_SECONDS: Final = 20.0
_COMMAND_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.02
_PORT_ATTEMPTS: Final = 3
#: The key of the database, which lives as long as the cluster.
_MASTER_KEY: Final = "kafkaio-testing"

#: For clients, among them the brokers' Java. Names are taken as they are given.
_CLIENT_SETTINGS: Final = """\
[libdefaults]
 default_realm = {realm}
 udp_preference_limit = 1
 rdns = false
 dns_canonicalize_hostname = false
 dns_lookup_kdc = false
 dns_lookup_realm = false
[realms]
 {realm} = {{
  kdc = 127.0.0.1:{port}
 }}
[domain_realm]
 127.0.0.1 = {realm}
 localhost = {realm}
"""
_SERVER_SETTINGS: Final = """\
[kdcdefaults]
 kdc_listen = 127.0.0.1:{port}
 kdc_tcp_listen = 127.0.0.1:{port}
[realms]
 {realm} = {{
  database_name = {directory}/principal
  key_stash_file = {directory}/stash
  acl_file = {directory}/kadm5.acl
 }}
[logging]
 kdc = STDERR
 default = STDERR
"""

#: By which name kadmin.local says that a query failed.
_FULL_NAMES: Final = {
    "addprinc": "add_principal",
    "delprinc": "delete_principal",
    "ktadd": "kadmin.local",
}

_LOGIN_MODULE: Final = "com.sun.security.auth.module.Krb5LoginModule"
#: A name without its realm, as by default; old releases do not find the default realm
#: on a new Java.
_NAME_RULES: Final = "RULE:[1:$1],RULE:[2:$1],DEFAULT"


@dataclass(frozen=True, slots=True, kw_only=True)
class KerberosService:
    """What a broker is for Kerberos (RFC 4120).

    Attributes:
        principal: ``kafka/HOST@REALM``; clients reach brokers by that host.
        keytab: The file with its keys.
    """

    principal: str
    keytab: Path


Spawn: TypeAlias = Callable[[JvmNode, Sequence[str | Path]], None]


class Kdc:
    """A Kerberos server with a realm of its own.

    Its methods block for some ten milliseconds, and may be called from any thread.

    Args:
        directory: Where all its files are; made if missing.
        spawn: Starts its process, and sees to the end of it.

    Attributes:
        realm: The realm's name.
        directory: Where all its files are.

    Raises:
        KafkaNotStarted: The programs are not installed.
    """

    def __init__(self, directory: Path, spawn: Spawn):
        self.realm = _REALM
        self.directory = directory
        self._programs = _find_programs()
        self._spawn = spawn
        self._node: JvmNode | None = None

    def __repr__(self) -> str:
        return f"<Kdc {self.realm} {self._node!r}>"

    @property
    def config(self) -> Path:
        """The file ``krb5.conf`` for clients."""
        return self.directory / "krb5.conf"

    @property
    def node(self) -> JvmNode:
        """Its process.

        Raises:
            RuntimeError: It was not started.
        """
        if self._node is None:
            raise RuntimeError("the KDC was not started")
        return self._node

    @property
    def service(self) -> KerberosService:
        """What a broker logs in as, once `start` has returned."""
        return KerberosService(
            principal=f"{_SERVICE}@{self.realm}",
            keytab=self.directory / "service.keytab",
        )

    def environment(self, cache: Path | None = None) -> dict[str, str]:
        """Return the variables by which a client finds this server and its tickets.

        Args:
            cache: The credentials cache, a file that `kinit` has filled; by default
                one that does not exist.
        """
        return {
            "KRB5_CONFIG": str(self.config),
            "KRB5CCNAME": f"FILE:{cache or self.directory / 'no-tickets'}",
        }

    def start(self) -> None:
        """Make the database and start the server; return when it answers.

        Raises:
            KafkaNotStarted: A step failed; the message has what the program said.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        for last in [False] * (_PORT_ATTEMPTS - 1) + [True]:
            (port,) = free_ports(1)
            self._write_settings(port)
            if not (self.directory / "principal").exists():
                made = ("create", "-s", "-r", self.realm, "-P", _MASTER_KEY)
                self._run("kdb5_util", *made)
            node = JvmNode(0, self.directory, {_KDC: port})
            if self._is_started(node, may_fail=not last):
                self._node = node
                break
        self._make_keys(_SERVICE, self.service.keytab)

    def _write_settings(self, port: int) -> None:
        facts = {"realm": self.realm, "port": port, "directory": self.directory}
        self.config.write_text(_CLIENT_SETTINGS.format(**facts), "utf-8")
        server = self.directory / "kdc.conf"
        server.write_text(_SERVER_SETTINGS.format(**facts), "utf-8")

    def _is_started(self, node: JvmNode, *, may_fail: bool) -> bool:
        """Start the process and wait for it; False if another has taken its port."""
        node.log_file.unlink(missing_ok=True)
        variables = [f"{name}={value}" for name, value in self._variables().items()]
        program = self._programs["krb5kdc"]
        self._spawn(node, [self._programs["env"], *variables, program, "-n"])
        end = time.monotonic() + _START_SECONDS
        while _READY not in node.log():
            if node.pid is None:
                node.kill()  # so that nothing watches its process id any more
                if may_fail and _PORT_TAKEN in node.log():
                    return False
                raise KafkaNotStarted(f"krb5kdc has ended:\n{node.complaint()}")
            if time.monotonic() > end:
                node.kill()
                raise KafkaNotStarted(f"krb5kdc is not ready:\n{node.complaint()}")
            time.sleep(_POLL_SECONDS)
        return True

    # Principals

    def add_principal(self, name: str, *, ticket_life: int | None = None) -> Path:
        """Add a principal with random keys.

        Args:
            name: The principal, without the realm.
            ticket_life: The longest life of its tickets, in seconds; None for a day.

        Returns:
            A new keytab with its keys.

        Raises:
            KafkaNotStarted: It exists already, or the program failed.
        """
        keytab = self.directory / f"{name.replace('/', '-')}.keytab"
        self._make_keys(name, keytab, ticket_life)
        return keytab

    def _make_keys(self, name: str, keytab: Path, life: int | None = None) -> None:
        limit = [] if life is None else ["-maxlife", f'"{life} seconds"']
        self._administer("addprinc", "-randkey", *limit, name)
        keytab.unlink(missing_ok=True)
        self._administer("ktadd", "-q", "-norandkey", "-k", str(keytab), name)
        if not keytab.exists():
            raise KafkaNotStarted(f"kadmin.local wrote no keytab of {name}")

    def delete_principal(self, name: str) -> None:
        """Delete a principal; tickets that it has stay valid to their ends.

        Raises:
            KafkaNotStarted: It does not exist, or the program failed.
        """
        self._administer("delprinc", "-force", name)

    def kinit(self, name: str, keytab: Path, cache: Path) -> None:
        """Get a ticket by a keytab.

        Args:
            name: The principal, without the realm.
            keytab: Has its keys.
            cache: The file to put the ticket into.

        Raises:
            KafkaNotStarted: The server gave none; the message says why.
        """
        self._run("kinit", "-c", f"FILE:{cache}", "-kt", str(keytab), name)

    def has_ticket(self, cache: Path) -> bool:
        """Return whether a credentials cache has a ticket that has not ended."""
        command = [self._programs["klist"], "-s", "-c", f"FILE:{cache}"]
        found = subprocess.run(
            command,
            env=self._environment(),
            timeout=_COMMAND_SECONDS,
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return found.returncode == 0

    # Programs

    def _variables(self) -> dict[str, str]:
        server = {"KRB5_KDC_PROFILE": str(self.directory / "kdc.conf")}
        return self.environment() | server

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "LC_ALL": "C", **self._variables()}

    def _administer(self, *words: str) -> None:
        said = self._run("kadmin.local", "-r", self.realm, "-q", " ".join(words))
        # It ends with 0 whatever its query does, and begins an error with the query.
        begins = (f"{words[0]}:", f"{_FULL_NAMES[words[0]]}:")
        problems = [line for line in said.splitlines() if line.startswith(begins)]
        if problems:
            raise KafkaNotStarted("; ".join(problems))

    def _run(self, program: str, *words: str) -> str:
        """Run a program and return what it wrote.

        Raises:
            KafkaNotStarted: It failed or took too long.
        """
        try:
            done = subprocess.run(
                [self._programs[program], *words],
                env=self._environment(),
                cwd=self.directory,
                timeout=_COMMAND_SECONDS,
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        except subprocess.TimeoutExpired:
            raise KafkaNotStarted(f"{program} did not end") from None
        if done.returncode:
            raise KafkaNotStarted(f"{program}: {done.stdout.strip()}")
        return done.stdout


def _find_programs() -> dict[str, str]:
    """Return the path of each program.

    Raises:
        KafkaNotStarted: Some are not installed; names them and their packages.
    """
    places = os.pathsep.join([os.environ.get("PATH", ""), *_MORE_PLACES])
    found = {name: shutil.which(name, path=places) for name in _PROGRAMS}
    missing = [name for name, path in found.items() if path is None]
    if missing:
        raise KafkaNotStarted(
            f"a Kerberos server needs {', '.join(missing)}: apt-get install {_PACKAGES}"
        )
    return {name: path for name, path in found.items() if path is not None}


class KerberosSidecar(Sidecar):
    """A Kerberos server beside brokers that take GSSAPI, too.

    Attributes:
        kdc: The server, once the cluster is open.
    """

    def __init__(self) -> None:
        self.kdc: Kdc | None = None

    def start(self, launcher: Launcher, options: ClusterOptions) -> None:
        """Start the server; it outlives an attempt of the brokers that fails."""
        del options
        if self.kdc is not None:
            return
        kdc = Kdc(launcher.directory / "kdc", launcher.spawn)
        with launcher.step():
            kdc.start()
        self.kdc = kdc
        launcher.add_flag(f"-Djava.security.krb5.conf={kdc.config}")

    def configure(self, properties: Properties, listeners: Sequence[str]) -> Properties:
        """Return what adds GSSAPI to listeners; their other mechanisms stay."""
        assert self.kdc is not None
        return kerberos_properties(properties, listeners, self.kdc.service)


def kerberos_properties(
    properties: Properties, listeners: Sequence[str], service: KerberosService
) -> Properties:
    """Return what adds GSSAPI to listeners; their other mechanisms stay."""
    login = (
        f"{_LOGIN_MODULE} required useKeyTab=true storeKey=true "
        f'keyTab="{service.keytab}" principal="{service.principal}";'
    )
    found: Properties = {
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal.to.local.rules": _NAME_RULES,
    }
    for listener in listeners:
        prefix = listener_prefix(listener)
        enabled = f"{prefix}sasl.enabled.mechanisms"
        found[enabled] = f"{properties[enabled]},GSSAPI"
        found[f"{prefix}gssapi.sasl.jaas.config"] = login
    return found
