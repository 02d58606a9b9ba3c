"""What holds of every test: how long a generated case takes on a busy machine says nothing of the code.

The cases are the same in each run, so that a failure is of what changed; `AMEM_TEST_DRAW=1` draws others.
"""

import os

from hypothesis import HealthCheck, settings

usual = settings.get_profile(settings.get_current_profile_name())
settings.register_profile(
    "any machine", usual, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize="AMEM_TEST_DRAW" not in os.environ
)
settings.load_profile("any machine")
