"""The command ``kafkaio``."""

from kafkaio._cli.main import main as main
