"""What people type and read: names, times, tables, JSON, messages, exit codes."""
