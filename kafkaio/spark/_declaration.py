"""How the options of the data source are declared and read.

An option is a field of `ReadOptions` or `WriteOptions`. `spark_option` declares it:
`kafkaio._config.declaration.option` with Spark's spelling of the name, and whether the
option is for batches, for streams or for both. Reading, checks, the docstrings of the
classes and the table in the guide follow from the declaration.

Spark passes options as text, and ignores the letter case of their names.

State: none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, fields
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

from kafkaio._config.declaration import option, option_of, read_text
from kafkaio._config.shown import shown_name
from kafkaio._named_tuple import NamedTuple
from kafkaio.errors import ConfigurationError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")
Use: TypeAlias = Literal["batch read", "stream read", "batch write", "stream write"]
#: Turns the text of a value into the value; is given the option's name for messages.
Reader: TypeAlias = Callable[[str, str], object]

_log = logging.getLogger("kafkaio.spark")


class _SparkFacts(NamedTuple):
    """The facts of an option that only Spark needs.

    Attributes:
        name: the name in Spark's spelling; empty for that of the field in camelCase.
        only: whether it has an effect in batches or in streams only.
        is_ignored_else: whether it is accepted without effect elsewhere, with a
            warning, in place of an error.
        shown: the default in the guide; empty for the default itself.
        read: reads a value that has a form of its own.
    """

    name: str
    only: Literal["batch", "stream", ""]
    is_ignored_else: bool
    shown: str
    read: Reader | None


class SparkOption(NamedTuple):
    """An option of the data source.

    Attributes:
        name: the name in Spark's spelling.
        uses: where it has an effect.
        ignored: where it is accepted without effect, with a warning.
        default: the default, as text for the guide.
        doc: its meaning.
        field: the field that has the value.
    """

    name: str
    uses: tuple[Use, ...]
    ignored: tuple[Use, ...]
    default: str
    doc: str
    field: Field[Any]

    def read(self, text: str) -> object:
        """Read a value.

        Raises:
            ConfigurationError: the text is empty or impossible; the error names the
                option.
        """
        place: _SparkFacts = self.field.metadata["place"]
        # An empty text is an error of its own, whatever form the option has.
        if place.read is None or not text.strip():
            return read_text(self.field, self.name, text)
        return place.read(self.name, text.strip())


def spark_option(  # noqa: PLR0913 - one for each fact
    default: T,
    doc: str,
    *,
    name: str = "",
    only: Literal["batch", "stream", ""] = "",
    is_ignored_else: bool = False,
    shown: str = "",
    read: Reader | None = None,
    bounds: tuple[int, int] | None = None,
    choices: tuple[str, ...] = (),
) -> T:
    """Declare an option, where the field of a dataclass has its default.

    Args:
        default: the default value.
        doc: its meaning, in Markdown.
        name: the name in Spark's spelling; by default that of the field in camelCase.
        only: whether it has an effect in batches or in streams only.
        is_ignored_else: whether it is accepted without effect elsewhere.
        shown: the default in the guide; by default the default itself.
        read: reads the text of a value that has a form of its own.
        bounds: the least and the greatest value.
        choices: the values that the option can have.
    """
    place = _SparkFacts(name, only, is_ignored_else, shown, read)
    return option(default, doc, bounds=bounds, choices=choices, more={"place": place})


def declared_by(
    config: type[DataclassInstance], use: Literal["read", "write"]
) -> list[SparkOption]:
    """Return the options that a class declares.

    Args:
        config: `ReadOptions` or `WriteOptions`.
        use: the use of the class.
    """
    batch: Use = "batch read" if use == "read" else "batch write"
    stream: Use = "stream read" if use == "read" else "stream write"
    found = []
    for declared in fields(config):
        place: _SparkFacts | None = declared.metadata.get("place")
        # Fields such as `is_stream` and `kafka` are not options.
        if place is None:
            continue
        here = {"batch": (batch,), "stream": (stream,)}.get(place.only, (batch, stream))
        others = tuple(each for each in (batch, stream) if each not in here)
        found.append(
            SparkOption(
                name=place.name or _camel(declared.name),
                uses=here,
                ignored=others if place.is_ignored_else else (),
                default=place.shown or _shown(declared.default),
                doc=option_of(declared).doc,
                field=declared,
            )
        )
    return found


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _shown(default: object) -> str:
    if default is None:
        return "-"
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


#: Options of Spark's own connector, or of Spark, that Python cannot have.
_ELSEWHERE: Final[Mapping[str, str]] = {
    "partitionlocationassigner": (
        "Spark lets no Python data source prefer an executor; leave it out"
    ),
    "path": "Kafka has topics and no paths; use subscribe to read and topic to write",
    "endingoffsetsbytimestampstrategy": (
        "there is none: a partition without a record at or after the time is read to "
        "its end"
    ),
    "maxbytespertrigger": "use maxOffsetsPerTrigger",
    "maxfilespertrigger": "use maxOffsetsPerTrigger",
    "numpartitions": "use minPartitions",
    "checkpointlocation": "it is an option of writeStream",
    "bootstrap.servers": "use kafka.bootstrap.servers",
    "topics": "use subscribe to read and topic to write",
    "deliveryguarantee": "use exactlyOnce=true",
}
_ELSEWHERE_PREFIXES: Final[Mapping[str, str]] = {
    "spark.kafka.clusters.": (
        "delegation tokens are not possible from Python; use kafka.* options"
    ),
    "spark.kafka.consumer.": (
        "there is no pool of consumers: each worker keeps its connections"
    ),
    "spark.kafka.producer.": (
        "there is no pool of producers: each worker keeps its connections"
    ),
    "spark.": "set it in the configuration of the Spark session",
}
_KAFKA: Final = "kafka."
#: How similar to an unknown name one must be that is suggested for it.
_NEAR: Final = 0.6


def divided(
    options: Mapping[str, str],
    use: Use,
    declared: Iterable[SparkOption],
    refused: Mapping[str, str],
) -> tuple[dict[SparkOption, str], dict[str, str]]:
    """Divide given options into those of the data source and those of ``kafka.*``.

    Args:
        options: texts by name; letter case is ignored.
        use: where they were given.
        declared: all options of the data source.
        refused: by name without ``kafka.``, what to use instead.

    Returns:
        Texts by option, and texts by name without ``kafka.``.

    Raises:
        ConfigurationError: one is unknown, refused, or has no place in this use.
    """
    every = list(declared)
    own: dict[SparkOption, str] = {}
    kafka: dict[str, str] = {}
    for given, text in options.items():
        name = given.lower()
        if name.startswith(_KAFKA):
            name = name.removeprefix(_KAFKA)
            if (instead := refused.get(name)) is not None:
                raise ConfigurationError(f"{given} is not supported: {instead}")
            kafka[name] = text
            continue
        named = [each for each in every if each.name.lower() == name]
        found = next((each for each in named if use in each.uses), None)
        if found is not None:
            own[found] = text
        # As Spark's connector does: an error would stop jobs that run with it.
        elif not any(use in each.ignored for each in named):
            raise _no_option(given, use, named, every)
        else:
            _log.warning("option %s has no effect in a %s", named[0].name, use)
    return own, kafka


def values_of(own: Mapping[SparkOption, str]) -> dict[str, object]:
    """Return the values of options, by the names of their fields.

    Raises:
        ConfigurationError: a value is impossible.
    """
    return {found.field.name: found.read(text) for found, text in own.items()}


def _no_option(
    given: str, use: Use, named: list[SparkOption], every: list[SparkOption]
) -> ConfigurationError:
    """Return the error for an option that is unknown or has no place in this use."""
    name, kind = given.lower(), use.split()[1]
    if named and name.startswith("ending") and use == "stream read":
        return ConfigurationError(
            f"{named[0].name}: a stream has no end; use a batch read, or "
            "maxOffsetsPerTrigger with Trigger.AvailableNow"
        )
    hint = _ELSEWHERE.get(name)
    if hint is None:
        starts = _ELSEWHERE_PREFIXES.items()
        hint = next((h for p, h in starts if name.startswith(p)), None)
    if hint is not None:
        return ConfigurationError(
            f"option {shown_name(given)} is not possible here: {hint}"
        )
    if named:
        where = " or ".join(use for each in named for use in each.uses)
        return ConfigurationError(
            f"{named[0].name} is an option of a {where}, not of a {kind}"
        )
    # Loaded for mistakes alone.
    from kafkaio._config.unknown import nearest

    known = [each.name for each in every if use in each.uses]
    near = nearest(name, [*known, "kafka.bootstrap.servers"], _NEAR)
    did = f"; did you mean {near!r}?" if near else ""
    return ConfigurationError(
        f"unknown option {shown_name(given)} of a {kind}{did} "
        "(options of Kafka's own client begin with 'kafka.')"
    )
