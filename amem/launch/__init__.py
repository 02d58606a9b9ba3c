"""One launch: what was asked, what that means on this machine, and the session that results."""
