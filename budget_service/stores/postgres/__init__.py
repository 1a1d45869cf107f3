"""A ledger in PostgreSQL.

`store` is the store; `connections` keeps its connections, `encoding` turns values into parameters and back, and `audit`
reads pages. `schema` installs what is in `sql/`; `address` reads where the database is.
"""
