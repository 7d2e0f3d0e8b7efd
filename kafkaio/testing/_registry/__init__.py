"""The embedded schema registry: what it knows, its rules, its API over HTTP."""
