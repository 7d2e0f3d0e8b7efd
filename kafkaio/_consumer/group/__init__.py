"""Membership in a consumer group: the member's task, and its requests."""
