"""A consumer whose network tasks run in a thread of their own (``io_thread``)."""
