"""Bytes to messages and back: every message of the Kafka protocol."""
