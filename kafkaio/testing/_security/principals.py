"""The principal of a client's certificate: its subject, mapped by rules (KIP-371)."""

from __future__ import annotations

import re
from typing import Final

_RULE: Final = re.compile(
    r"(?P<default>DEFAULT)|RULE:(?P<pattern>(?:\\.|[^\\/])*)/"
    r"(?P<name>(?:\\.|[^\\/])*)/(?P<case>[LU]?)"
)


class NoPrincipal(Exception):
    """No rule fits the subject of a certificate: the connection is closed."""


class PrincipalRules:
    """Rules of the form ``RULE:pattern/replacement/[LU]`` or ``DEFAULT``.

    The first rule whose pattern is the whole subject makes the name; DEFAULT leaves
    the subject as it is (RFC 2253).

    Args:
        text: the rules, separated by commas.

    Raises:
        ValueError: a rule cannot be read.
    """

    def __init__(self, text: str) -> None:
        self._rules: list[tuple[re.Pattern[str] | None, str, str]] = []
        position = 0
        while position < len(text):
            found = _RULE.match(text, position)
            if found is None or text[found.end() : found.end() + 1] not in {"", ","}:
                raise ValueError(f"principal rule {text[position:]!r}: cannot be read")
            pattern = None if found["default"] else re.compile(found["pattern"])
            replacement = re.sub(r"\$(\d)", r"\\\1", found["name"] or "")
            self._rules.append((pattern, replacement, found["case"] or ""))
            position = found.end() + 1
            position += len(text[position:]) - len(text[position:].lstrip())

    def of(self, certificate: bytes) -> str:
        """The name for a certificate in DER.

        Raises:
            NoPrincipal: no rule fits.
        """
        # Imported here: only mutual TLS needs the package.
        from cryptography.x509 import load_der_x509_certificate

        return self.name(
            load_der_x509_certificate(certificate).subject.rfc4514_string()
        )

    def name(self, subject: str) -> str:
        """The name for a subject.

        Raises:
            NoPrincipal: no rule fits.
        """
        for pattern, replacement, case in self._rules:
            if pattern is None:
                return subject
            found = pattern.fullmatch(subject)
            if found is not None:
                name = found.expand(replacement)
                return {"L": name.lower(), "U": name.upper()}.get(case, name)
        raise NoPrincipal(f"no rule fits the subject {subject!r}")
