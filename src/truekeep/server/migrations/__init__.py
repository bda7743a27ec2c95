"""The migrations of the database, numbered SQL files; each runs once, in one transaction with the note that it ran."""
