"""A ledger in Redis or Valkey.

`store` is the store, and `transaction` what the ledger engine needs of it. `layout` has the keys, `encoding` turns
values into texts and back, and `writing` makes the commands that write a batch. `scripts` runs what is in `lua/`,
`pipeline` sends commands together, `replication` notices fail-overs, and `schema` refuses a ledger of another one.
"""
