-- What a batch of requests names, of one root account at one time. The names of what it returns are those of `Loaded`.
WITH record AS MATERIALIZED (
  SELECT * FROM gris.roots WHERE root = %(root)s
), clock AS MATERIALIZED (
  SELECT coalesce(%(clock)s::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) AS clock
), due AS MATERIALIZED (
  SELECT * FROM gris.reservations
  WHERE root = %(root)s AND expires_at <= (
    SELECT greatest(clock + coalesce(ahead, 0), coalesce(last_time, 0)) FROM clock LEFT JOIN record ON true
  )
  ORDER BY expires_at, reservation_id LIMIT %(most_due)s
), named AS MATERIALIZED (
  SELECT reservation, asked.payer
  FROM json_to_recordset(%(reservations)s::json) AS asked (reservation_id text, payer text)
  CROSS JOIN LATERAL (
    SELECT * FROM gris.reservations AS each
    WHERE each.root = %(root)s AND each.reservation_id = asked.reservation_id
  ) AS reservation
), paid AS (
  SELECT payment
  FROM json_to_recordset(%(payments)s::json) AS asked (payer text, kind text, id text)
  CROSS JOIN LATERAL (
    SELECT * FROM gris.payments AS each
    WHERE each.payer = asked.payer AND each.kind = asked.kind AND each.id = asked.id
  ) AS payment
  UNION ALL
  SELECT payment
  FROM named
  CROSS JOIN LATERAL (
    SELECT * FROM gris.payments AS each
    WHERE each.payer = named.payer AND each.kind = 'query' AND each.id = (named.reservation).query_id
  ) AS payment
), whole AS MATERIALIZED (
  -- Behind a level and a star come its blocks, and what comes right after the star is the plus.
  SELECT each.level FROM json_array_elements_text(%(blocks)s::json) AS asked
  CROSS JOIN LATERAL (
    SELECT level FROM gris.balances WHERE level > asked || '*' AND level < asked || '+'
  ) AS each
)
SELECT json_build_object(
  'clock', (SELECT clock FROM clock),
  'root', (SELECT to_json(record) FROM record),
  'balances', (
    SELECT json_agg(balance) FROM gris.balances AS balance WHERE level = ANY (ARRAY(
      SELECT json_array_elements_text(%(levels)s::json)
      UNION SELECT hold.level FROM due CROSS JOIN unnest(due.holds) AS hold
      UNION SELECT hold.level FROM named CROSS JOIN unnest((named.reservation).holds) AS hold
      UNION SELECT level FROM whole
    ))
  ),
  'block_count', (
    SELECT count(*) FROM gris.balances WHERE %(opening)s AND level > %(root)s || '*' AND level < %(root)s || '+'
  ),
  'outcomes', (
    SELECT json_agg(json_build_array(request_id, fingerprint, outcome, keep_until)) FROM gris.outcomes
    WHERE root = %(root)s AND request_id = ANY (ARRAY(SELECT json_array_elements_text(%(outcomes)s::json)))
  ),
  'payments', (SELECT json_agg(payment) FROM paid),
  'reservations', (SELECT json_agg(json_build_array(payer, reservation)) FROM named),
  'due', (SELECT json_agg(each ORDER BY expires_at, reservation_id) FROM due AS each),
  'past', (
    SELECT json_agg(day) FROM gris.days AS day
    WHERE %(history)s AND level = ANY (ARRAY(
      SELECT json_array_elements_text(%(levels)s::json) UNION SELECT level FROM whole
    ))
  ),
  'open', (SELECT json_agg(each) FROM gris.reservations AS each WHERE %(history)s AND root = %(root)s)
)::text
