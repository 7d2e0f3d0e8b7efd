"""Every check that CI runs, by the name CI calls it: `nox -s lint types unit`."""

import json
import shutil
import subprocess
from pathlib import Path

import nox

nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = [
    "lint",
    "imports",
    "types",
    "unit",
    "crowded",
    "oldest",
    "newest",
    "simulated",
    "embedded",
    "integration",
]

#: The newest and the oldest Kafka are part of every run; the rest on demand.
KAFKA_VERSIONS = ["4.3", "2.1"]
MORE_KAFKA_VERSIONS = ["4.0", "3.9", "2.8"]
PURE = "kafkaio/_machines/*,kafkaio/protocol/primitives.py"


#: Installs as a machine without a C compiler would, which is also quicker.
WITHOUT_COMPILER = {"KAFKAIO_NO_EXTENSION": "1"}


def groups(session: nox.Session, *names: str) -> None:
    """Install dependency groups of pyproject.toml."""
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
    *("examples", "tests/typing", "tests/sim", "tests/support"),
    *("tests/unit/sim", "tests/unit/support", "tests/unit/testing"),
]


@nox.session
def types(session: nox.Session) -> None:
    """Prove the inside with mypy, and what users see of it."""
    session.install("-e", ".[kafka]", env=WITHOUT_COMPILER)
    groups(session, "types")
    session.run("mypy")
    session.run("mypy", *TYPED)


#: Half the time on two cores; each worker collects for itself, so a few are enough.
WORKERS = ["-n", "auto", "--maxprocesses", "4", "--dist", "worksteal"]
#: Modules have brokers of their own, and wait for heartbeats and rebalances more than
#: for the processor: two at a time take half as long.
BROKERS = ["-n", "2", "--dist", "loadfile"]


@nox.session
@nox.parametrize("codec", ["python", "compiled"])
def unit(session: nox.Session, codec: str) -> None:
    """Pure machines, and the client against scripted brokers: nothing sleeps."""
    build = {} if codec == "compiled" else WITHOUT_COMPILER
    session.install("-e", ".[kafka]", env=build)
    groups(session, "test")
    env = {"KAFKAIO_CODEC": codec, "PYTHONASYNCIODEBUG": "1"}
    tests = ["pytest", *WORKERS, "tests/unit", "tests/meta", *session.posargs]
    if codec == "python":
        session.run(*tests, env=env)
    else:  # both codecs' code is in this session, and measuring costs half of the time
        session.run("coverage", "run", "-m", *tests, env=env)
        session.notify("coverage")


#: What another Python, or another version of a dependency, could break.
PORTABLE_TESTS = [
    "tests/unit/runtime",
    "tests/unit/records",
    "tests/unit/net",
    "tests/unit/producer",
]
QUICKSTART = ["examples/quickstart.py", "--records", "20000"]


