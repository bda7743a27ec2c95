"""Decay, duplicates, promotion, reconciliation, repairs and proposals."""
