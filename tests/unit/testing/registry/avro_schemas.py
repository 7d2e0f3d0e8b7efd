"""Avro schemas, values of them and changes to them, for property tests.

They are made from a seed: a strategy that draws each part takes fifty times as long.
"""

from __future__ import annotations

import copy
import random
from typing import Any

from hypothesis import strategies as st

PRIMITIVES = (
    *("null", "boolean", "int", "long", "float", "double", "bytes", "string"),
)
PROMOTIONS = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
SYMBOLS = ("A", "B", "C", "D")
#: A value of each primitive type, for a default.
DEFAULTS: dict[str, Any] = {
    "null": None,
    "boolean": True,
    "int": 1,
    "long": 2,
    "float": 0.5,
    "double": 1.5,
    "bytes": "b",
    "string": "s",
}


class Maker:
    """Draws schemas whose names are all different."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._names = 0

    def name(self, stem: str) -> str:
        self._names += 1
        return f"{stem}{self._names}"

    def pick(self, *choices: Any) -> Any:
        return self._random.choice(choices)

    def shuffle(self, values: list[Any]) -> list[Any]:
        return self._random.sample(values, len(values))

    # ---- schemas ---------------------------------------------------------------------

    def schema(self, depth: int = 2) -> Any:
        kinds = ["primitive", "enum", "fixed"]
        if depth:
            kinds += ["array", "map", "record", "record", "union"]
        match self.pick(*kinds):
            case "primitive":
                return self.pick(*PRIMITIVES)
            case "enum":
                return self.enum()
            case "fixed":
                size = self.pick(1, 2)
                return {"type": "fixed", "name": self.name("F"), "size": size}
            case "array":
                return {"type": "array", "items": self.schema(depth - 1)}
            case "map":
                return {"type": "map", "values": self.schema(depth - 1)}
            case "record":
                return self.record(depth)
            case _:
                return self.union(depth)

    def enum(self) -> Any:
        symbols = list(SYMBOLS[: self.pick(1, 2, 3)])
        return {"type": "enum", "name": self.name("E"), "symbols": symbols}

    def record(self, depth: int = 2) -> Any:
        fields = [self.field(depth) for _ in range(self.pick(0, 1, 2, 3))]
        return {"type": "record", "name": self.name("R"), "fields": fields}

    def field(self, depth: int) -> Any:
        return {"name": self.name("f"), "type": self.schema(depth - 1)}

    def union(self, depth: int) -> Any:
        branches: dict[str, Any] = {}
        for _ in range(self.pick(1, 2, 3)):
            branch = self.schema(depth - 1)
            if not isinstance(branch, list):
                branches.setdefault(union_key(branch), branch)
        return list(branches.values()) or ["null"]

    # ---- values ----------------------------------------------------------------------

    def value(self, schema: Any) -> Any:
        if isinstance(schema, list):
            # The type is said, so that the value is written by this branch.
            return self.value(self.pick(*schema))
        kind = schema if isinstance(schema, str) else schema["type"]
        match kind:
            case "record":
                return {f["name"]: self.value(f["type"]) for f in schema["fields"]}
            case "array":
                return [self.value(schema["items"]) for _ in range(self.pick(0, 1, 2))]
            case "map":
                return {k: self.value(schema["values"]) for k in self.pick("", "k")}
            case "enum":
                return self.pick(*schema["symbols"])
            case "fixed":
                return b"x" * schema["size"]
            case _:
                pass
        return DEFAULTS[kind].encode() if kind == "bytes" else DEFAULTS[kind]

    # ---- changes ---------------------------------------------------------------------

    def change(self, schema: Any, *, is_safe: bool) -> Any:
        """Draw a newer schema.

        Args:
            schema: the older one.
            is_safe: whether the newer one has to read whatever the older one wrote.
        """
        if not is_safe and self.pick(*range(6)) == 0:
            return self.schema(1)
        if isinstance(schema, list):
            return self.change_union(schema, is_safe=is_safe)
        if self.pick(*range(5)) == 0:
            changed = self.change(schema, is_safe=is_safe)
            return changed if isinstance(changed, list) else self.wrap(changed)
        if isinstance(schema, str):
            return self.pick(schema, *PROMOTIONS.get(schema, ()))
        new = copy.copy(schema)
        match schema["type"]:
            case "array":
                new["items"] = self.change(schema["items"], is_safe=is_safe)
            case "map":
                new["values"] = self.change(schema["values"], is_safe=is_safe)
            case "enum":
                self.change_enum(new, is_safe=is_safe)
            case "fixed" if not is_safe:
                new["size"] = self.pick(1, 2)
            case "record":
                self.change_record(new, is_safe=is_safe)
            case _:
                pass
        return new

    def wrap(self, schema: Any) -> Any:
        return [schema] if schema == "null" else self.pick([schema], ["null", schema])

    def change_union(self, schema: list[Any], *, is_safe: bool) -> Any:
        branches = {union_key(b): b for b in schema}
        if not is_safe and len(branches) > 1 and self.pick(0, 1):
            del branches[self.pick(*branches)]
        for key, branch in list(branches.items()):
            changed = self.change(branch, is_safe=is_safe)
            # A promoted branch may meet its like, or be a union by now.
            is_new = not isinstance(changed, list)
            if is_new and union_key(changed) == key:
                branches[key] = changed
        if not is_safe and len(branches) == 1 and self.pick(0, 1):
            return next(iter(branches.values()))
        branches.setdefault("null", "null")
        return self.shuffle(list(branches.values()))

    def change_enum(self, new: Any, *, is_safe: bool) -> None:
        new["symbols"] = list(SYMBOLS[: self.pick(1, 2, 3, 4)])
        if is_safe or self.pick(0, 1):
            new["default"] = "A"
        if self.pick(0, 1):
            new["aliases"] = [new["name"]]
            new["name"] = self.name("E")

    def change_record(self, new: Any, *, is_safe: bool) -> None:
        fields = []
        for field in new["fields"]:
            if self.pick(*range(4)) == 0:
                continue
            kept = {**field, "type": self.change(field["type"], is_safe=is_safe)}
            if self.pick(0, 1):
                kept["aliases"] = [kept["name"]]
                kept["name"] = self.name("f")
            fields.append(kept)
        if self.pick(0, 1):
            kind = self.pick(*PRIMITIVES)
            added = {"name": self.name("f"), "type": kind}
            if is_safe or self.pick(0, 1):
                added["default"] = DEFAULTS[kind]
            fields.append(added)
        new["fields"] = self.shuffle(fields)
        if self.pick(*range(3)) == 0:
            new["aliases"] = [new["name"]]
            new["name"] = self.name("R")


def union_key(schema: Any) -> str:
    if isinstance(schema, str):
        return schema
    return str(schema.get("name") or schema["type"])


SEEDS = st.integers(0, 2**64)


def schemas() -> st.SearchStrategy[Any]:
    return SEEDS.map(lambda seed: Maker(seed).schema(3))


def evolutions(*, is_safe: bool) -> st.SearchStrategy[tuple[Any, Any, Any]]:
    """An older schema, a value of it, and a newer schema."""

    def make(seed: int) -> tuple[Any, Any, Any]:
        maker = Maker(seed)
        old = maker.record()
        return old, maker.value(old), maker.change(old, is_safe=is_safe)

    return SEEDS.map(make)
