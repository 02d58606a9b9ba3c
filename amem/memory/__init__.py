"""What a session does with the record: write, read, hand over. No MCP and no web server is known here."""
