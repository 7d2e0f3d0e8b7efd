"""The sticky assignor."""

__all__: list[str] = []
