"""Pages of the documentation that have generated parts, each between two comments."""

from __future__ import annotations

__all__ = ["with_part"]


def with_part(page: str, kind: str, name: str, text: str) -> str:
    """Return a page with one of its generated parts as it is to be.

    Args:
        page: the page, with ``<!-- kind: name -->`` and ``<!-- end -->`` in it.
        kind: what the part is, such as ``diagram``.
        name: its name.
        text: what is to stand between the two comments.
    """
    begin, end = f"<!-- {kind}: {name} -->", "<!-- end -->"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise SystemExit(f"the page has no place for the {kind} {name!r}")
    return f"{before}{begin}\n{text}\n{end}{after}"
