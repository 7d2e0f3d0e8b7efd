"""The assignment, how it changes, and how users learn of it."""
