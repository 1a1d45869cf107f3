"""About two hundred questions with fixed keys, data and time, and what the services answer to each.

`cases.txt` holds, for each question, the SQL of each engine, the price, the released numbers, or the refusal. Whoever
changes how something is done, and not what, changes nothing in this file.
"""
