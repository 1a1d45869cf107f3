"""Several data centers, one budget: what a region may grant from its share of a budget, and what the home lends.

A region borrows a share of an account's budget from the home ledger. That is a lease: a reservation of the home ledger
that is forfeited when it lapses. So it counts there from the beginning, and whatever a region does with it, all regions
together never spend more than the limit. The region counts what it grants in a ledger of its own, by the same rules,
where the lease is an account and the share its limit.
"""
