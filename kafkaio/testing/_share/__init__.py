"""Share groups (KIP-932) on the side of the leaders: locks, deliveries, sessions."""
