-- What requests of an administrator about limits and accounts name, of one root account. The names are those of `Loaded`.
SELECT json_build_object(
  'stored_limits', (
    SELECT (SELECT count(*) FROM gris.stored_limits WHERE root = %(root)s)
      + (SELECT count(*) FROM gris.accounts WHERE root = %(root)s)
  ),
  'limits', (
    SELECT json_agg(json_build_array(level, limit_text)) FROM gris.stored_limits
    WHERE root = %(root)s AND level = ANY (ARRAY(SELECT json_array_elements_text(%(limits)s::json)))
  ),
  'states', (
    SELECT json_agg(json_build_array(level, state)) FROM gris.accounts
    WHERE root = %(root)s AND level = ANY (ARRAY(SELECT json_array_elements_text(%(states)s::json)))
  ),
  -- Between a level and its slash come no levels below it, and what comes right after the slash is the digit 0.
  'occupied', (
    SELECT json_agg(asked) FROM json_array_elements_text(%(below)s::json) AS asked WHERE EXISTS (
      SELECT FROM gris.balances WHERE level > asked || '/' AND level < asked || '0'
      UNION ALL
      SELECT FROM gris.stored_limits WHERE root = %(root)s AND level > asked || '/' AND level < asked || '0'
      UNION ALL
      SELECT FROM gris.accounts WHERE root = %(root)s AND level > asked || '/' AND level < asked || '0'
    )
  )
)::text
