"""The classic group protocol (KIP-62, 345, 394, 429, 814): the member's machine."""
