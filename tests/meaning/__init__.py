"""Answers that decode and lie, and what a client makes of them."""
