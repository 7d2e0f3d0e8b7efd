"""Connections: transport, one connection, and the pool of them."""
