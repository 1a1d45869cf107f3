"""What Gris says to questions, recorded, so that a change of its insides can be seen to change nothing else.

Random questions are asked of real services with fixed keys, over the same random data each time. What every surface
says to them is kept by case: the SQL for each engine, the price, what was released, and refusals. A record of another
version is written from a checkout of it, and compared with this one's.
"""
