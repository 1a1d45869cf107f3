"""What a column of numbers becomes before noise is added: whole steps of a public quantum, within public bounds.

* `quantum`: a usable value becomes a whole number of steps;
* `bounds`: the public clamps of a row and of a member's total, and what may be summed without loss;
* `cells`: the public grids that they are chosen from.

Everything here is integer arithmetic on one member's own rows and on public numbers. Bounds and grids never come from
the data that a question is about.
"""
