"""The API of the embedded registry, without HTTP: answers, codes, ids and versions."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from kafkaio.testing._registry.api import Request, answer, split_target
from kafkaio.testing._registry.store import SchemaStore

INT = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
LONG = INT.replace('"int"', '"long"')
TEXT = INT.replace('"int"', '"string"')
MORE = INT.replace("}]}", '},{"name":"b","type":"int","default":0}]}')


class Api:
    """Asks a store as a client does."""

    def __init__(self) -> None:
        self.store = SchemaStore()

    def ask(self, line: str, body: Any = None) -> tuple[int, Any]:
        method, _, target = line.partition(" ")
        path, query = split_target(target)
        content = b"" if body is None else json.dumps(body).encode()
        found = answer(self.store, Request(method, path, query, content))
        return found.status, json.loads(found.body)

    def ok(self, line: str, body: Any = None) -> Any:
        status, found = self.ask(line, body)
        assert status == 200, found
        return found

    def fails(self, line: str, body: Any = None) -> tuple[int, int]:
        status, found = self.ask(line, body)
        assert found["message"]
        return status, found["error_code"]

    def register(self, subject: str, text: str, query: str = "", **more: Any) -> Any:
        body = {"schema": text, **more}
        return self.ok(f"POST /subjects/{subject}/versions{query}", body)

    def level(self, level: str, subject: str = "") -> None:
        path = f"/config/{subject}".rstrip("/")
        self.ok(f"PUT {path}", {"compatibility": level})


@pytest.fixture
def api() -> Api:
    return Api()


def test_the_same_schema_has_one_id_and_a_version_in_each_subject(api: Api) -> None:
    first = api.register("a", INT)
    assert (first["id"], first["version"]) == (1, 1)
    assert api.register("a", f" {INT} ") == first
    second = api.register("b", INT)
    assert (second["id"], second["version"]) == (1, 1)
    assert second["guid"] == first["guid"]
    third = api.register("a", LONG)
    assert (third["id"], third["version"]) == (2, 2)
    assert api.ok("GET /schemas/ids/1/subjects") == ["a", "b"]
    assert api.ok("GET /schemas/ids/2/versions") == [{"subject": "a", "version": 2}]


def test_a_guid_is_made_from_the_content(api: Api) -> None:
    guid = api.register("a", INT)["guid"]
    assert str(UUID(guid)) == guid
    assert Api().register("other", INT)["guid"] == guid
    assert api.register("a", LONG)["guid"] != guid
    found = api.ok(f"GET /schemas/guids/{guid}")
    assert (found["schema"], found["guid"]) == (INT, guid)
    assert api.fails(f"GET /schemas/guids/{UUID(int=0)}") == (404, 40403)


def test_what_is_read_by_id_version_and_lookup(api: Api) -> None:
    api.register("a", INT)
    api.register("a", LONG)
    whole = api.ok("GET /subjects/a/versions/2")
    assert whole == api.ok("GET /subjects/a/versions/latest")
    assert whole == api.ok("GET /subjects/a/versions/-1")
    assert (whole["subject"], whole["version"], whole["id"]) == ("a", 2, 2)
    assert whole["schema"] == LONG
    assert "schemaType" not in whole
    assert api.ok("GET /schemas/ids/2")["schema"] == LONG
    assert api.ok("GET /schemas/ids/2/schema") == json.loads(LONG)
    assert api.ok("GET /subjects/a/versions/2/schema") == json.loads(LONG)
    assert api.ok("POST /subjects/a", {"schema": LONG}) == whole
    assert api.ok("GET /subjects/a/versions") == [1, 2]
    assert api.ok("GET /schemas?latestOnly=true") == [whole]
    assert api.ok("GET /schemas/types") == ["JSON", "PROTOBUF", "AVRO"]
    assert api.ok("GET /") == {}


@pytest.mark.parametrize(
    ("line", "body", "wanted"),
    [
        ("GET /subjects/none/versions", None, (404, 40401)),
        ("GET /subjects/none/versions/1", None, (404, 40401)),
        ("GET /subjects/a/versions/9", None, (404, 40402)),
        ("GET /subjects/a/versions/0", None, (422, 42202)),
        ("GET /subjects/a/versions/x", None, (422, 42202)),
        ("GET /schemas/ids/9", None, (404, 40403)),
        ("GET /schemas/ids/x", None, (404, 404)),
        ("POST /subjects/none", {"schema": INT}, (404, 40401)),
        ("POST /subjects/a", {"schema": TEXT}, (404, 40403)),
        ("POST /subjects/a/versions", {"schema": "{"}, (422, 42201)),
        ("POST /subjects/a/versions", {"schema": ""}, (422, 42201)),
        ("POST /subjects/a/versions", {"schema": 7}, (422, 422)),
        ("POST /subjects/a/versions", {"schema": TEXT}, (409, 409)),
        (
            "POST /subjects/a/versions",
            {"schema": INT, "schemaType": "X"},
            (422, 42201),
        ),
        (
            "POST /subjects/a/versions",
            {
                "schema": INT,
                "references": [{"name": "x", "subject": "none", "version": 1}],
            },
            (422, 42201),
        ),
        (
            "POST /subjects/a/versions",
            {"schema": INT, "references": ["x"]},
            (422, 422),
        ),
        ("POST /subjects/a/versions", [], (400, 400)),
        ("PUT /config", {"compatibility": "SOME"}, (422, 42203)),
        ("GET /config/a", None, (404, 40408)),
        ("PUT /mode", {"mode": "SOME"}, (422, 42204)),
        ("GET /mode/a", None, (404, 40409)),
        ("GET /nowhere", None, (404, 404)),
        ("PUT /subjects", {}, (405, 405)),
    ],
)
def test_each_refusal(api: Api, line: str, body: Any, wanted: tuple[int, int]) -> None:
    api.register("a", INT)
    assert api.fails(line, body) == wanted


def test_names_with_a_slash(api: Api) -> None:
    api.register("shop%2Fline.proto", INT)
    assert api.ok("GET /subjects") == ["shop/line.proto"]
    assert api.ok("GET /subjects/shop%2Fline.proto/versions") == [1]


# ---- deletion ------------------------------------------------------------------------


def test_what_is_deleted_is_hidden_and_can_be_read(api: Api) -> None:
    api.register("a", INT)
    api.register("a", LONG)
    assert api.ok("DELETE /subjects/a/versions/1") == 1
    assert api.ok("GET /subjects/a/versions") == [2]
    assert api.ok("GET /subjects/a/versions?deleted=true") == [1, 2]
    assert api.fails("GET /subjects/a/versions/1") == (404, 40402)
    assert api.ok("GET /subjects/a/versions/1?deleted=true")["deleted"] is True
    assert api.ok("GET /schemas/ids/1")["schema"] == INT
    assert api.fails("DELETE /subjects/a/versions/1") == (404, 40406)
    assert api.fails("DELETE /subjects/a/versions/2?permanent=true") == (404, 40407)


def test_a_subject_is_deleted_in_two_steps(api: Api) -> None:
    api.register("a", INT)
    api.level("NONE", "a")
    assert api.fails("DELETE /subjects/a?permanent=true") == (404, 40405)
    assert api.ok("DELETE /subjects/a") == [1]
    assert api.ok("GET /subjects") == []
    assert api.ok("GET /subjects?deleted=true") == ["a"]
    assert api.ok("GET /subjects?deletedOnly=true") == ["a"]
    assert api.fails("DELETE /subjects/a") == (404, 40404)
    assert api.fails("GET /subjects/a/versions/latest") == (404, 40401)
    assert api.ok("POST /subjects/a?deleted=true", {"schema": INT})["version"] == 1
    assert api.ok("DELETE /subjects/a?permanent=true") == [1]
    assert api.fails("GET /schemas/ids/1") == (404, 40403)
    assert api.fails("GET /config/a") == (404, 40408)
    assert api.fails("DELETE /subjects/a") == (404, 40401)


def test_ids_are_never_given_twice(api: Api) -> None:
    api.register("a", INT)
    api.ok("DELETE /subjects/a")
    again = api.register("a", INT)
    assert (again["id"], again["version"]) == (1, 2)
    api.ok("DELETE /subjects/a")
    api.ok("DELETE /subjects/a?permanent=true")
    assert api.register("a", INT)["id"] == 2


# ---- references ----------------------------------------------------------------------


def test_a_schema_that_is_used_is_kept(api: Api) -> None:
    line = '{"type":"record","name":"Line","fields":[]}'
    order = '{"type":"record","name":"Order","fields":[{"name":"line","type":"Line"}]}'
    api.register("line", line)
    references = [{"name": "Line", "subject": "line", "version": -1}]
    api.register("order", order, references=references)
    pinned = [{"name": "Line", "subject": "line", "version": 1}]
    found = api.ok("GET /schemas/ids/2")
    assert (found["schema"], found["references"]) == (order, pinned)
    assert api.ok("GET /subjects/line/versions/1/referencedby") == [2]
    assert api.fails("DELETE /subjects/line") == (422, 42206)
    assert api.fails("DELETE /subjects/line/versions/1") == (422, 42206)
    assert api.fails("POST /subjects/other/versions", {"schema": order}) == (422, 42201)


def test_references_of_references(api: Api) -> None:
    def proto(name: str, *uses: str) -> str:
        imports = "".join(f'import "{each}.proto"; ' for each in uses)
        fields = "".join(f"{each.upper()} {each} = 1;" for each in uses)
        message = f"message {name.upper()} {{ {fields} }}"
        return f'syntax = "proto3"; {imports}{message}'

    for name, uses in (("a", []), ("b", ["a"]), ("c", ["b"])):
        references = [
            {"name": f"{each}.proto", "subject": each, "version": 1} for each in uses
        ]
        text = proto(name, *uses)
        api.register(name, text, schemaType="PROTOBUF", references=references)
    found = api.ok("GET /subjects/c/versions/1?format=serialized")
    assert (found["schemaType"], found["id"]) == ("PROTOBUF", 3)
    assert " " not in found["schema"]
    assert "message C" in api.ok("GET /subjects/c/versions/1")["schema"]


# ---- normal form ---------------------------------------------------------------------


def test_normal_form(api: Api) -> None:
    one = '{"type":"long","b":1,"a":2}'
    two = '{"type":"long","a":2,"b":1}'
    first = api.register("a", one, "?normalize=true")
    assert api.register("a", two, "?normalize=true") == first
    assert api.ok("GET /schemas/ids/1")["schema"] == two
    found = api.ok("POST /subjects/a?normalize=true", {"schema": one})
    assert found["version"] == 1
    assert api.fails("POST /subjects/a", {"schema": one}) == (404, 40403)


# ---- compatibility -------------------------------------------------------------------

OPTIONAL = MORE  # reads and is read by INT
NEEDED = MORE.replace(',"default":0', "")  # read by INT, does not read it


@pytest.mark.parametrize(
    ("level", "refused"),
    [
        ("NONE", set()),
        ("BACKWARD", {"TEXT", "NEEDED"}),
        ("FORWARD", {"TEXT", "LONG"}),
        ("FULL", {"TEXT", "LONG", "NEEDED"}),
    ],
)
def test_levels(api: Api, level: str, refused: set[str]) -> None:
    api.level("NONE")
    api.register("a", INT)
    api.level(level, "a")
    for transitive in ("", "_TRANSITIVE"):
        if level != "NONE":
            api.level(level + transitive, "a")
        for name in ("INT", "LONG", "TEXT", "OPTIONAL", "NEEDED"):
            body = {"schema": globals()[name]}
            path = "/compatibility/subjects/a/versions"
            for line in (f"POST {path}/latest", f"POST {path}/1", f"POST {path}"):
                found = api.ok(line, body)
                assert found == {"is_compatible": name not in refused}, (name, line)


def test_only_transitive_levels_look_at_all_versions(api: Api) -> None:
    api.level("NONE")
    for text in (TEXT, INT):
        api.register("a", text)
    path = "POST /compatibility/subjects/a/versions"
    api.level("BACKWARD")
    assert api.ok(path, {"schema": LONG})["is_compatible"]
    assert not api.ok(f"{path}/1", {"schema": LONG})["is_compatible"]
    api.level("BACKWARD_TRANSITIVE")
    assert not api.ok(path, {"schema": LONG})["is_compatible"]
    assert api.fails("POST /subjects/a/versions", {"schema": LONG}) == (409, 409)
    assert api.fails(f"{path}/7", {"schema": LONG}) == (404, 40402)
    # A subject that does not exist takes everything.
    new = "POST /compatibility/subjects/none/versions/latest"
    assert api.ok(new, {"schema": LONG})["is_compatible"]


def test_reasons_are_told_if_they_are_asked_for(api: Api) -> None:
    api.register("a", INT)
    path = "POST /compatibility/subjects/a/versions/latest?verbose=true"
    assert api.ok(path, {"schema": LONG}) == {"is_compatible": True, "messages": []}
    found = api.ok(path, {"schema": TEXT})
    reason, version, schema, level = found["messages"]
    assert "TYPE_MISMATCH" in reason
    assert "/fields/0/type" in reason
    assert version == "{oldSchemaVersion: 1}"
    assert schema == f"{{oldSchema: '{INT}'}}"
    assert level == "{compatibility: 'BACKWARD'}"
    status, refused = api.ask("POST /subjects/a/versions", {"schema": TEXT})
    assert status == 409
    assert reason in refused["message"]


def test_another_language_is_not_compatible(api: Api) -> None:
    api.register("a", INT)
    body = {"schema": "true", "schemaType": "JSON"}
    assert api.fails("POST /subjects/a/versions", body) == (409, 409)
    api.level("NONE")
    assert api.ok("POST /subjects/a/versions", body)["version"] == 2


def test_levels_of_subjects_and_of_all(api: Api) -> None:
    assert api.ok("GET /config") == {"compatibilityLevel": "BACKWARD"}
    put = api.ok("PUT /config/a", {"compatibility": "full"})
    assert put == {"compatibility": "FULL"}
    assert api.ok("GET /config/a") == {"compatibilityLevel": "FULL"}
    assert api.ok("GET /config/b?defaultToGlobal=true") == {
        "compatibilityLevel": "BACKWARD"
    }
    assert api.ok("DELETE /config/a") == {"compatibilityLevel": "FULL"}
    assert api.fails("DELETE /config/a") == (404, 40408)
    api.level("NONE")
    assert api.ok("DELETE /config") == {"compatibilityLevel": "NONE"}
    assert api.ok("GET /config") == {"compatibilityLevel": "BACKWARD"}


# ---- modes ---------------------------------------------------------------------------


def test_modes(api: Api) -> None:
    assert api.ok("GET /mode") == {"mode": "READWRITE"}
    api.ok("PUT /mode/a", {"mode": "READONLY"})
    assert api.fails("POST /subjects/a/versions", {"schema": INT}) == (422, 42205)
    assert api.ok("GET /mode/a") == {"mode": "READONLY"}
    assert api.ok("DELETE /mode/a") == {"mode": "READONLY"}
    assert api.register("a", INT)["id"] == 1


def test_an_import_brings_its_ids(api: Api) -> None:
    body = {"schema": INT, "id": 77}
    assert api.fails("POST /subjects/a/versions", body) == (422, 42205)
    api.ok("PUT /mode/a", {"mode": "IMPORT"})
    assert api.ok("POST /subjects/a/versions", body)["id"] == 77
    assert api.fails("POST /subjects/a/versions", {"schema": TEXT, "id": 77}) == (
        422,
        42205,
    )
    # Nothing is compared, and the next id comes after it.
    assert api.register("a", TEXT)["id"] == 78
