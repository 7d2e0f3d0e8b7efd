"""Every check by its name: `nox` runs what decides whether a change lands.

What is slow and deep runs at night: `nox -s nightly`, or a part of it,
`nox -s "nightly(differential)"`. `nox -l` lists all sessions.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import nox

sys.path.insert(0, str(Path(__file__).parent))  # nox does not

from releasing import archives, tree

# Images with Python set this. Each process would compile what it imports anew, tests
# with their rewritten asserts included: two thirds of the time to collect them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = [
    "lint",
    "imports",
    "types",
    "docs",
    "codegen",
    "package",
    "unit",
    "crowded",
    "uvloop",
    "oldest",
    "newest",
    "simulated",
    "mock_cluster",
    "embedded",
    "integration",
    "spark",
    "spark_connect",
]

#: The newest and the oldest Kafka are part of every run, and the marker of what runs on
#: them (see tests/integration/every_change.py); all run everything at night.
KAFKA_VERSIONS = {"4.4": "newest_kafka", "2.1": "oldest_kafka"}
ALL_KAFKA_VERSIONS = ["4.4", "4.3", "4.2", "4.0", "3.9", "2.8", "2.1"]
#: What has to be covered in every branch; generated modules are not measured.
PURE = "kafkaio/_machines/*,kafkaio/protocol/*"
#: Percent of the branches of all of kafkaio.
COVERED = 95


#: Installs as a machine without a C compiler would, which is also quicker.
WITHOUT_COMPILER = {"KAFKAIO_NO_EXTENSION": "1"}


#: What is pinned and hashed; see requirements/README.md.
LOCKS = {
    "requirements/ci.txt": ["lint", "types", "test", "docs", "rehearsal"],
    "requirements/release.txt": ["release"],
}


def locked(session: nox.Session) -> None:
    """Install the pinned dependencies first, if KAFKAIO_LOCKED asks for that.

    What is installed afterwards finds them and takes no other version.
    """
    if os.environ.get("KAFKAIO_LOCKED"):
        session.install("--require-hashes", "-r", next(iter(LOCKS)))


def has_codec(suffix: str) -> bool:
    """Whether the compiled codec of the checkout is current for a Python.

    Args:
        suffix: what the names of that Python's extension modules end in.
    """
    records = Path("kafkaio/_records")
    built = records / f"_speedups{suffix}"
    sources = [Path("setup.py"), *records.glob("*.pyx"), *records.glob("*.pxi")]
    newest = max(path.stat().st_mtime for path in sources)
    return built.exists() and built.stat().st_mtime >= newest


def install(session: nox.Session, extras: str = "") -> None:
    """Install the checkout with the compiled codec, which is built once for a change.

    It lies in the source tree, where an editable install finds it. To build it takes
    half a minute, which each session would spend.
    """
    if not has_codec(str(sysconfig.get_config_var("EXT_SUFFIX"))):
        session.install("cython>=3.1", "setuptools>=77")
        session.run("python", "setup.py", "-q", "build_ext", "--inplace")
    locked(session)
    session.install("-e", f".{extras}", env=WITHOUT_COMPILER)


#: PySpark as a wheel; it is published as a source archive.
SPARK_WHEELS = Path(".nox", "wheels")


def install_spark(session: nox.Session) -> None:
    """Install the newest PySpark from a wheel that is built once for all sessions.

    To build it takes 20 seconds of two cores, which each session would spend where the
    index allows no copy of its files to be kept. A version that is newer than the wheel
    is built anew.
    """
    if not any(SPARK_WHEELS.glob("pyspark-*.whl")):
        session.install("pip")  # uv makes no wheel of what it downloads
        built = ("--no-deps", "-w", str(SPARK_WHEELS), "pyspark")
        session.run("python", "-m", "pip", "wheel", "-q", *built)
    session.install("--find-links", str(SPARK_WHEELS), "pyspark")


def groups(session: nox.Session, *names: str) -> None:
    """Install dependency groups of pyproject.toml."""
    locked(session)
    found = nox.project.dependency_groups(
        nox.project.load_toml("pyproject.toml"), *names
    )
    session.install(*found)


@nox.session
def lint(session: nox.Session) -> None:
    """Format and lint; also the spelling of identifiers and docs."""
    groups(session, "lint")
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("codespell")


@nox.session
def imports(session: nox.Session) -> None:
    """Layers, purity and the doors (see [tool.importlinter])."""
    session.install("-e", ".", env=WITHOUT_COMPILER)
    groups(session, "lint")
    session.run("lint-imports", "--no-cache")


#: What is typed beside the package. The tests of the embedded broker read its answers
#: attribute by attribute, so that a wrong annotation of a message shows there.
TYPED = [
    *(
        "examples",
        "tests/typing",
        "tests/sim",
        "tests/support",
        "tests/torture",
        "tests/meaning",
    ),
    *("tests/foreign_suites", "tests/spark"),
    "releasing",
    *("tests/unit/sim", "tests/unit/spark", "tests/unit/support", "tests/unit/testing"),
]


@nox.session
def types(session: nox.Session) -> None:
    """Prove the inside with mypy, and with pyright that users see every type."""
    # With Spark: pyright looks at the classes that ours are made from.
    install_spark(session)
    session.install("-e", ".[kafka,spark]", env=WITHOUT_COMPILER)
    groups(session, "types")
    session.run("mypy", "-n", "2")
    # Plugins of pytest that are found by their folder.
    session.run(
        *("mypy", "-n", "2", *TYPED),
        env={"MYPYPATH": "tests/foreign_suites/plugins"},
    )
    # What must be refused, and the programs of the docs; by pyright as well.
    session.run("pytest", "-p", "no:cacheprovider", "tests/typing")
    # Pyright does not follow the finder of an editable install.
    session.run(
        *("pyright", "--verifytypes", "kafkaio", "--ignoreexternal"),
        env={"PYTHONPATH": str(Path.cwd())},
    )


@nox.session
def docs(session: nox.Session) -> None:
    """Build the docs; every broken cross-reference is an error."""
    docs_installed(session)
    how = ("-nW", "--keep-going", "-j", "auto")
    session.run("sphinx-build", *how, "docs", "docs/_build/html")


def docs_installed(session: nox.Session) -> None:
    """Install what the docs are built with."""
    # With the libraries of what is described by its docstrings.
    extras = ".[kafka,cli,instrumentation,prometheus,registry]"
    session.install("-e", extras, env=WITHOUT_COMPILER)
    groups(session, "docs")


def on_links(session: nox.Session) -> None:
    """Follow the links of the docs that lead elsewhere; needs the network."""
    docs_installed(session)
    session.run("sphinx-build", "-b", "linkcheck", "docs", "docs/_build/links")


@nox.session
def codegen(session: nox.Session) -> None:
    """Check that what is generated from Kafka's jar is current.

    `nox -s codegen -- --write` writes it.
    """
    session.install("-e", ".[kafka]", env=WITHOUT_COMPILER)
    groups(session, "lint")
    is_to_write = "--write" in session.posargs
    session.run("python", "-m", "codegen", *([] if is_to_write else ["--check"]))


@nox.session
def package(session: nox.Session) -> None:
    """What the wheel and the source archive hold; at night with the compiled codec."""
    run_package(session)


def run_package(session: nox.Session, **env: str) -> None:
    """Build both as a release does, and look into them."""
    session.install("uv")
    session.install("-e", ".", env=WITHOUT_COMPILER)  # brings the dependencies
    groups(session, "portable")
    session.run("pytest", "tests/package", *session.posargs, env=env)


#: One more than there are cores: a third of the time of the unit tests is spent in
#: waits for programs, threads and sockets. Each worker collects for itself, so that a
#: few are enough.
PROCESSES = min((os.cpu_count() or 1) + 1, 4)
WORKERS = ["-n", str(PROCESSES), "--dist", "worksteal"]
#: Modules have brokers of their own, and wait for heartbeats and rebalances as much as
#: for the processor: three at a time keep two cores busy.
BROKERS = ["-n", "3", "--dist", "loadfile"]


#: Fewer examples than at night, see tests/unit/conftest.py, and a part of long tables.
EACH_CHANGE = ["--hypothesis-profile=change", "-m", "not nightly"]
#: Those of `kafkaio.spark` among them, which need Spark.
ALL_UNIT_TESTS = "tests/unit"
#: What touches records, and so the codec.
RECORD_TESTS = [
    "tests/unit/arrow",
    "tests/unit/consumer/test_stream.py",
    "tests/unit/producer",
    "tests/unit/records",
    "tests/unit/testing/clients",
    "tests/unit/testing/log",
]


@nox.session
@nox.parametrize("codec", ["compiled", "python"])
def unit(session: nox.Session, codec: str) -> None:
    """Pure machines, and the client against scripted brokers: nothing sleeps.

    The codec in Python runs what touches records; the rest of it at night.
    """
    whole = [ALL_UNIT_TESTS, "tests/meta"]
    tests = whole if codec == "compiled" else RECORD_TESTS
    run_unit(session, codec, *EACH_CHANGE, *tests, *session.posargs)


def run_unit(session: nox.Session, codec: str, *tests: str) -> None:
    """Run unit tests on one codec; both are there, and are compared in some tests."""
    if ALL_UNIT_TESTS in tests:
        install_spark(session)
    install(session, "[kafka]")
    groups(session, "test")
    env = {"KAFKAIO_CODEC": codec, "PYTHONASYNCIODEBUG": "1"}
    session.run("pytest", *WORKERS, *tests, env=env)


def shuffled(session: nox.Session) -> None:
    """The unit tests in an order of chance, whose seed the first lines of output tell.

    A test that only passes before or after another fails on the machine where workers
    get tests in that order. ``--randomly-seed=N`` repeats an order.
    """
    groups(session, "shuffled")
    run_unit(session, "compiled", *EACH_CHANGE, ALL_UNIT_TESTS, *session.posargs)


#: What another Python, or another version of a dependency, could break.
PORTABLE_TESTS = [
    *EACH_CHANGE,
    "tests/unit/runtime",
    "tests/unit/records",
    "tests/unit/net",
    "tests/unit/producer",
    # These try each byte of a handshake, whatever Python there is.
    "--ignore=tests/unit/net/test_handshake_faults.py",
    "--ignore=tests/unit/net/test_hostile.py",
]
QUICKSTART = ["examples/quickstart.py", "--records", "20000"]


def interpreters(session: nox.Session) -> list[str]:
    """Every supported CPython on this machine, oldest first."""
    found = pythons(session)
    return [found[numbers] for numbers in sorted(found)]


def pythons(session: nox.Session) -> dict[tuple[int, ...], str]:
    """Every supported CPython on this machine, by its version.

    Those on PATH, and all that pyenv has installed, not only the one it selects.
    """
    if shutil.which("pyenv"):
        bare = session.run("pyenv", "versions", "--bare", silent=True, external=True)
        session.env["PYENV_VERSION"] = ":".join(str(bare).split())
    listed = session.run(
        *("uv", "python", "list", "--only-installed", "--no-python-downloads"),
        *("--output-format", "json"),
        silent=True,
        stderr=subprocess.DEVNULL,  # where it says what is no Python
    )
    found: dict[tuple[int, ...], str] = {}
    for python in json.loads(str(listed)):
        numbers = tuple(python["version_parts"].values())
        is_final = python["version"] == ".".join(map(str, numbers))
        if python["implementation"] == "cpython" and is_final and numbers >= (3, 11):
            found.setdefault(numbers, python["path"])
    session.log(f"found Python {['.'.join(map(str, n)) for n in sorted(found)]}")
    return found


def on_python(session: nox.Session, python: str, *requirements: str) -> str:
    """Make an environment for an interpreter that is not nox's; return its Python.

    Args:
        session: the session.
        python: path of an interpreter.
        requirements: arguments of ``uv pip install``; the test tools come beside.
    """
    place = Path(session.create_tmp()) / "venv"
    session.run("uv", "venv", "--clear", "-q", "-p", python, str(place))
    made = str(place / "bin" / "python")
    tools = nox.project.dependency_groups(
        nox.project.load_toml("pyproject.toml"), "portable"
    )
    asked = "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'))"
    suffix = session.run(made, "-c", asked, external=True, silent=True)
    # What the session `unit` has compiled fits this Python, too, if it is as old.
    env = WITHOUT_COMPILER if has_codec(str(suffix).strip()) else {}
    install = ("uv", "pip", "install", "-q", "-p", made)
    session.run(*install, *requirements, *tools, env=env)
    session.run(made, "-VV", external=True)
    return made


@nox.session
def crowded(session: nox.Session) -> None:
    """Beside what a web service or a notebook has installed and loaded."""
    session.install("-e", ".", env=WITHOUT_COMPILER)
    groups(session, "crowded")
    session.run("python", *QUICKSTART)
    # anyio's plugin runs these tests, and ours offers its fixtures to it.
    options = [
        "addopts=--import-mode=importlib --strict-markers",
        "asyncio_mode=strict",
    ]
    overrides = [word for option in options for word in ("-o", option)]
    session.run("pytest", *overrides, "tests/crowded", *session.posargs)


#: What runs on the real clock, and so depends on how a loop's timers round. The session
#: `unit` has connections on both loops.
LOOP_TESTS = [
    "tests/unit/producer/test_real_loops.py",
    "tests/integration/test_embedded_clients.py",
    *("-k", "not test_embedded_clients or lost_or_repeated or killed"),
]


@nox.session
def uvloop(session: nox.Session) -> None:
    """Producer, compression, faults and transactions on uvloop; less than a minute."""
    if sys.platform == "win32":
        session.skip("there is no uvloop for Windows")
    install(session, "[kafka,uvloop]")
    groups(session, "test")
    run = ["pytest", "-p", "tests.support.on_uvloop", *BROKERS, *session.posargs]
    debug = {"PYTHONASYNCIODEBUG": "1"}
    session.run(*run, *LOOP_TESTS, env=debug)
    whole = ["tests/integration/test_producer.py"]
    session.run(*run, *whole, env={**debug, "KAFKAIO_KAFKA": "embedded"})


@nox.session
def oldest(session: nox.Session) -> None:
    """The oldest Python with the oldest dependencies, those of all extras included."""
    session.install("uv")
    project = nox.project.load_toml("pyproject.toml")["project"]
    # Spark is a session of its own, and takes as long to install as all the rest. The
    # binding of Kerberos is compiled, with headers that few machines have, and AWS's
    # library is as large as all the others.
    left_out = {"spark", "gssapi", "aws"}
    extras = ",".join(project["optional-dependencies"].keys() - left_out)
    lowest = ["--resolution=lowest-direct", "-e", f".[{extras}]"]
    python = on_python(session, interpreters(session)[0], *lowest)
    session.run(python, *QUICKSTART, external=True)
    extra_tests = [
        "tests/unit/arrow",
        "tests/unit/consumer/test_zookeeper_store.py",
        "tests/unit/registry",
        "tests/unit/testing/registry",
        "--ignore=tests/unit/testing/registry/test_confluent.py",
        # The oldest anyio forgets the socket of a connection that is cancelled.
        "--ignore=tests/unit/registry/test_faults.py",
    ]
    tests = [*PORTABLE_TESTS, *extra_tests, *session.posargs]
    session.run(python, "-m", "pytest", *WORKERS, *tests, external=True)


@nox.session
def newest(session: nox.Session) -> None:
    """The newest Python on this machine, with the newest dependencies."""
    session.install("uv")
    python = on_python(session, interpreters(session)[-1], "-e", ".[arrow]")
    session.run(python, *QUICKSTART, external=True)
    tests = [*PORTABLE_TESTS, *session.posargs]
    session.run(python, "-m", "pytest", *WORKERS, *tests, external=True)


#: What the compiled codec is tested by, one process each: sanitized it is slow.
CODEC_TESTS = [
    "tests/unit/records",
    "tests/unit/arrow",
    "tests/unit/consumer/test_stream.py",
]
SANITIZERS = "-fsanitize=address,undefined -fno-omit-frame-pointer -g1"


@nox.session
def sanitize(session: nox.Session) -> None:
    """The compiled codec under AddressSanitizer and UBSan (GCC, Linux): ten minutes."""
    session.install(".[arrow]", "cython>=3.1", "setuptools>=77", env=WITHOUT_COMPILER)
    groups(session, "test")
    copy = Path(session.create_tmp()) / "source"
    shutil.rmtree(copy, ignore_errors=True)
    unwanted = shutil.ignore_patterns(".*", "build", "*.so", "_speedups.c")
    shutil.copytree(".", copy, ignore=unwanted)
    tests = [
        str(path)
        for name in session.posargs or CODEC_TESTS
        for path in sorted(Path(name).glob("test_*.py")) or [Path(name)]
    ]
    libraries = [
        session.run("gcc", f"-print-file-name={name}", external=True, silent=True)
        for name in ("libasan.so", "libstdc++.so")
    ]
    env = {
        "LD_PRELOAD": " ".join(str(path).strip() for path in libraries),
        "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": "detect_leaks=0",  # CPython itself frees not everything
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        "KAFKAIO_CODEC": "compiled",
        "PYTHONPATH": str(copy.absolute()),  # for the programs that tests start
    }
    flags = {"CFLAGS": SANITIZERS, "LDFLAGS": SANITIZERS}
    with session.chdir(copy):
        session.run("python", "setup.py", "-q", "build_ext", "--inplace", env=flags)
        for path in tests:
            session.run("python", "-m", "pytest", "-q", path, "--timeout=1200", env=env)


@nox.session
def simulated(session: nox.Session) -> None:
    """Minutes of simulation: a few seeds, and bugs put in on purpose."""
    install(session)
    groups(session, "test")
    session.run("pytest", *WORKERS, "tests/sim", *session.posargs)


@nox.session
def simulate(session: nox.Session) -> None:
    """Hours of simulation: `nox -s simulate -- --hours 100 --seed N`.

    A thousand seeds: `nox -s simulate -- --scenario rebalance --seeds 1000 --jobs 2`.
    """
    run_simulation(session, *session.posargs)


def run_simulation(session: nox.Session, *arguments: str) -> None:
    """Run the simulation's own command."""
    install(session)
    groups(session, "test")
    session.run("python", "-m", "tests.sim", *arguments)


