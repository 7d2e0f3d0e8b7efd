"""What the tests of a connection share."""

from kafkaio._machines.connection.handshake import ClientIdentity

IDENTITY = ClientIdentity(
    peer="broker 1 (host:9092)",
    address="host:9092",
    client_id="me",
    software_name="kafkaio",
    software_version="1.0",
    request_timeout=30.0,
    idle_timeout=540.0,
)
