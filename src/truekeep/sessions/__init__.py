"""What a session wakes with, what it leaves, and what is known about it."""
