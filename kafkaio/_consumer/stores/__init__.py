"""Offset stores: where a group's offsets are kept if not in Kafka."""
