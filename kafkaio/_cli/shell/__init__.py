"""The frame of every command: options, connection, session, progress, watches."""
