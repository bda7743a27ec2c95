"""A team's memory: PostgreSQL is the record, and each server process keeps working folders that follow it."""
