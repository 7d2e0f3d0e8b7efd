"""Rebalances: changes of the assignment, and their reports to the user."""
