"""How the client runs: its tasks, its clock, its wake-ups and what it reports."""
