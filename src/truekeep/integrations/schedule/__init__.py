"""The schedule: truekeep's work by a timer of the system, and a log that tells whether it ran."""
