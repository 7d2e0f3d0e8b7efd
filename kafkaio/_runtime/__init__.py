"""How kafkaio runs: tasks, time, requests that wait."""
