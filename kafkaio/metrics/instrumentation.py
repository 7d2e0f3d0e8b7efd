"""Instruments programs with OpenTelemetry without a change of their code.

``opentelemetry-instrument python program.py`` finds `KafkaioInstrumentor` by its entry
point. This module needs opentelemetry-instrumentation:
``pip install 'kafkaio[instrumentation]'``.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Final

from opentelemetry import metrics, trace
from opentelemetry.instrumentation import instrumentor

from kafkaio._runtime.observer import add_default_observer, remove_default_observer
from kafkaio.errors import ArgumentValueError
from kafkaio.metrics.opentelemetry import OpenTelemetryObserver

__all__ = ["KafkaioInstrumentor"]

#: The variables of the environment, for programs that nobody edits.
_SPANS: Final = "OTEL_PYTHON_KAFKAIO_SPANS"
_PROPAGATE: Final = "OTEL_PYTHON_KAFKAIO_PROPAGATE"
_BOOLEANS: Final[Mapping[str, bool]] = {"true": True, "false": False}


class KafkaioInstrumentor(
    instrumentor.BaseInstrumentor  # type: ignore[misc,name-defined]  # has no types
):
    """Gives every object of kafkaio an `OpenTelemetryObserver`.

    It applies to each producer, consumer, share consumer, admin and client that is made
    after ``instrument`` was called, beside the observers that the object is given. An
    object that is given an `OpenTelemetryObserver` keeps that one alone. Contexts go
    with the records, and handlers of ``run`` and `kafkaio.exactly_once` work in spans.

    There is one instrumentor in a process: each call of the class returns it.

    ``instrument`` takes these arguments by keyword:

    - ``tracer_provider``, ``meter_provider``: make the spans and the metrics; the
      global ones by default.
    - ``spans``, ``propagate``, ``handlers``, ``partition_attributes``, ``max_links``:
      as for `OpenTelemetryObserver`. ``propagate`` and ``handlers`` are True by
      default. The variables ``OTEL_PYTHON_KAFKAIO_SPANS`` (``batch``, ``record`` or
      ``none``) and ``OTEL_PYTHON_KAFKAIO_PROPAGATE`` (``true`` or ``false``) of the
      environment have other defaults for the first two.

    ``instrument`` raises ArgumentValueError if one of these has an impossible value,
    and TypeError for any other argument. ``uninstrument`` ends the calls of the
    observer, in objects that exist, too.
    """

    def __init__(self) -> None:
        # The class is a singleton, and this is called at each call of the class.
        if not hasattr(self, "_made"):
            self._made: dict[tuple[object, ...], OpenTelemetryObserver] = {}
            self._observer: OpenTelemetryObserver | None = None

    @property
    def observer(self) -> OpenTelemetryObserver | None:
        """The observer that objects get; None if nothing is instrumented.

        For code that works on records outside of handlers, by its method ``process``.
        """
        return self._observer

    def instrumentation_dependencies(self) -> Collection[str]:
        """Return the packages that have to be there: the one of this class."""
        return ()

    def _instrument(
        self,
        *,
        meter_provider: metrics.MeterProvider | None = None,
        tracer_provider: trace.TracerProvider | None = None,
        **options: object,
    ) -> None:
        options = {**_defaults(os.environ), **options}
        # The metrics of a meter are made once: a second observer for it would report
        # the same metrics again.
        key = meter_provider, tracer_provider, *sorted(options.items())
        observer = self._made.get(key)
        if observer is None:
            observer = self._made[key] = OpenTelemetryObserver(
                meter_provider,
                tracer_provider,
                **options,  # type: ignore[arg-type]  # checked by the class
            )
        self._observer = observer
        add_default_observer(observer)

    def _uninstrument(self, **kwargs: object) -> None:
        del kwargs
        remove_default_observer(self._observer)
        self._observer = None


def _defaults(environ: Mapping[str, str]) -> dict[str, object]:
    """Return the options that the environment has, or that differ from the class's.

    Raises:
        ArgumentValueError: a variable has an impossible value.
    """
    found: dict[str, object] = {"propagate": True, "handlers": True}
    if spans := environ.get(_SPANS, "").strip().lower():
        if spans not in {"batch", "record", "none"}:
            raise ArgumentValueError(
                f"{_SPANS} must be batch, record or none, not {spans!r}"
            )
        found["spans"] = spans
    if propagates := environ.get(_PROPAGATE, "").strip().lower():
        if propagates not in _BOOLEANS:
            raise ArgumentValueError(
                f"{_PROPAGATE} must be true or false, not {propagates!r}"
            )
        found["propagate"] = _BOOLEANS[propagates]
    return found
