-- What requests of an administrator about limits and accounts name, of one root account. The names are those of `Loaded`.
SELECT json_build_object(
  'stored_limits', (
    SELECT (SELECT count(*) FROM gris.stored_limits WHERE root = %(root)s)
      + (SELECT count(*) FROM gris.closed WHERE root = %(root)s)
  ),
  'limits', (
    SELECT json_agg(json_build_array(level, limit_text)) FROM gris.stored_limits
    WHERE root = %(root)s AND level = ANY (ARRAY(SELECT json_array_elements_text(%(limits)s::json)))
  ),
  'closed', (
    SELECT json_agg(level) FROM gris.closed
    WHERE root = %(root)s AND level = ANY (ARRAY(SELECT json_array_elements_text(%(closed)s::json)))
  )
)::text
