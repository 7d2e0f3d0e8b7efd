"""Decisions: pure state machines, without I/O, clock or random numbers."""
