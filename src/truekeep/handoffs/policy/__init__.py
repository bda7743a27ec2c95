"""Decides what a handoff becomes. Start at `plan.plan_filing`."""
