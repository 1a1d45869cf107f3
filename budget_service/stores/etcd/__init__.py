"""The store in etcd: every change of a root account is one transaction that compares the revision of its record.

`store` puts it together. `members` talks to the cluster, `layout` names the keys, `encoding` writes and reads values,
`loading` and `writing` are the two halves of a `transaction`, `clocks` compares this machine's clock, `purge` keeps the
database small, and `audit` reads journals and keeps checkpoints.
"""
