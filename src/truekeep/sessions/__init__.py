"""Agent sessions: the wake brief, the checkpoint, and the record of a session."""
