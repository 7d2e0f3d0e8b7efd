"""The command ``kafkaio``."""

from kafkaio.cli.main import main

__all__ = ["main"]
