"""Extracts checkable claims from Markdown."""
