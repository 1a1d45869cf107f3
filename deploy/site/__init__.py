"""The documentation site: what mkdocs.yml adds to docs/."""