def interpreters(session: nox.Session) -> list[str]:
    """Every supported CPython on this machine, oldest first.

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
    found = {}
    for python in json.loads(str(listed)):
        numbers = tuple(python["version_parts"].values())
        is_final = python["version"] == ".".join(map(str, numbers))
        if python["implementation"] == "cpython" and is_final and numbers >= (3, 11):
            found.setdefault(numbers, python["path"])
    session.log(f"found Python {['.'.join(map(str, n)) for n in sorted(found)]}")
    return [found[numbers] for numbers in sorted(found)]


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
    session.run("uv", "pip", "install", "-q", "-p", made, *requirements, *tools)
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


@nox.session
def oldest(session: nox.Session) -> None:
    """The oldest Python with the oldest dependencies, those of all extras included."""
    session.install("uv")
    project = nox.project.load_toml("pyproject.toml")["project"]
    extras = ",".join(project["optional-dependencies"])
    lowest = ["--resolution=lowest-direct", "-e", f".[{extras}]"]
    python = on_python(session, interpreters(session)[0], *lowest)
    session.run(python, *QUICKSTART, external=True)
    extra_tests = ["tests/unit/arrow", "tests/unit/consumer/test_zookeeper_store.py"]
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
    }
    flags = {"CFLAGS": SANITIZERS, "LDFLAGS": SANITIZERS}
    with session.chdir(copy):
        session.run("python", "setup.py", "-q", "build_ext", "--inplace", env=flags)
        for path in tests:
            session.run("python", "-m", "pytest", "-q", path, "--timeout=1200", env=env)


@nox.session
def simulated(session: nox.Session) -> None:
    """Minutes of simulation: a few seeds, and bugs put in on purpose."""
    session.install("-e", ".")
    groups(session, "test")
    session.run("pytest", "tests/sim", *session.posargs)


@nox.session
def simulate(session: nox.Session) -> None:
    """Hours of simulation: `nox -s simulate -- --hours 100 --seed N`.

    A thousand seeds: `nox -s simulate -- --scenario rebalance --seeds 1000 --jobs 2`.
    """
    session.install("-e", ".")
    session.run("python", "-m", "tests.sim", *session.posargs)


@nox.session
def coverage(session: nox.Session) -> None:
    """Every branch of what decides; most of the rest."""
    session.install("coverage[toml]")
    session.run("coverage", "combine", success_codes=[0, 1])
    session.run("coverage", "report", f"--include={PURE}", "--fail-under=100")
    session.run("coverage", "report", "--fail-under=85")


def on_real_kafka(session: nox.Session, kafka: str) -> None:
    """A real Apache Kafka: KAFKAIO_BOOTSTRAP, a container, or its jars on a JVM."""
    session.install("-e", ".[kafka]")
    groups(session, "test", "lint")  # what is generated is formatted by ruff
    on_brokers(session, KAFKAIO_KAFKA_VERSION=kafka)


def on_brokers(session: nox.Session, **which: str) -> None:
    """The suite that needs a broker; the variables say which."""
    tests = ["pytest", *BROKERS, "tests/integration", *session.posargs]
    session.run(*tests, env={"PYTHONASYNCIODEBUG": "1", **which})


@nox.session
@nox.parametrize("kafka", KAFKA_VERSIONS)
def integration(session: nox.Session, kafka: str) -> None:
    """The whole suite on the newest and on the oldest Kafka there is support for."""
    on_real_kafka(session, kafka)


@nox.session
def embedded(session: nox.Session) -> None:
    """The same suite on the embedded broker, Java's clients and tools included."""
    session.install("-e", ".[kafka]")
    groups(session, "test")
    on_brokers(session, KAFKAIO_KAFKA="embedded")


@nox.session
@nox.parametrize("kafka", MORE_KAFKA_VERSIONS)
def versions(session: nox.Session, kafka: str) -> None:
    """The same suite on the versions between."""
    on_real_kafka(session, kafka)


@nox.session
def power_cut(session: nox.Session) -> None:
    """A writer of log files, killed a thousand times: nothing flushed is lost."""
    session.install("-e", ".[kafka]")
    groups(session, "test")
    env = {"KAFKAIO_KILLS": "1000"}
    tests = ["tests/integration/test_log_files.py", "-k", "killed", "--timeout=3600"]
    session.run("pytest", *tests, *session.posargs, env=env)


@nox.session
def torture(session: nox.Session) -> None:
    """A group whose members and brokers die: `nox -s torture -- --kill-brokers`."""
    session.install("-e", ".[kafka]")
    groups(session, "test")
    session.run("python", "-m", "tests.torture", *session.posargs)


@nox.session
def full_speed(session: nox.Session) -> None:
    """Partitions that are handed over beside others: minutes on a quiet machine."""
    session.install("-e", ".[kafka]")
    groups(session, "test")
    env = {"KAFKAIO_FULL_SPEED": "1"}
    tests = ["tests/integration/test_full_speed.py", "-s"]
    session.run("pytest", *tests, *session.posargs, env=env)


@nox.session
def differential(session: nox.Session) -> None:
    """The embedded broker and a real one: two hundred scripts of each kind."""
    session.install("-e", ".[kafka]")
    groups(session, "test")
    env = {"KAFKAIO_SEEDS": "0-199"}
    session.run(
        "pytest", "tests/integration/test_differential.py", *session.posargs, env=env
    )


@nox.session
def codegen(session: nox.Session) -> None:
    """Regenerate the messages from Kafka's jar; a difference is a failure."""
    session.install("-e", ".[kafka]", env=WITHOUT_COMPILER)
    groups(session, "lint")
    session.run("python", "-m", "codegen")
    session.run(
        "git",
        "diff",
        "--exit-code",
        "kafkaio/protocol/messages",
        "kafkaio/protocol/error_codes.py",
        external=True,
    )


@nox.session
def docs(session: nox.Session) -> None:
    """Every broken cross-reference is an error."""
    session.install("-e", ".[kafka]", env=WITHOUT_COMPILER)
    groups(session, "docs")
    session.run("sphinx-build", "-nW", "--keep-going", "docs", "docs/_build/html")


@nox.session
def bench(session: nox.Session) -> None:
    """Microbenchmarks of the record codec: ratios, not absolute times."""
    session.install("-e", ".")
    session.run("python", "benchmarks/micro_records.py", *session.posargs)
