"""`gris plan bound`: what bounds, units and looks are worth, by data of another period or by numbers that are stated.

* `contributions`: what every bound leaves of the counts, as DuckDB adds it up;
* `stated`: the same for members and elements that are described by a few numbers;
* `sources`: which of the two the flags name;
* `looks`: one look, two looks and UnkGumb, run many times on what is left;
* `search`: which bounds are the best for so many units;
* `proposal`: which of them to take, and why;
* `choice`: what a policy expects that lets the service choose;
* `report`: the tables and the plot.
"""
