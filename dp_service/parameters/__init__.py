"""With what a release is made: the parameters that a plan states and a release specification holds."""
