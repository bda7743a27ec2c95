"""The MCP server: memory for agents."""
