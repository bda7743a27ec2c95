"""A derived database of what maintenance knows about every memory file."""
