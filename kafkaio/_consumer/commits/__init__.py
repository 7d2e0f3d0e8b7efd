"""Committed offsets: their order, fencing, and the requests that carry them."""
