-- What counts against the limit of one level, and how it moves on with time: ledger/balances.py.

CREATE TYPE gris_rules.window AS (window_start bigint, window_end bigint);

-- What is said of a level: its window, and what counts in it.
CREATE TYPE gris_rules.counted AS (
  window_start bigint, window_end bigint, spent_information bigint, spent_calls bigint, reserved_information bigint,
  reserved_calls bigint
);

CREATE FUNCTION gris_rules.opened_balance(span gris_rules.level, start bigint) RETURNS gris.balances
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN (span.level, start, span.window_end, 0, 0, 0, 0, start, span.leaves_at, '{}')::gris.balances;
END $$;

CREATE FUNCTION gris_rules.counts(balance gris.balances, start bigint) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN balance.window_start = start OR (
    balance.earlier <> '{}' AND EXISTS (SELECT FROM unnest(balance.earlier) AS day WHERE day.start = counts.start)
  );
END $$;

-- When what is charged now is no longer counted, NULL if that is never.
CREATE FUNCTION gris_rules.last_end(balance gris.balances) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(balance.leaves_at, balance.window_end)
$$;

-- What was charged in the last span itself, as a day that is over.
CREATE FUNCTION gris_rules.today(balance gris.balances) RETURNS gris.day LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN (
    SELECT (
      balance.window_start, coalesce(balance.leaves_at, 0),
      balance.spent_information - coalesce(sum(information), 0), balance.spent_calls - coalesce(sum(calls), 0)
    )::gris.day
    FROM unnest(balance.earlier)
  );
END $$;

CREATE FUNCTION gris_rules.is_empty(balance gris.balances) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT balance.spent_information = 0 AND balance.spent_calls = 0
    AND balance.reserved_information = 0 AND balance.reserved_calls = 0
$$;

-- From the oldest charge that counts to the next moment at which budget returns; no end: never. `as_one`: it returns
-- only when the last charge is gone.
CREATE FUNCTION gris_rules.counted_window(balance gris.balances, as_one boolean) RETURNS gris_rules.window
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  today gris.day;
  oldest bigint;
  leaving bigint;
BEGIN
  IF balance.leaves_at IS NULL AND balance.earlier = '{}' THEN
    RETURN (balance.window_start, balance.window_end)::gris_rules.window;
  END IF;
  SELECT
    least(balance.window_start, min(start)),
    CASE
      WHEN as_one THEN max(leaves_at) FILTER (WHERE information > 0 OR calls > 0)
      ELSE min(leaves_at) FILTER (WHERE information > 0 OR calls > 0)
    END
  INTO oldest, leaving FROM unnest(balance.earlier);
  IF balance.leaves_at IS NULL OR balance.window_end IS NULL THEN
    RETURN (oldest, balance.window_end)::gris_rules.window;
  END IF;
  today := gris_rules.today(balance);
  IF today.information > 0 OR today.calls > 0 OR leaving IS NULL THEN
    leaving := CASE
      WHEN as_one THEN greatest(leaving, balance.leaves_at) ELSE least(leaving, balance.leaves_at)
    END;
  END IF;
  RETURN (oldest, greatest(leaving, balance.window_end))::gris_rules.window;
END $$;

-- Draft._status: a level at which something of the last currency counts has nothing left.
CREATE FUNCTION gris_rules.counted(balance gris.balances, span gris_rules.level, since bigint)
RETURNS gris_rules.counted LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  is_old boolean := balance.reserved_since < since;
  found gris_rules.window := gris_rules.counted_window(balance, is_old);
BEGIN
  IF is_old THEN
    RETURN (found.window_start, found.window_end, span.information, span.calls, 0, 0)::gris_rules.counted;
  END IF;
  RETURN (
    found.window_start, found.window_end, balance.spent_information, balance.spent_calls,
    balance.reserved_information, balance.reserved_calls
  )::gris_rules.counted;
END $$;

CREATE FUNCTION gris_rules.charged_days(
  days gris.day[], span_start bigint, charged_information bigint, charged_calls bigint
) RETURNS gris.day[] LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  FOR index IN 1..cardinality(days) LOOP
    IF days[index].start = span_start THEN
      days[index].information := days[index].information + charged_information;
      days[index].calls := days[index].calls + charged_calls;
    END IF;
  END LOOP;
  RETURN days;
END $$;

CREATE FUNCTION gris_rules.without_old_days(balance gris.balances, counts_from bigint, now bigint) RETURNS gris.balances
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  today gris.day := gris_rules.today(balance);
BEGIN
  SELECT
    coalesce(array_agg((start, leaves_at, information, calls)::gris.day ORDER BY place), '{}'),
    today.information + coalesce(sum(day.information), 0), today.calls + coalesce(sum(day.calls), 0)
  INTO balance.earlier, balance.spent_information, balance.spent_calls
  FROM unnest(balance.earlier) WITH ORDINALITY AS day (start, leaves_at, information, calls, place)
  WHERE now < day.leaves_at OR day.start >= counts_from;
  RETURN balance;
END $$;

-- Balance.at
CREATE FUNCTION gris_rules.moved(balance gris.balances, span gris_rules.level, now bigint) RETURNS gris.balances
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  is_over boolean := coalesce(now >= balance.window_end, false);
  did_slide boolean := balance.leaves_at IS NOT NULL;
  slides boolean := span.leaves_at IS NOT NULL;
  kept bigint := coalesce(balance.leaves_at, 0);
BEGIN
  IF is_over AND NOT did_slide THEN
    RETURN gris_rules.opened_balance(span, greatest(span.window_start, balance.window_end));
  END IF;
  IF is_over THEN
    -- A day without a charge is kept too: a reservation of it may still be settled.
    balance.earlier := balance.earlier || gris_rules.today(balance);
    balance.window_start := greatest(span.window_start, balance.window_end);
    balance.window_end := span.window_end;
    kept := 0;
  ELSIF did_slide AND NOT slides THEN
    -- The end of a day does not end a calendar window.
    balance.window_end := span.window_end;
  ELSE
    balance.window_end := least(balance.window_end, span.window_end);
  END IF;
  IF NOT did_slide AND NOT slides THEN
    RETURN balance;
  END IF;
  balance := gris_rules.without_old_days(balance, span.counts_from, now);
  balance.leaves_at := CASE WHEN slides THEN greatest(kept, span.leaves_at) END;
  RETURN balance;
END $$;
