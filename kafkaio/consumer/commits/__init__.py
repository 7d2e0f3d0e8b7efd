"""Commits: the order of a group's commits, and what carries them out."""
