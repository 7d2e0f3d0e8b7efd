"""The client that finds its way through a cluster."""
