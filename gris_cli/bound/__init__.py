"""`gris bound`: copies of tables in which every member has at most so many elements in each period."""
