"""A registry in memory, for tests of the serdes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from uuid import UUID, uuid5

from kafkaio.errors import SchemaError
from kafkaio.registry import RegisteredSchema, Schema

_NAMESPACE = UUID(int=1)


class MemoryRegistry:
    """Has what a serde asks of a registry, and counts what is asked.

    Args:
        has_guids: whether schemas have GUIDs.
    """

    def __init__(self, *, has_guids: bool = True) -> None:
        self.asked: Counter[str] = Counter()
        self.by_id: dict[int, Schema] = {}
        self.subjects: dict[str, list[RegisteredSchema]] = {}
        self.cached_ids: dict[int | UUID, Schema] = {}
        self.cached_subjects: dict[tuple[str, Schema], RegisteredSchema] = {}
        self.gate: asyncio.Event | None = None
        self._has_guids = has_guids

    def add(self, subject: str, schema: Schema) -> RegisteredSchema:
        """Register a schema, as another client would."""
        known = next((id_ for id_, each in self.by_id.items() if each == schema), None)
        schema_id = len(self.by_id) + 1 if known is None else known
        self.by_id[schema_id] = schema
        versions = self.subjects.setdefault(subject, [])
        for each in versions:
            if each.schema == schema:
                return each
        guid = uuid5(_NAMESPACE, str(schema_id)) if self._has_guids else None
        made = RegisteredSchema(subject, len(versions) + 1, schema_id, schema, guid)
        versions.append(made)
        return made

    def known(self, schema_id: int | UUID) -> Schema | None:
        return self.cached_ids.get(schema_id)

    def known_id(self, subject: str, schema: Schema) -> RegisteredSchema | None:
        return self.cached_subjects.get((subject, schema))

    async def _ask(self, what: str) -> None:
        self.asked[what] += 1
        if self.gate is not None:
            await self.gate.wait()
        await asyncio.sleep(0)

    async def schema(self, schema_id: int) -> Schema:
        await self._ask("schema")
        if schema_id not in self.by_id:
            raise SchemaError("", f"schema {schema_id} not found", status=404)
        schema = self.cached_ids[schema_id] = self.by_id[schema_id]
        return schema

    async def schema_by_guid(self, guid: UUID) -> Schema:
        await self._ask("schema_by_guid")
        for versions in self.subjects.values():
            for each in versions:
                if each.guid == guid:
                    self.cached_ids[guid] = each.schema
                    return each.schema
        raise SchemaError("", f"schema {guid} not found", status=404)

    async def references(self, schema: Schema) -> Mapping[str, Schema]:
        await self._ask("references")
        found: dict[str, Schema] = {}
        for reference in schema.references:
            each = self.subjects[reference.subject][reference.version - 1].schema
            found |= await self.references(each)
            found[reference.name] = each
        return found

    async def register(
        self, subject: str, schema: Schema, *, normalize: bool = False
    ) -> RegisteredSchema:
        await self._ask("register")
        made = self.cached_subjects[subject, schema] = self.add(subject, schema)
        return made

    async def lookup(
        self, subject: str, schema: Schema, *, normalize: bool = False
    ) -> RegisteredSchema:
        await self._ask("lookup")
        for each in self.subjects.get(subject, ()):
            if each.schema == schema:
                self.cached_subjects[subject, schema] = each
                return each
        raise SchemaError(subject, "schema not found", status=404)

    async def latest(self, subject: str) -> RegisteredSchema:
        await self._ask("latest")
        if subject not in self.subjects:
            raise SchemaError(subject, "subject not found", status=404)
        return self.subjects[subject][-1]