@nox.session
def spark(session: nox.Session) -> None:
    """Spark jobs, beside Spark's own connector, on a real Kafka."""
    run_spark(session, "-m", "not nightly", *session.posargs)


@nox.session
def spark_connect(session: nox.Session) -> None:
    """Connect and a pipeline; with packages that the tests in Spark do without."""
    run_connect(session, "-m", "not nightly", *session.posargs)


def run_connect(session: nox.Session, *arguments: str) -> None:
    """Run the tests that need Spark Connect."""
    install_spark(session)
    install(session, "[kafka,spark]")
    session.install("pyspark[pipelines]", "pandas<3")  # PySpark warns of pandas 3
    groups(session, "test", "spark")
    # One after another: a server that PySpark starts itself has a fixed port.
    session.run("pytest", "tests/spark_connect", *arguments)


#: The modules of Spark that take minutes, so that no worker begins them at the end.
LONGEST_FIRST = (
    "--no-loadscope-reorder",
    "tests/spark/test_pipeline.py",
    "tests/spark/test_write_kills.py",
)


def run_spark(session: nox.Session, *arguments: str, pyspark: str = "") -> None:
    """Run the tests that need Spark: the newest, or the one that is named."""
    if pyspark:
        session.install(pyspark)
    else:
        install_spark(session)
    install(session, "[kafka,spark,registry]")
    groups(session, "test", "spark")
    # Two at a time: a session of Spark keeps a core busy by itself.
    run = ["pytest", *BROKERS, "-n", "2", *LONGEST_FIRST, "tests/spark"]
    session.run(*run, *arguments)


