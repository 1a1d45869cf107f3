"""A ledger in a SQLite file, owned by one process.

`store` is the store; `view` is what requests see of the file, `rows` reads and writes its rows, and `audit` reads pages
of them. `file` opens it, `disk` is the thread that uses it, and `purge` removes old answers.
"""
