"""Generate ``kafkaio.protocol.messages`` from the schemas in Kafka's clients jar."""
