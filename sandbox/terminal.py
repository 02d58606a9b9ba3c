"""The terminal of an interactive session: lent to the harness, stopped and continued with the launcher's job, given back as it was.

Loaded for such a session alone, before the harness can change anything of it.
"""

import errno
import os
import signal
import termios
from contextlib import contextmanager, suppress

from amem.typed import Iterator


class Terminal:
    """The terminal the launcher shares with the harness, and who has it: the harness (lent), the launcher, or the shell."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._group = os.getpgrp()
        self.lent = self.is_ours()
        """The harness starts in the foreground where the launcher does: not with `&`."""
        self._saved = termios.tcgetattr(fd) if self.lent else None
        """In the background a terminal has the modes of its shell's line editor; the job's are those it comes to the front with."""
        self._waits = os.get_blocking(fd)

    @property
    def in_background(self) -> bool:
        """Does the session run on while the shell has the terminal?"""
        return not self.lent

    def is_ours(self) -> bool:
        """Is the launcher's own job in the foreground?"""
        try:
            return os.tcgetpgrp(self.fd) == self._group
        except OSError:  # the terminal of another session (setsid), or gone
            return False

    def lend(self) -> bool:
        """The harness may have it, if the shell has given it to the launcher."""
        if not self.lent and self.is_ours():
            self.lent = True
            self._saved = self._saved or termios.tcgetattr(self.fd)
        return self.lent

    def came_back(self) -> bool:
        """Has the shell put the job back in front since it went on in the background?"""
        return not self.lent and self.is_ours()

    def take_back(self) -> None:
        """Foreground and modes as the launcher found them, whatever the harness left; not from a shell that has it by now."""
        if not (self.lent or self.is_ours()):
            return
        self.lent = False
        with suppress(OSError, termios.error):  # the terminal may be gone: then there is nothing to give back
            os.tcsetpgrp(self.fd, self._group)
            termios.tcflow(self.fd, termios.TCOON)  # else output that was stopped inside stays so, the shell's too, and is waited for below
            if self._saved is not None:
                termios.tcsetattr(self.fd, termios.TCSADRAIN, self._saved)
            os.set_blocking(self.fd, self._waits)

    @contextmanager
    def shared(self) -> Iterator[None]:
        """While the harness may have it; given back at the end, whatever happens: a background job may do so while SIGTTOU is ignored."""
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        try:
            yield
        finally:
            self.take_back()
            signal.signal(signal.SIGTTOU, before if before is not None else signal.SIG_DFL)

    def suspend(self, wants_terminal: bool) -> None:
        """The harness stopped: stop the whole job, as its shell expects."""
        theirs = termios.tcgetattr(self.fd) if self.lent else None
        self.take_back()
        if wants_terminal:
            self._wait_for_foreground()
        else:
            os.kill(0, signal.SIGSTOP)
        # Continued by `fg` or `bg`.
        if theirs is not None and self.is_ours():
            termios.tcsetattr(self.fd, termios.TCSADRAIN, theirs)

    def _wait_for_foreground(self) -> None:
        """Stop the job unless it is in front by now; the kernel looks and stops in one step, so a `fg` of that moment is not lost."""
        before = signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        try:
            termios.tcdrain(self.fd)  # POSIX: a process of a background group gets SIGTTOU
        except termios.error as error:
            if error.args[0] == errno.EIO:  # an orphaned job, which the kernel does not stop
                os.kill(0, signal.SIGSTOP)
        finally:
            signal.signal(signal.SIGTTOU, before)