#: A part of the night, for they need a Kerberos server and a library that is compiled.
GSSAPI_TESTS = "tests/integration/test_gssapi.py"
#: By Debian's packages: the programs of the server, the client's, what compiles.
KERBEROS = {
    "krb5kdc": "krb5-kdc",
    "kadmin.local": "krb5-admin-server",
    "kinit": "krb5-user",
    "krb5-config": "libkrb5-dev",
    "gcc": "gcc",
}


def on_kerberos(session: nox.Session) -> None:
    """Log in to a real Kafka by Kerberos; installs what is missing if it may."""
    places = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    missing = [
        package
        for program, package in KERBEROS.items()
        if not shutil.which(program, path=places)
    ]
    if missing:
        if os.geteuid() != 0 or not shutil.which("apt-get"):
            session.error(f"Kerberos is missing: apt-get install {' '.join(missing)}")
        quiet = {"DEBIAN_FRONTEND": "noninteractive"}
        session.run("apt-get", "update", "-q", external=True)
        get = ("apt-get", "install", "-qy", "--no-install-recommends")
        session.run(*get, *missing, external=True, env=quiet)
    install(session, "[kafka,gssapi]")
    groups(session, "test")
    env = {"PYTHONASYNCIODEBUG": "1"}
    session.run("pytest", GSSAPI_TESTS, *session.posargs, env=env)


