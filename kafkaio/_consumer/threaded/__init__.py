"""The consumer's core in a thread of its own (``io_thread``)."""
