"""The team server over HTTP: a JSON API, MCP, health and metrics."""
