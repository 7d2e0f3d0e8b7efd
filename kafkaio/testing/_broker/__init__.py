"""A Kafka cluster inside the process, for development and tests only."""
