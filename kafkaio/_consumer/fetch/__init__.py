"""Fetching: one session per broker, within one byte budget, into buffers."""
