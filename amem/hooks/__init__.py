"""What runs inside the sandbox at `/opt/memory/memory`: standard library only, and quick to start."""
