"""The former place of `kafkaio._runtime.lifecycle.Ending`."""

from kafkaio._runtime.lifecycle import Ending

__all__ = ["Ending"]
