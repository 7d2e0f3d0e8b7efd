"""Refusals of a schema registry, with the codes and texts of Confluent's."""

from __future__ import annotations

from typing import Final

#: Confluent's code for a schema that is not compatible; it is the status, too.
INCOMPATIBLE: Final = 409
_LEVELS: Final = (
    "none, backward, forward, full, backward_transitive, forward_transitive, and "
    "full_transitive"
)


class InvalidSchema(Exception):
    """A text is not a schema; the message says why."""


class Refusal(Exception):
    """An answer that is an error.

    Attributes:
        status: the status of HTTP.
        code: the registry's own code.
        message: the text for people.
    """

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


def not_found(text: str = "HTTP 404 Not Found") -> Refusal:
    """There is no such address."""
    return Refusal(404, 404, text)


def method_not_allowed() -> Refusal:
    """The address has no such method."""
    return Refusal(405, 405, "HTTP 405 Method Not Allowed")


def unauthorized() -> Refusal:
    """The login is missing or wrong."""
    return Refusal(401, 40101, "Unauthorized")


def bad_request(reason: str) -> Refusal:
    """The body is not what the request has to have."""
    return Refusal(400, 400, reason)


def unprocessable(reason: str) -> Refusal:
    """A field of the body is missing or wrong."""
    return Refusal(422, 422, reason)


def subject_not_found(subject: str) -> Refusal:
    """No version of the subject exists."""
    return Refusal(404, 40401, f"Subject '{subject}' not found.")


def version_not_found(version: int) -> Refusal:
    """The subject has no such version."""
    return Refusal(404, 40402, f"Version {version} not found.")


def schema_not_found(which: object = "") -> Refusal:
    """No schema has the id or GUID, or the subject does not have the schema."""
    name = f"Schema {which} not found" if which != "" else "Schema not found"
    return Refusal(404, 40403, name)


def soft_deleted(subject: str, version: int | None = None) -> Refusal:
    """It is deleted already; only ``permanent=true`` does more."""
    code = 40404 if version is None else 40406
    which = "" if version is None else f" Version {version}"
    text = "was soft deleted. Set permanent=true to delete permanently"
    return Refusal(404, code, f"Subject '{subject}'{which} {text}")


def not_soft_deleted(subject: str, version: int | None = None) -> Refusal:
    """It must be deleted first before it can be deleted for good."""
    code = 40405 if version is None else 40407
    which = "" if version is None else f" Version {version}"
    text = "was not deleted first before being permanently deleted"
    return Refusal(404, code, f"Subject '{subject}'{which} {text}")


def no_subject_level(subject: str) -> Refusal:
    """The subject has no compatibility of its own."""
    text = "does not have subject-level compatibility configured"
    return Refusal(404, 40408, f"Subject '{subject}' {text}")


def no_subject_mode(subject: str) -> Refusal:
    """The subject has no mode of its own."""
    text = "does not have subject-level mode configured"
    return Refusal(404, 40409, f"Subject '{subject}' {text}")


def invalid_schema(reason: str) -> Refusal:
    """The schema cannot be parsed."""
    return Refusal(422, 42201, f"Invalid schema: {reason}")


def invalid_version(version: str) -> Refusal:
    """The version is neither a number nor ``latest``."""
    text = (
        f"The specified version '{version}' is not a valid version id. Allowed values "
        'are between [1, 2^31-1] and the string "latest"'
    )
    return Refusal(422, 42202, text)


def invalid_level() -> Refusal:
    """The level of compatibility does not exist."""
    text = f"Invalid compatibility level. Valid values are {_LEVELS}"
    return Refusal(422, 42203, text)


def invalid_mode() -> Refusal:
    """The mode does not exist."""
    text = "Invalid mode. Valid values are READWRITE, READONLY, IMPORT"
    return Refusal(422, 42204, text)


def not_permitted(reason: str) -> Refusal:
    """The mode does not allow it."""
    return Refusal(422, 42205, reason)


def referenced(subject: str, version: int) -> Refusal:
    """Other schemas use the version, so it cannot be deleted."""
    text = f"One or more references exist to the schema {subject} version {version}"
    return Refusal(422, 42206, text)


def incompatible(subject: str, details: str) -> Refusal:
    """The schema breaks the subject's compatibility."""
    text = (
        "Schema being registered is incompatible with an earlier schema for subject "
        f'"{subject}", details: [{details}]'
    )
    return Refusal(409, INCOMPATIBLE, text)
