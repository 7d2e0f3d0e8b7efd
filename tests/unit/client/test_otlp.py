"""What the encoder writes is what OpenTelemetry's own parser reads."""

from __future__ import annotations

from hypothesis import given, strategies as st
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from kafkaio._client.telemetry.otlp import Point, Times, encode

NAMES = st.sampled_from(["a", "b.c", "ä", "x" * 127, "y" * 200, "z" * 20_000])
ATTRIBUTES = st.sampled_from([(), (("a", "b"),), (("a", "ä"), ("b", "y" * 200))])
POINTS = st.builds(Point, NAMES, st.floats(allow_nan=False), ATTRIBUTES, st.booleans())
NANOSECONDS = st.integers(0, 2**64 - 1)


@given(
    st.lists(POINTS, max_size=6),
    NANOSECONDS,
    NANOSECONDS,
    st.booleans(),
    st.sampled_from([{}, {"group_id": "g"}, {"a": "x" * 300, "b": "ä"}]),
)
def test_it_is_read_as_it_was_meant(
    points: list[Point], start: int, now: int, delta: bool, about: dict[str, str]
) -> None:
    message = MetricsData.FromString(encode(points, Times(start, now, delta), about))
    [part] = message.resource_metrics
    found = {one.key: one.value.string_value for one in part.resource.attributes}
    assert found == about
    [scope] = part.scope_metrics
    read = []
    for metric in scope.metrics:
        is_sum = metric.WhichOneof("data") == "sum"
        if is_sum:
            assert metric.sum.aggregation_temporality == (1 if delta else 2)
            assert metric.sum.is_monotonic
        for point in (metric.sum if is_sum else metric.gauge).data_points:
            assert point.time_unix_nano == now
            assert point.start_time_unix_nano == (start if is_sum else 0)
            pairs = tuple((one.key, one.value.string_value) for one in point.attributes)
            read.append(Point(metric.name, point.as_double, pairs, is_sum))
    assert sorted(read) == sorted(points)


def test_values_of_one_name_are_points_of_one_metric() -> None:
    points = [Point("a", 1.0, (("topic", "x"),)), Point("a", 2.0, (("topic", "y"),))]
    message = MetricsData.FromString(encode(points, Times(1, 2, is_delta=True), {}))
    [metric] = message.resource_metrics[0].scope_metrics[0].metrics
    assert [point.as_double for point in metric.gauge.data_points] == [1.0, 2.0]
