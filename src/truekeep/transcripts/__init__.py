"""The transcript store: dialogue of harness sessions, kept after the harness deletes its files."""
