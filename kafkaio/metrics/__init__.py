"""Ready observers: figures and spans for the libraries that services use for them.

`kafkaio.metrics.prometheus.PrometheusObserver` needs the extra ``prometheus``, and
`kafkaio.metrics.opentelemetry.OpenTelemetryObserver` the extra ``opentelemetry``. Each
is given to a client, producer, consumer or admin as ``observer=``, alone or in a list.
`kafkaio.metrics.instrumentation` gives the second one to all of them, without a change
of the program; it needs the extra ``instrumentation``.
"""
