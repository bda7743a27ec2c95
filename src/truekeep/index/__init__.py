"""Recall: the derived index of the memory, and what it answers. Delete it at any time; the files are the truth."""
