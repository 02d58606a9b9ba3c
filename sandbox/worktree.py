"""The work tree as git sees it, read by hand and believed only where its files point back at each other.

An agent can write `.git` files for the next launch to read: a mount target is never taken from one unchecked. Runs no program.
"""

from amem.sandbox.plan import Tree


def look(workdir: str) -> Tree:
    """What the tree is to git."""
    return Tree()
