"""The pages of a team server: those of `truekeep serve` over its workspaces, for people who signed in."""
