"""Commands for topics, their offsets, configs and records."""
