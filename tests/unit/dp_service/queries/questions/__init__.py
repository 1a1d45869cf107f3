"""SQL as tools and people write it, and what each text means (texts.yaml), asked against policy.yaml."""
