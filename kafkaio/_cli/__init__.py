"""The command ``kafkaio``."""

from kafkaio._cli.main import main

__all__ = ["main"]
