"""The KIP-848 group protocol: the member's machine."""