def on_aws(session: nox.Session) -> None:
    """Sign tokens by AWS's own library, which no other session installs."""
    session.install("-e", ".[aws]", env=WITHOUT_COMPILER)
    groups(session, "test")
    session.run("pytest", "tests/aws", *session.posargs)


def on_tables(session: nox.Session) -> None:
    """Run the how-to on tables with its libraries, which take 650 MB."""
    install(session, "[arrow]")
    groups(session, "test", "tables")
    session.run("pytest", "tests/tables", *session.posargs)


def on_franz_go(session: nox.Session) -> None:
    """Run the tests of franz-go on the embedded broker; needs Go, and fetches them."""
    install(session)
    groups(session, "test")
    env = {"PYTHONASYNCIODEBUG": "1"}
    session.run("pytest", "tests/franz_go", *session.posargs, env=env)


def on_rows(session: nox.Session) -> None:
    """Measure kafkaio beside other clients: no row falls by a fifth; needs Go."""
    install(session, "[kafka]")
    groups(session, "test")
    session.run("python", "-m", "benchmarks.rows.guard", *session.posargs)


def on_foreign_suite(session: nox.Session, name: str) -> None:
    """Run another project's tests on kafkaio, and on aiokafka beside.

    They are fetched; `-- --source FOLDER` takes those of a checkout.
    """
    install(session, "[kafka]")
    groups(session, "portable")
    session.install("pip")  # fetches source distributions
    program = ("python", "-m", "tests.foreign_suites", name)
    wanted = session.run(*program, "--packages", silent=True)
    session.install(*str(wanted).split())
    session.run(*program, *session.posargs)
    session.run("pytest", "tests/foreign_suites/test_pages.py")


