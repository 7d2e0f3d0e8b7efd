"""What the tests of a connection share."""

from kafkaio._machines.connection.handshake import ClientIdentity
from kafkaio._machines.connection.machine import ConnectionMachine
from kafkaio.protocol._message import Buffer

IDENTITY = ClientIdentity(
    peer="broker 1 (host:9092)",
    address="host:9092",
    client_id="me",
    software_name="kafkaio",
    software_version="1.0",
    request_timeout=30.0,
    idle_timeout=540.0,
)


def taken(machine: ConnectionMachine) -> list[Buffer]:
    """Take the output, as the driver does."""
    output, machine.pipeline.output = machine.pipeline.output, []
    return output
