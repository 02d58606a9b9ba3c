"""What holds of every test: how long a generated case takes on a busy machine says nothing of the code."""

from hypothesis import HealthCheck, settings

usual = settings.get_profile(settings.get_current_profile_name())
settings.register_profile("any machine", usual, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