def on_rolling_service(session: nox.Session) -> None:
    """Move a service from aiokafka to kafkaio and back, ten times; some are killed."""
    install(session, "[kafka]")
    groups(session, "test")
    env = {"KAFKAIO_ROLLING_ROUNDS": "10"}
    tests = ["tests/integration/test_aiokafka_rolling.py", *session.posargs]
    session.run("pytest", *tests, env=env)
    session.run("pytest", *tests, env={**env, "KAFKAIO_KAFKA": "embedded"})


def on_brokers(session: nox.Session, *arguments: str, **which: str) -> None:
    """Run the suite that needs a broker; the variables say which."""
    install(session, "[kafka]")
    groups(session, "test", "lint")  # what is generated is formatted by ruff
    without = f"--ignore={GSSAPI_TESTS}"
    tests = ["pytest", *BROKERS, "tests/integration", without, *arguments]
    session.run(*tests, env={"PYTHONASYNCIODEBUG": "1", **which})


def on_real_kafka(session: nox.Session, kafka: str, *arguments: str) -> None:
    """Run it on Apache Kafka: KAFKAIO_BOOTSTRAP, a container, or its jars on a JVM."""
    on_brokers(session, *arguments, KAFKAIO_KAFKA_VERSION=kafka)


@nox.session
@nox.parametrize("kafka", list(KAFKA_VERSIONS))
def integration(session: nox.Session, kafka: str) -> None:
    """What only a real Kafka can judge, on the newest and on the oldest.

    All the rest of the suite runs on the embedded broker, and at night on every Kafka.
    """
    on_real_kafka(session, kafka, "-m", KAFKA_VERSIONS[kafka], *session.posargs)


@nox.session
def mock_cluster(session: nox.Session) -> None:
    """On librdkafka's mock cluster, which confluent-kafka brings along: seconds."""
    install(session)
    groups(session, "test")
    session.run("pytest", "tests/mock_cluster", *session.posargs)


@nox.session
def embedded(session: nox.Session) -> None:
    """The whole suite on the embedded broker, Java's clients and tools included."""
    # No JVM of a broker takes the processor, and most of the time is spent in waits for
    # sessions and locks to run out: there is room for six workers on two cores.
    on_brokers(session, "-n", "6", *session.posargs, KAFKAIO_KAFKA="embedded")


@nox.session
def power_cut(session: nox.Session) -> None:
    """A writer of log files, killed a thousand times: nothing flushed is lost."""
    install(session, "[kafka]")
    groups(session, "test")
    env = {"KAFKAIO_KILLS": "1000"}
    tests = ["tests/integration/test_log_files.py", "-k", "killed", "--timeout=3600"]
    session.run("pytest", *tests, *session.posargs, env=env)


@nox.session
def torture(session: nox.Session) -> None:
    """A group whose members and brokers die: `nox -s torture -- --kill-brokers`."""
    run_torture(session, list(session.posargs))


def run_torture(session: nox.Session, *plans: list[str]) -> None:
    """Run one torture after the other, each with arguments of its own."""
    install(session, "[kafka]")
    groups(session, "test")
    for arguments in plans:
        session.run("python", "-m", "tests.torture", *arguments)


