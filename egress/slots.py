"""Places at a destination that all egresses of one root share: a lock on one of so many files, gone with the process that held it.

So a limit of calls at once is the root's and not each session's, and a crash leaves nothing taken. Nobody is served in order across
sessions; within one they are (`lanes`).
"""

import fcntl
import os
from pathlib import Path


class Slots:
    """The places of one root."""

    def __init__(self, folder: Path) -> None:
        """`folder` is made when the first place is taken."""
        self._folder = folder

    def take(self, name: str, most: int) -> int | None:
        """A place among the `most` of this name, to be given to `free`; None while all are taken. Raises OSError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in range(most):
            path = self._folder / f"{name}.{number}"
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
            except BaseException:
                os.close(descriptor)
                raise
            else:
                return descriptor
        return None

    def free(self, place: int) -> None:
        """Give a place back."""
        os.close(place)
