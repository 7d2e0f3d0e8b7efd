"""Group coordination in the embedded broker: classic groups, KIP-848 and offsets."""
