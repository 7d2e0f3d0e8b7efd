import pytest
from hypothesis import given, strategies as st

from kafkaio._machines.retries import Retry
from kafkaio.errors import UsageError


@given(st.integers(1, 50), st.floats(0, 1, exclude_max=True))
def test_waits_grow_up_to_their_limit_and_end(attempts: int, roll: float) -> None:
    retry = Retry(attempts=40, backoff_ms=100, backoff_max_ms=1000)
    delay = retry.delay(ValueError(), attempts, roll)
    if attempts >= 40:
        assert delay is None
    else:
        assert delay is not None
        wanted = min(1.0, 0.1 * 2 ** (attempts - 1))
        assert 0.8 * wanted <= delay + 1e-9
        assert delay <= 1.2 * wanted


def test_only_what_is_worth_it_is_tried_again() -> None:
    retry = Retry(on=(OSError, ValueError))
    assert retry.delay(KeyError(), 1, 0.5) is None
    assert retry.delay(ConnectionError(), 1, 0.5) == pytest.approx(0.1)
    assert Retry(attempts=1).delay(ValueError(), 1, 0.5) is None


@pytest.mark.parametrize(
    "wrong", [{"attempts": 0}, {"backoff_ms": -1}, {"backoff_max_ms": -1}]
)
def test_impossible_numbers(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="attempts must be at least 1"):
        Retry(**wrong)  # type: ignore[arg-type]
