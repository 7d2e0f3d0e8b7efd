"""Commands that read and write records, and the languages they do it in."""
