"""Rebalances: what happens to the assignment, and how the user learns of it."""
