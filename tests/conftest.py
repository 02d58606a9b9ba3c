"""What holds of every test: how long a generated case takes on a busy machine says nothing of the code.

The cases are the same in each run, so that a failure is of what changed; `AMEM_TEST_DRAW=1` draws others. A Ctrl-C is heard by what a
test starts, though a shell without job control has what it starts behind itself (`make test &`) ignore that.
"""

import os
import signal

from hypothesis import HealthCheck, settings

usual = settings.get_profile(settings.get_current_profile_name())
settings.register_profile(
    "any machine", usual, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize="AMEM_TEST_DRAW" not in os.environ
)
settings.load_profile("any machine")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
