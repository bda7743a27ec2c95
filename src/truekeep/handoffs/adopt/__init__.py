"""Adopt: what a harness remembers on its own becomes handoffs, so that it is judged and filed like everything else."""
