"""Where would it go? Policies (one file each), replay of a job stream and what-if. Pure; moves nothing."""
