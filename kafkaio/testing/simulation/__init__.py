"""Client and broker on one virtual clock."""
