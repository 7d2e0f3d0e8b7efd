"""A member of a group of the KIP-848 protocol."""
