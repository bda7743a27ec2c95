"""The archive of sessions: what was said to agents and what they answered, kept past the harness's own deletion."""
