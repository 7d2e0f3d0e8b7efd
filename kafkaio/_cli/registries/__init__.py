"""Commands on schema registries."""
