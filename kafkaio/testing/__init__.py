"""What users need to test against Kafka."""
