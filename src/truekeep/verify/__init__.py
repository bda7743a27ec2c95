"""Checking what memories claim against what is there now."""
