"""Questions of three tables whose truth is known: intervals and bounds hold it as often as they say."""
