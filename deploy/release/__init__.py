"""What a release has to pass, and what goes with it: `python -m deploy.release`, `deploy/release/release.sh`."""
