"""The MCP door: memory for agents. The protocol, the tools, their contract, and what leaves."""
