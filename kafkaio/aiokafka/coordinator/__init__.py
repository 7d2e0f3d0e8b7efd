"""What the members of a group agree on."""

__all__: list[str] = []
