-- Name the first of some keys that has a wrong type, for a script that met one.

return misfit(KEYS)
