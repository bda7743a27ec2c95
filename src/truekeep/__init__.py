"""truekeep: agent memory that stays true."""

__version__ = "0.1.0"
