"""A member of a group of the classic protocol (KIP-62, 345, 394, 429)."""
