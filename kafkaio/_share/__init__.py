"""Share groups: queues on Kafka (KIP-932)."""
