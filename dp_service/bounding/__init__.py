"""How much each of a member's elements counts.

Any rule that looks at the member's own rows and public numbers alone is private. `weights` has the rule for counts,
sums and averages: a member with many elements counts with less in each. `order` has the one for quantiles and distinct
values, of which a member keeps the first Delta elements by a salted hash; `contributions` applies it to arrays. All
give the same integers on every engine.
"""
