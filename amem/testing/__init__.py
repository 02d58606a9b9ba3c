"""The fakes that amem ships: a scripted model provider, its demo script and a corpus splitter.

`amem.testing.provider` is part of the product: `make demo` runs on it. Nothing here is imported by the layers
below, and importing this package loads none of its modules, so no HTTP library either.
"""
