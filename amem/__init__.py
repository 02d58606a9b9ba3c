"""amem: AI coding harnesses in a sandbox, with metered egress and one shared memory."""

__version__ = "0.1.0"
