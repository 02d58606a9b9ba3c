"""The thread that serves a session, ended while it still imports."""

import subprocess
import sys
import textwrap

HALF_WAY = """
    import importlib.machinery, sys, threading
    from amem.launch.served import Served

    assert "typing" not in sys.modules
    begun, stopped = threading.Event(), threading.Event()

    class Slow(importlib.machinery.SourceFileLoader):
        def exec_module(self, module):
            begun.set()
            stopped.wait(0.3)  # who is told of the end meanwhile did not wait for this
            super().exec_module(module)

    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name != "typing":
                return None
            found = importlib.machinery.PathFinder.find_spec(name)
            found.loader = Slow(name, found.origin)
            return found

    def make():
        import typing

    sys.meta_path.insert(0, Finder())
    served = Served(make)
    served.start()
    begun.wait()
    served.stop()
    whole = hasattr(sys.modules["typing"], "ClassVar")
    stopped.set()
    sys.exit(not whole)
"""


def test_a_session_that_ends_while_its_server_is_imported_finds_typing_whole() -> None:
    done = subprocess.run([sys.executable, "-I", "-c", textwrap.dedent(HALF_WAY)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
