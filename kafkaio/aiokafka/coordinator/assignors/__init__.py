"""The assignors of classic groups, each in a module of its own."""

__all__: list[str] = []
