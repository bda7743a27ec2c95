"""Errors, values, configuration, files, SQLite, git and this machine: what everything else stands on."""
