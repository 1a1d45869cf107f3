"""What a release has to pass, and what goes with it: `make release-check`, `make notices`."""
