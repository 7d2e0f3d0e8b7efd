"""The Kafka client for asyncio."""
