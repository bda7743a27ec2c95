"""The application services: one module for each use case of a workspace."""
