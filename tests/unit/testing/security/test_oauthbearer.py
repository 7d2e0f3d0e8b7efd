"""What the embedded broker takes for a token without a signature."""

from __future__ import annotations

import pytest

from kafkaio.testing._security.oauthbearer import unsecured
from tests.unit.testing.broker.logins import unsigned


@pytest.mark.parametrize(
    ("end", "expected_ms"),
    [
        ("1.5", 1_500),
        ("1e300", 253_402_300_800_000),
        ("1e999", 253_402_300_800_000),
        ("9" * 400, 253_402_300_800_000),
        ("-1e999", 0),
    ],
)
def test_any_number_is_an_end(end: str, expected_ms: int) -> None:
    claims = unsecured(unsigned(f'{{"sub": "alice", "exp": {end}}}'))
    assert (claims.principal, claims.expires_ms) == ("alice", expected_ms)


@pytest.mark.parametrize(
    "claims",
    [
        '{"sub": "alice", "exp": Infinity}',
        '{"sub": "alice", "exp": NaN}',
        '{"sub": "alice", "exp": "soon"}',
        '{"sub": "alice"}',
        '{"sub": "", "exp": 1}',
        "[1]",
        "[" * 60_000,
        "no JSON",
    ],
)
def test_what_is_no_token(claims: str) -> None:
    with pytest.raises(ValueError, match=r"JSON|claim|object|levels|Expecting"):
        unsecured(unsigned(claims))
