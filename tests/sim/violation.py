"""What a run is checked for."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Violation"]


@dataclass(frozen=True, slots=True)
class Violation:
    """A law that was broken.

    Attributes:
        at: seconds after the beginning.
        law: its name.
        detail: what happened.
    """

    at: float
    law: str
    detail: str

    def __str__(self) -> str:
        return f"{self.at:9.3f} s  {self.law}: {self.detail}"
