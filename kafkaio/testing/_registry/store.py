"""What a registry knows: subjects, versions, schemas, levels and modes.

Pure state: it knows neither HTTP nor a loop. Numbers, codes and texts are those of
Confluent's registry 8.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from kafkaio.testing._registry import languages
from kafkaio.testing._registry.errors import (
    InvalidSchema,
    Refusal,
    incompatible,
    invalid_level,
    invalid_mode,
    invalid_schema,
    no_subject_level,
    no_subject_mode,
    not_permitted,
    not_soft_deleted,
    referenced,
    schema_not_found,
    soft_deleted,
    subject_not_found,
    version_not_found,
)
from kafkaio.testing._registry.parsed import ParsedSchemaPort

LEVELS: Final = frozenset(
    (
        *("NONE", "BACKWARD", "FORWARD", "FULL"),
        *("BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE"),
    )
)
MODES: Final = frozenset(("READWRITE", "READONLY", "IMPORT"))
_READS_OLD: Final = frozenset(("BACKWARD", "FULL"))
_IS_READ_BY_OLD: Final = frozenset(("FORWARD", "FULL"))


@dataclass(frozen=True, slots=True)
class Reference:
    """A schema that another one uses.

    Attributes:
        name: the name that the other one has for it.
        subject: the subject under which it is registered.
        version: its version there; -1 for the latest.
    """

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class GivenSchema:
    """A schema as a client sends it.

    Attributes:
        text: the schema.
        kind: its language.
        references: the schemas that it uses.
    """

    text: str
    kind: str = languages.AVRO
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredSchema:
    """A schema that has an id.

    Attributes:
        id: its number.
        guid: made from its content, so the same in each registry.
        given: its text as the registry keeps it, and what belongs to it.
        parsed: the same, understood.
    """

    id: int
    guid: UUID
    given: GivenSchema
    parsed: ParsedSchemaPort


@dataclass(slots=True)
class Version:
    """A schema in a subject.

    Attributes:
        subject: the subject.
        number: the version.
        schema: the schema.
        is_deleted: whether it is hidden, and can be deleted for good.
    """

    subject: str
    number: int
    schema: StoredSchema
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class _Draft:
    """A schema before it has an id: its text as it is kept, and the parsed one."""

    given: GivenSchema
    parsed: ParsedSchemaPort


class SchemaStore:
    """All that one registry knows."""

    def __init__(self) -> None:
        self._last_id = 0
        self._versions: dict[str, list[Version]] = {}
        self._by_id: dict[int, StoredSchema] = {}
        self._ids: dict[GivenSchema, int] = {}
        self._levels: dict[str, str] = {}
        self._modes: dict[str, str] = {}

    # ---- to look up ------------------------------------------------------------------

    def subjects(self, prefix: str = "", *, deleted: bool = False) -> list[str]:
        """Return the names of subjects, in order.

        Args:
            prefix: what they begin with.
            deleted: whether those whose versions are all deleted are named, too.
        """
        return sorted(
            name
            for name in self._versions
            if name.startswith(prefix) and self._found(name, deleted=deleted)
        )

    def versions(self, subject: str, *, deleted: bool = False) -> list[Version]:
        """Return the versions of a subject, in order.

        Raises:
            Refusal: it has none.
        """
        found = self._found(subject, deleted=deleted)
        if not found:
            raise subject_not_found(subject)
        return found

    def version(
        self, subject: str, number: int | None, *, deleted: bool = False
    ) -> Version:
        """Return one version of a subject, None for the latest.

        Raises:
            Refusal: the subject or the version does not exist.
        """
        found = self.versions(subject, deleted=deleted)
        if number is None:
            return found[-1]
        for version in found:
            if version.number == number:
                return version
        raise version_not_found(number)

    def schema(self, schema_id: int) -> StoredSchema:
        """Return a schema by its id, those of deleted versions included.

        Raises:
            Refusal: no schema has it.
        """
        if schema_id not in self._by_id:
            raise schema_not_found(schema_id)
        return self._by_id[schema_id]

    def schema_by_guid(self, guid: str) -> StoredSchema:
        """Return a schema by its GUID.

        Raises:
            Refusal: no schema has it.
        """
        for schema in self._by_id.values():
            if str(schema.guid) == guid.lower():
                return schema
        raise schema_not_found(guid)

    def uses_of(self, schema_id: int, *, deleted: bool = False) -> list[Version]:
        """Return the versions that have a schema.

        Raises:
            Refusal: no schema has the id.
        """
        self.schema(schema_id)
        return [
            version
            for version in self._all(deleted=deleted)
            if version.schema.id == schema_id
        ]

    def users_of(self, subject: str, number: int | None) -> list[int]:
        """Return the ids of the schemas that refer to a version.

        Raises:
            Refusal: the version does not exist.
        """
        wanted = self.version(subject, number, deleted=True)
        found = {
            version.schema.id
            for version in self._all()
            if any(
                (each.subject, each.version) == (subject, wanted.number)
                for each in version.schema.given.references
            )
        }
        return sorted(found)

    def lookup(
        self,
        subject: str,
        given: GivenSchema,
        *,
        normalize: bool = False,
        deleted: bool = False,
    ) -> Version:
        """Return the version of a subject that has a schema.

        Raises:
            Refusal: the subject does not exist or does not have it, or it cannot be
                parsed.
        """
        found = self.versions(subject, deleted=deleted)
        draft = self._draft(given, normalize=normalize)
        for version in reversed(found):
            if _is_same(version.schema, draft, normalize=normalize):
                return version
        raise schema_not_found()

    def _found(self, subject: str, *, deleted: bool) -> list[Version]:
        versions = self._versions.get(subject, [])
        return [each for each in versions if deleted or not each.is_deleted]

    def _all(self, *, deleted: bool = False) -> Iterator[Version]:
        for subject in sorted(self._versions):
            yield from self._found(subject, deleted=deleted)

    # ---- to register -----------------------------------------------------------------

    def register(
        self,
        subject: str,
        given: GivenSchema,
        *,
        normalize: bool = False,
        schema_id: int | None = None,
    ) -> Version:
        """Add a schema to a subject, or find it there.

        Args:
            subject: the subject.
            given: the schema.
            normalize: whether it is kept in normal form.
            schema_id: its id, for the mode IMPORT alone.

        Raises:
            Refusal: it cannot be parsed, breaks the compatibility, or the mode of the
                subject does not allow it.
        """
        draft = self._draft(given, normalize=normalize)
        for version in self._found(subject, deleted=False):
            if _is_same(version.schema, draft, normalize=normalize):
                return version
        self._check_mode(subject, schema_id)
        if self.mode(subject) != "IMPORT":
            self._check_compatible(subject, draft)
        versions = self._versions.setdefault(subject, [])
        number = versions[-1].number + 1 if versions else 1
        version = Version(subject, number, self._stored(draft, schema_id))
        versions.append(version)
        return version

    def _draft(self, given: GivenSchema, *, normalize: bool) -> _Draft:
        references = tuple(self._pinned(each) for each in given.references)
        texts: dict[str, str] = {}
        self._collect(references, texts)
        try:
            parsed = languages.parse(given.kind, given.text, texts)
            text = parsed.text(is_normal=normalize)
        except InvalidSchema as error:
            raise invalid_schema(str(error)) from error
        if normalize:
            references = tuple(sorted(references, key=lambda each: each.name))
        return _Draft(GivenSchema(text, given.kind, references), parsed)

    def _pinned(self, reference: Reference) -> Reference:
        """Return a reference to a version by its number."""
        number = None if reference.version == -1 else reference.version
        try:
            found = self.version(reference.subject, number, deleted=True)
        except Refusal as refusal:
            raise invalid_schema(
                f"No schema reference found for subject {reference.subject!r} and "
                f"version {reference.version}"
            ) from refusal
        return Reference(reference.name, reference.subject, found.number)

    def _collect(self, references: Sequence[Reference], texts: dict[str, str]) -> None:
        """Add the texts of references by name, each after those that it uses."""
        for each in references:
            if each.name in texts:
                continue
            schema = self.version(each.subject, each.version, deleted=True).schema
            self._collect(schema.given.references, texts)
            texts[each.name] = schema.given.text

    def _check_mode(self, subject: str, schema_id: int | None) -> None:
        mode = self.mode(subject)
        if mode == "READONLY":
            raise not_permitted(f"Subject {subject} is in read-only mode")
        if schema_id is not None and mode != "IMPORT":
            raise not_permitted(f"Subject {subject} is not in import mode")

    def _stored(self, draft: _Draft, schema_id: int | None) -> StoredSchema:
        known = self._ids.get(draft.given)
        if known is not None and schema_id in {None, known}:
            return self._by_id[known]
        if schema_id is not None and schema_id in self._by_id:
            raise not_permitted(
                f"Overwrite new schema with id {schema_id} is not permitted."
            )
        wanted = self._last_id + 1 if schema_id is None else schema_id
        # An id is never given twice, not even after its schema was deleted.
        self._last_id = max(self._last_id, wanted)
        stored = StoredSchema(wanted, _guid(draft.given), draft.given, draft.parsed)
        self._by_id[wanted] = stored
        self._ids[draft.given] = wanted
        return stored

    # ---- compatibility ---------------------------------------------------------------

    def check(
        self,
        subject: str,
        given: GivenSchema,
        number: int | None = None,
        *,
        every: bool = False,
        normalize: bool = False,
    ) -> list[str]:
        """Return why a schema breaks the compatibility of a subject.

        Args:
            subject: the subject.
            given: the schema.
            number: the version that it is compared with; None for the latest.
            every: whether it is compared with all that the level asks for instead.
            normalize: whether it is put in normal form first.

        Returns:
            Confluent's messages; nothing if it is compatible.

        Raises:
            Refusal: it cannot be parsed, or the version does not exist.
        """
        draft = self._draft(given, normalize=normalize)
        if every:
            return self._messages(subject, draft, self._compared(subject))
        found = self._found(subject, deleted=False)
        if number is None:
            return self._messages(subject, draft, found[-1:])
        wanted = [each for each in found if each.number == number]
        if not wanted:
            raise version_not_found(number)
        return self._messages(subject, draft, wanted)

    def _compared(self, subject: str) -> list[Version]:
        """Return the versions that a new one is compared with, newest first."""
        found = self._found(subject, deleted=False)[::-1]
        return found if self.level(subject).endswith("_TRANSITIVE") else found[:1]

    def _check_compatible(self, subject: str, draft: _Draft) -> None:
        messages = self._messages(subject, draft, self._compared(subject))
        if messages:
            raise incompatible(subject, ", ".join(messages))

    def _messages(
        self, subject: str, draft: _Draft, versions: Sequence[Version]
    ) -> list[str]:
        level = self.level(subject)
        rule = level.removesuffix("_TRANSITIVE")
        for version in versions:
            messages = _reasons(draft, version.schema, rule)
            if messages:
                return [
                    *messages,
                    f"{{oldSchemaVersion: {version.number}}}",
                    f"{{oldSchema: '{version.schema.given.text}'}}",
                    f"{{compatibility: '{level}'}}",
                ]
        return []

    # ---- to delete -------------------------------------------------------------------

    def delete_subject(self, subject: str, *, permanent: bool) -> list[int]:
        """Delete all versions of a subject.

        Args:
            subject: the subject.
            permanent: whether those that are deleted already are deleted for good.

        Returns:
            The versions.

        Raises:
            Refusal: it does not exist, is deleted already or not yet, or is in use.
        """
        every = self._found(subject, deleted=True)
        if not every:
            raise subject_not_found(subject)
        visible = self._found(subject, deleted=False)
        if permanent and visible:
            raise not_soft_deleted(subject)
        if not permanent and not visible:
            raise soft_deleted(subject)
        chosen = every if permanent else visible
        self._delete(chosen, permanent=permanent)
        if permanent:
            self._levels.pop(subject, None)
            self._modes.pop(subject, None)
        return [each.number for each in chosen]

    def delete_version(
        self, subject: str, number: int | None, *, permanent: bool
    ) -> int:
        """Delete one version; otherwise as `delete_subject`.

        Returns:
            The version.
        """
        found = self.version(subject, number, deleted=True)
        if permanent and not found.is_deleted:
            raise not_soft_deleted(subject, found.number)
        if not permanent and found.is_deleted:
            raise soft_deleted(subject, found.number)
        self._delete([found], permanent=permanent)
        return found.number

    def _delete(self, versions: Sequence[Version], *, permanent: bool) -> None:
        for version in versions:
            if self.users_of(version.subject, version.number):
                raise referenced(version.subject, version.number)
        for version in versions:
            version.is_deleted = True
            if permanent:
                self._forget(version)

    def _forget(self, version: Version) -> None:
        left = self._versions[version.subject]
        left.remove(version)
        if not left:
            del self._versions[version.subject]
        schema = version.schema
        if not self.uses_of(schema.id, deleted=True):
            del self._by_id[schema.id]
            if self._ids.get(schema.given) == schema.id:
                del self._ids[schema.given]

    # ---- levels and modes ------------------------------------------------------------

    def level(self, subject: str = "") -> str:
        """Return the level of a subject, or of all that have none of their own."""
        return self._levels.get(subject) or self._levels.get("", "BACKWARD")

    def own_level(self, subject: str) -> str:
        """Return the level that a subject has of its own.

        Raises:
            Refusal: it has none.
        """
        if subject not in self._levels:
            raise no_subject_level(subject)
        return self._levels[subject]

    def set_level(self, level: str, subject: str = "") -> None:
        """Set the level of a subject, or of all that have none of their own.

        Raises:
            Refusal: there is no such level.
        """
        if level.upper() not in LEVELS:
            raise invalid_level()
        self._levels[subject] = level.upper()

    def forget_level(self, subject: str = "") -> str:
        """Take back the level of a subject, or the one for all; return it.

        Raises:
            Refusal: the subject has none of its own.
        """
        level = self.own_level(subject) if subject else self.level()
        self._levels.pop(subject, None)
        return level

    def mode(self, subject: str = "") -> str:
        """Return the mode of a subject, or of all that have none of their own."""
        return self._modes.get(subject) or self._modes.get("", "READWRITE")

    def own_mode(self, subject: str) -> str:
        """Return the mode that a subject has of its own.

        Raises:
            Refusal: it has none.
        """
        if subject not in self._modes:
            raise no_subject_mode(subject)
        return self._modes[subject]

    def set_mode(self, mode: str, subject: str = "") -> None:
        """Set the mode of a subject, or of all that have none of their own.

        Raises:
            Refusal: there is no such mode.
        """
        if mode.upper() not in MODES:
            raise invalid_mode()
        self._modes[subject] = mode.upper()

    def forget_mode(self, subject: str) -> str:
        """Take back the mode of a subject; return it.

        Raises:
            Refusal: it has none of its own.
        """
        mode = self.own_mode(subject)
        del self._modes[subject]
        return mode


def _is_same(stored: StoredSchema, draft: _Draft, *, normalize: bool) -> bool:
    if stored.given == draft.given:
        return True
    if not normalize or stored.given.kind != draft.given.kind:
        return False
    references = sorted(stored.given.references, key=lambda each: each.name)
    return (
        stored.parsed.text(is_normal=True) == draft.given.text
        and tuple(references) == draft.given.references
    )


def _guid(given: GivenSchema) -> UUID:
    content = repr((given.kind, given.text, given.references)).encode()
    return UUID(bytes=hashlib.md5(content, usedforsecurity=False).digest())


def _reasons(draft: _Draft, old: StoredSchema, rule: str) -> list[str]:
    if rule != "NONE" and draft.given.kind != old.given.kind:
        return ["{errorType:'TYPE_MISMATCH', description:'the language has changed'}"]
    found = []
    if rule in _READS_OLD:
        reasons = draft.parsed.differences(old.parsed)
        found += [each.message("new", "old") for each in reasons]
    if rule in _IS_READ_BY_OLD:
        reasons = old.parsed.differences(draft.parsed)
        found += [each.message("old", "new") for each in reasons]
    return found
