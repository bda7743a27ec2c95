"""Tidying: forget on purpose, merge what is doubled, keep what lasts."""
