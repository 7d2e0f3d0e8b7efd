"""Input and output of people: names, times, tables, JSON, messages, exit codes."""