@nox.session
def full_speed(session: nox.Session) -> None:
    """Partitions that are handed over beside others: minutes on a quiet machine."""
    install(session, "[kafka]")
    groups(session, "test")
    env = {"KAFKAIO_FULL_SPEED": "1"}
    tests = ["tests/integration/test_full_speed.py", "-s"]
    session.run("pytest", *tests, *session.posargs, env=env)


@nox.session
def differential(session: nox.Session) -> None:
    """The embedded broker and a real one: two hundred scripts of each kind."""
    install(session, "[kafka]")
    groups(session, "test")
    tests = ["tests/integration/test_differential.py", *session.posargs]
    session.run("pytest", *tests, env={"KAFKAIO_SEEDS": "0-199"})


@nox.session
def coverage(session: nox.Session) -> None:
    """Every branch of what decides, and nearly all of the rest.

    Measured by the unit tests of the compiled codec and by the suite on the embedded
    broker together.
    """
    install_spark(session)
    install(session, "[kafka,spark]")
    groups(session, "test", "lint")
    session.run("coverage", "erase")
    env = {"KAFKAIO_CODEC": "compiled", "KAFKAIO_KAFKA": "embedded"}
    unit = [*WORKERS, ALL_UNIT_TESTS, "tests/meta"]
    for tests in (unit, [*BROKERS, "tests/integration"]):
        session.run("coverage", "run", "-m", "pytest", *tests, env=env)
    session.run("coverage", "combine")
    session.run("coverage", "report", f"--include={PURE}", "--fail-under=100")
    session.run("coverage", "report", f"--fail-under={COVERED}")


@nox.session
def fuzz(session: nox.Session) -> None:
    """Arbitrary bytes for everything that decodes bytes: `nox -s fuzz -- --seconds 60`.

    What breaks something is written to `fuzz-found`, and belongs into
    `tests/fuzz/corpus`, which every change replays.
    """
    run_fuzz(session, *session.posargs)


def run_fuzz(session: nox.Session, *arguments: str) -> None:
    """Fuzz by atheris, which follows the coverage of the code."""
    install(session)
    groups(session, "test")
    session.install("atheris>=3")
    session.run("python", "-m", "tests.fuzz", *arguments)


def run_fuzz_meaning(session: nox.Session, *arguments: str) -> None:
    """Let answers of a real Kafka decode and lie."""
    install(session, "[kafka]")
    groups(session, "test")
    session.run("python", "-m", "tests.meaning", *arguments)


@nox.session
def lock(session: nox.Session) -> None:
    """Write the pinned and hashed requirements."""
    session.install("uv")
    extras = ("--extra", "kafka", "--extra", "arrow")
    how = ("--universal", "--python-version", "3.11", "--generate-hashes")
    what = ("--no-emit-index-url", "--no-header", "--no-annotate", "-q", "--upgrade")
    for path, names in LOCKS.items():
        wanted = [part for name in names for part in ("--group", name)]
        more = extras if "test" in names else ()
        source = ("uv", "pip", "compile", "pyproject.toml")
        session.run(*source, *more, *wanted, *how, *what, "-o", path)


@nox.session
def audit(session: nox.Session) -> None:
    """Look for known vulnerabilities of the pinned dependencies; needs the network.

    What the service does not know fails the session: it was not looked at.
    """
    session.install("pip-audit>=2.9")
    for path in LOCKS:
        how = ("--strict", "--require-hashes", "--disable-pip")
        session.run("pip-audit", *how, "-r", path)


@nox.session
def sbom(session: nox.Session) -> None:
    """Write the bill of materials of an install: build/sbom.json (CycloneDX)."""
    session.install("uv", "cyclonedx-bom>=7")
    python = bare(session, sys.executable, ".", "bare", WITHOUT_COMPILER)
    Path("build").mkdir(exist_ok=True)
    write_sbom(session, python, Path("build/sbom.json"))


def bare(
    session: nox.Session,
    python: str,
    what: str,
    name: str,
    env: Mapping[str, str] | None = None,
) -> str:
    """Install kafkaio, and nothing else, in an empty environment; return its Python.

    Args:
        session: the session, whose uv is used.
        python: path of an interpreter.
        what: a directory, a wheel or a source archive.
        name: of the environment.
        env: variables for a build.
    """
    place = Path(session.create_tmp()).absolute() / name
    session.run("uv", "venv", "--clear", "-q", "-p", python, str(place))
    made = str(place / "bin" / "python")
    anew = ("--reinstall-package", "kafkaio", "--refresh-package", "kafkaio")
    session.run("uv", "pip", "install", "-q", "-p", made, *anew, what, env=env)
    return made


def write_sbom(session: nox.Session, python: str, to: Path) -> None:
    """Write what an environment has, by CycloneDX."""
    written = ("--output-reproducible", "-o", str(to))
    session.run(
        "cyclonedx-py", "environment", "--pyproject", "pyproject.toml", *written, python
    )


#: The Pythons that a release is installed on, beside the newest on the machine.
RELEASE_PYTHONS = ((3, 11), (3, 13), (3, 14))
#: Another build of the same files has to have the same bytes.
BUILDS = ("one", "two")


