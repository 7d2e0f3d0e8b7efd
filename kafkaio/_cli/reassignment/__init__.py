"""``kafkaio reassign``: plans and performs moves of replicas."""
