"""Options of ``kafkaio quotas``: sizes, entities and filters."""

import pytest

from kafkaio._cli.access.quota_arguments import (
    BadQuota,
    entity_of,
    filter_of,
    quotas_of,
)
from kafkaio._cli.text.sizes import size_of
from kafkaio.admin import QuotaEntity, QuotaFilter, QuotaName


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1000", 1000),
        ("12.5", 12.5),
        (".5", 0.5),
        ("10kB", 10_000),
        ("10 MB", 10_000_000),
        ("10MiB", 10 * 2**20),
        ("1.5gib", 1.5 * 2**30),
        ("7B", 7),
    ],
)
def test_sizes_may_have_a_unit(text: str, size: float) -> None:
    assert size_of(text) == size


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (["producer_byte_rate"], "is not NAME=NUMBER"),
        (["=3"], "is not NAME=NUMBER"),
        (["a=many"], "'many' is not a number"),
        (["a=-1"], "'-1' is not a number"),
        (["a=nan"], "'nan' is not a number"),
        (["a=3M"], "'3M': the unit must be one of B, kB"),
        (["a=1", "a=2"], "a occurs twice"),
    ],
)
def test_what_is_no_quota_says_why(texts: list[str], reason: str) -> None:
    with pytest.raises(BadQuota, match=reason):
        quotas_of(texts)


def test_quotas_are_read() -> None:
    texts = ["producer_byte_rate=1MB", "request_percentage = 50"]
    assert quotas_of(texts) == {"producer_byte_rate": 1e6, "request_percentage": 50}


def test_an_entity_names_somebody() -> None:
    made = entity_of("a", QuotaName.DEFAULT, None)
    assert made == QuotaEntity(user="a", client_id=QuotaName.DEFAULT)
    with pytest.raises(BadQuota, match="name a user, a client id or an IP address"):
        entity_of(None, None, None)
    with pytest.raises(BadQuota, match="goes with neither a user nor a client id"):
        entity_of("a", None, "10.0.0.1")


def test_a_filter_may_name_nobody() -> None:
    assert filter_of(None, None, None, strict=False) == QuotaFilter()
    wanted = filter_of(None, QuotaName.ANY, None, strict=True)
    assert wanted == QuotaFilter(client_id=QuotaName.ANY, strict=True)
    with pytest.raises(BadQuota, match="--strict: name a user"):
        filter_of(None, None, None, strict=True)
    with pytest.raises(BadQuota, match="goes with neither"):
        filter_of(None, "c", QuotaName.ANY, strict=False)