@nox.session
def release(session: nox.Session) -> None:
    """Build a release, install it in empty environments, and publish nothing.

    Into `dist`, or `nox -s release -- --out DIR`. The files are those that
    `python -m releasing prepare` would write, made in a copy: the tree stays as it is.
    With `--tag v0.1.0`, or where a workflow runs for a tag, the tree itself has to be
    that release.
    """
    groups(session, "rehearsal")
    words = dict(zip(session.posargs[::2], session.posargs[1::2], strict=True))
    if unknown := words.keys() - {"--out", "--tag"}:
        session.error(f"unknown: {', '.join(sorted(unknown))}")
    out = Path(words.get("--out", "dist")).absolute()
    tag = words.get("--tag") or tag_of(os.environ)
    if tag and (problems := tree.problems(Path.cwd(), tag)):
        session.error("; ".join(problems))
    chosen, missing = release_pythons(session)
    sources = [release_tree(session, name) for name in BUILDS]
    version = tree.version_of(sources[0])
    archive, wheels = release_files(session, sources, list(chosen.values()))
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    files = [Path(shutil.copy2(path, out)) for path in (archive, *wheels)]
    check_files(session, files)
    for numbers, python in chosen.items():
        name = "".join(map(str, numbers[:2]))
        (wheel,) = (path for path in files if f"-cp{name}-" in path.name)
        first_steps(session, bare(session, python, str(wheel), f"cp{name}"), version)
    oldest_python = chosen[min(chosen)]
    # Where no compiler works, the codec is in Python.
    no_compiler = {"CC": "false"}
    made = bare(session, oldest_python, str(files[0]), "no-compiler", no_compiler)
    first_steps(session, made, version, is_compiled=False)
    made = bare(session, oldest_python, str(files[1]), "sbom")
    write_sbom(session, made, out / "sbom.json")
    (out / "NOTES.md").write_text(tree.notes_of(sources[0], version), "utf-8")
    (out / "SHA256SUMS").write_text(archives.checksums(files), "utf-8")
    for problem in () if tag else tree.problems(sources[0], None):
        session.warn(f"before the tag: {problem}")
    for each in missing:
        session.warn(f"NOT CHECKED on Python {each}: not here, cannot be fetched")
    session.log(f"{version} is in {out}; nothing was published")


def tag_of(environ: Mapping[str, str]) -> str | None:
    """The tag that a workflow runs for, if it does."""
    is_tag = environ.get("GITHUB_REF_TYPE") == "tag"
    return environ.get("GITHUB_REF_NAME") if is_tag else None


def release_pythons(
    session: nox.Session,
) -> tuple[dict[tuple[int, ...], str], list[str]]:
    """The interpreters to install on, and the versions that are not to be had."""
    found = pythons(session)
    wanted = {*RELEASE_PYTHONS, max(found)[:2]}
    for each in sorted(wanted - {numbers[:2] for numbers in found}):
        # An exit that is not 0 means that it cannot be fetched.
        name = ".".join(map(str, each))
        session.run("uv", "python", "install", "-q", name, success_codes=range(256))
    found = pythons(session)
    chosen, missing = {}, []
    for each in sorted(wanted):
        fits = [numbers for numbers in found if numbers[:2] == each]
        if fits:
            chosen[max(fits)] = found[max(fits)]
        else:
            missing.append(".".join(map(str, each)))
    return chosen, missing


def release_tree(session: nox.Session, name: str) -> Path:
    """Copy what is tracked, with the files of the release."""
    place = Path(session.create_tmp()).absolute() / name
    listed = session.run("git", "ls-files", "-z", external=True, silent=True)
    tree.copy(Path.cwd(), str(listed).strip("\0").split("\0"), place)
    with session.chdir(place):
        session.run("python", "-m", "releasing", "prepare")
    return place


def release_files(
    session: nox.Session, sources: list[Path], on: list[str]
) -> tuple[Path, list[Path]]:
    """Build the source archive and, from it, a wheel for each Python.

    What is built again, from another directory, has to have the same bytes.
    """
    epoch = session.run("git", "log", "-1", "--format=%ct", external=True, silent=True)
    env = {"SOURCE_DATE_EPOCH": str(epoch).strip(), "CFLAGS": "", "PYTHONPATH": ""}
    made: list[list[Path]] = []
    for source in sources:
        place = source.with_name(f"{source.name}-dist")
        shutil.rmtree(place, ignore_errors=True)
        build = ("uv", "build", "-q", "--out-dir", str(place))
        session.run(*build, "--sdist", "-p", on[0], str(source), env=env)
        (archive,) = place.glob("*.tar.gz")
        for python in on if source is sources[0] else on[:1]:
            before = set(place.glob("*.whl"))
            session.run(*build, "--wheel", "-p", python, str(archive), env=env)
            made.append([archive, *(set(place.glob("*.whl")) - before)])
    first, again = made[0], made[-1]
    for one, other in zip(first, again, strict=True):
        if found := archives.differences(one, other):
            session.error(f"two builds differ: {', '.join(found)}")
    return first[0], [files[1] for files in made[: len(on)]]


def check_files(session: nox.Session, files: list[Path]) -> None:
    """Look at the archives as an index and an installer do."""
    names = [str(path) for path in files]
    wheels = [name for name in names if name.endswith(".whl")]
    session.run("twine", "check", "--strict", *names)
    session.run("check-wheel-contents", *wheels)
    session.run("python", "-m", "releasing", "classifiers")
    if sys.platform == "linux":
        for name in wheels:
            session.run("auditwheel", "show", name)


