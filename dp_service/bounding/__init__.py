"""Which of a member's elements count.

A member is bounded to at most Delta elements before anything is counted. Any rule that looks at the member's own
rows alone is private; this one keeps the first Delta elements by a salted hash, so the choice is fair and the same
on every engine. `order` defines it, and `contributions` applies it to arrays.
"""
