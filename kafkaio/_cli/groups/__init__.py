"""Commands for groups of consumers and share groups."""
