"""Which bounds of contributions to choose, by data of another period or by what the owner states."""