def first_steps(
    session: nox.Session, python: str, version: str, *, is_compiled: bool = True
) -> None:
    """Use kafkaio as a newcomer does: the command, and the README's programs.

    Away from the checkout, where `import kafkaio` would mean its directory.
    """
    root, place = Path.cwd(), Path(session.create_tmp()).absolute() / "elsewhere"
    place.mkdir(exist_ok=True)
    shutil.copy2(root / "examples" / "quickstart.py", place)
    command = str(Path(python).with_name("kafkaio"))
    with session.chdir(place):
        said = session.run(command, "--version", external=True, silent=True)
        if str(said).split() != ["kafkaio", version]:
            session.error(f"kafkaio --version says {said!r}, and not {version}")
        check = f"import kafkaio; assert kafkaio.accelerated is {is_compiled}"
        session.run(python, "-c", check, external=True)
        readme = (str(root / "releasing" / "first_program.py"), str(root / "README.md"))
        session.run(python, *readme, external=True)
        quickstart = (str(place / "quickstart.py"), "--records", "20000")
        session.run(python, *quickstart, external=True)


@nox.session
def bench(session: nox.Session) -> None:
    """Microbenchmarks of the record codec: ratios, not absolute times."""
    install(session)
    session.run("python", "benchmarks/micro_records.py", *session.posargs)


#: Five minutes of each, Java's members among ours.
TORTURES = [
    ["--protocol", protocol, "--java", "4", "--kill-brokers"]
    for protocol in ("consumer", "classic", "mixed")
]
_COPIES = ["--scenario", "exactly-once", "--members", "4", "--kill-brokers"]
#: Copies made exactly once: five minutes on the newest Kafka, two elsewhere.
COPY_TORTURES = [
    *(
        [*_COPIES, "--protocol", protocol, "--seed", seed, "--java", java]
        for seed, protocol, java in (
            ("1", "consumer", "0"),
            ("2", "cooperative", "0"),
            ("3", "eager", "0"),
            ("4", "mixed", "1"),
        )
    ),
    *(
        [*_COPIES, "--minutes", "2", *where]
        for where in (
            ("--transaction-version", "1"),
            ("--transaction-version", "0"),
            ("--kafka", "3.9"),
            ("--kafka", "2.8"),
        )
    ),
]


#: A share group of three clients: 200,000 records on the newest Kafka, and on the one
#: without dead letters.
SHARE_TORTURES = [
    ["--scenario", "share", "--rate", "800", "--minutes", "4.2", "--kafka", kafka]
    for kafka in (ALL_KAFKA_VERSIONS[0], "4.3")
]


def simulate_copies(session: nox.Session) -> None:
    """Copies in transactions: a hundred hours over three seeds, and planted bugs."""
    what = ("--scenario", "exactly-once")
    for seed in ("100", "1000", "10000"):
        run_simulation(session, *what, "--seed", seed, "--seeds", "400", "--jobs", "2")
    run_simulation(session, "--mutants")


#: What runs at night, in parts of less than an hour.
NIGHTLY: Mapping[str, Callable[[nox.Session], None]] = {
    **{
        f"matrix-{version}": partial(on_real_kafka, kafka=version)
        for version in ALL_KAFKA_VERSIONS
    },
    "differential": differential,
    "simulation-faults": lambda s: run_simulation(s, "--hours", "100", "--jobs", "2"),
    "simulation-rebalances": lambda s: run_simulation(
        s, "--scenario", "rebalance", "--seeds", "1000", "--jobs", "2"
    ),
    "simulation-exactly-once": simulate_copies,
    "simulation-share": lambda s: run_simulation(
        s, "--scenario", "share", "--seeds", "600", "--jobs", "2"
    ),
    "torture": lambda s: run_torture(s, *TORTURES),
    "torture-exactly-once": lambda s: run_torture(s, *COPY_TORTURES),
    "torture-share": lambda s: run_torture(s, *SHARE_TORTURES),
    "shuffled": shuffled,
    "codec-python": lambda s: run_unit(s, "python", ALL_UNIT_TESTS),
    "coverage": coverage,
    "package": partial(run_package, KAFKAIO_COMPILED="1"),
    "power-cut": power_cut,
    "rows": on_rows,
    "franz-go": on_franz_go,
    "aiokafka-suite": partial(on_foreign_suite, name="aiokafka"),
    "faststream-suite": partial(on_foreign_suite, name="faststream"),
    "taskiq-suite": partial(on_foreign_suite, name="taskiq"),
    "opentelemetry-suite": partial(on_foreign_suite, name="opentelemetry"),
    "aiokafka-rolling": on_rolling_service,
    "gssapi": on_kerberos,
    "aws": on_aws,
    "tables": on_tables,
    "links": on_links,
    "fuzz": lambda s: run_fuzz(s, "--seconds", "3300"),
    "fuzz-meaning": lambda s: run_fuzz_meaning(s, "--seconds", "3300"),
    "sanitize": sanitize,
    "spark": run_spark,
    "spark-connect": run_connect,
    "spark-oldest": partial(run_spark, pyspark="pyspark==4.2.0"),
}


@nox.session
@nox.parametrize("part", [nox.param(name, id=name) for name in NIGHTLY])
def nightly(session: nox.Session, part: str) -> None:
    """What is slow and deep: `nox -s nightly`, or `nox -s "nightly(torture)"`."""
    NIGHTLY[part](session)
