"""Handoffs: format, inboxes, policy, ingest, review; sync between machines; notes adopted from harnesses."""
