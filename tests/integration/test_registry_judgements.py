"""The registry in process judges schemas of Avro as Apicurio does, by Java's Avro."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from kafkaio.testing import SchemaRegistry
from tests.support.apicurio import Apicurio
from tests.support.patience import HANGS
from tests.unit.testing.registry.avro_schemas import Maker

SEEDS = 60


def evolutions() -> list[tuple[str, str]]:
    """An older schema and a newer one of each seed."""
    found = []
    for seed in range(SEEDS):
        maker = Maker(seed)
        old = maker.record()
        found.append((json.dumps(old), json.dumps(maker.change(old, is_safe=False))))
    return found


async def judgements(url: str) -> list[Any]:
    """What a registry says of each evolution."""
    found = []
    async with httpx.AsyncClient(base_url=url, timeout=HANGS) as http:
        for number, (old, new) in enumerate(evolutions()):
            subject = f"judged-{number}"
            level = {"compatibility": "BACKWARD"}
            await http.put(f"/config/{subject}", json=level)
            path = f"/subjects/{subject}/versions"
            reply = await http.post(path, json={"schema": old})
            assert reply.status_code == 200, reply.text
            reply = await http.post(
                f"/compatibility{path}/latest", json={"schema": new}
            )
            assert reply.status_code == 200, reply.text
            reply_of_registration = await http.post(path, json={"schema": new})
            found.append(
                (reply.json()["is_compatible"], reply_of_registration.status_code)
            )
    return found


@pytest.mark.not_embedded("a real registry judges")
async def test_random_changes_are_judged_alike(
    apicurio: Apicurio, kafka_registry: SchemaRegistry
) -> None:
    async with asyncio.timeout(HANGS):
        theirs = await judgements(apicurio.url)
        ours = await judgements(kafka_registry.url)
    for number, (one, other) in enumerate(zip(theirs, ours, strict=True)):
        assert one == other, evolutions()[number]
    assert {(True, 200), (False, 409)} == set(ours)
