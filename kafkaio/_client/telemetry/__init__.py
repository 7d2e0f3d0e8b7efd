"""Metrics of this client that are pushed to the brokers (KIP-714, KIP-1076)."""
