"""The machines of a share consumer (KIP-932): membership, sessions, ledger."""
