"""``kafkaio reassign``: a plan for replicas, and what performs it."""
