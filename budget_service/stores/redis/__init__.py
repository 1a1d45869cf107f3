"""A ledger in Redis or Valkey.

`store` is the store; `pipeline` sends its commands together, `encoding` turns values into strings and back, `scripts`
loads what is in `lua/`, and `schema` brings a ledger up to date.
"""
