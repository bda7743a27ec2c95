"""Sync: handoffs on their way from the machines that write them to the one that files them, and the receipts back."""
