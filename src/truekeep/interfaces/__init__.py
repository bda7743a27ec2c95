"""How people, agents and harnesses reach truekeep: command line, MCP, web pages, hooks."""
