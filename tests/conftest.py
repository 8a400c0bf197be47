"""What holds for every test: hypothesis never fails for the speed of a busy machine."""

import hypothesis

hypothesis.settings.register_profile("partner-sync", deadline=None)
hypothesis.settings.load_profile("partner-sync")
