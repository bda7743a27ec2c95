"""The Agent Life Format: the whole memory as one open archive, and back."""
