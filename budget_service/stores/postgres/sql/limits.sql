-- Set limits: rules._set_limits.

CREATE FUNCTION gris_rules.set_limits(draft gris_rules.draft) RETURNS gris_rules.draft LANGUAGE plpgsql AS $$
DECLARE
  asked gris_rules.request := draft.asked;
  added bigint := (SELECT count(limit_text) FROM unnest(asked.changes));
  version bigint;
  change gris_rules.limit_change;
BEGIN
  IF added > 0 AND added + (SELECT count(*) FROM gris.limits WHERE root = asked.root) > asked.most_limits THEN
    draft.outcome := gris_rules.refused('TOO_MANY_LIMITS');
    RETURN draft;
  END IF;
  UPDATE gris.roots SET limits_version = limits_version + 1 WHERE root = asked.root
  RETURNING limits_version INTO version;
  FOREACH change IN ARRAY asked.changes LOOP
    DELETE FROM gris.limits WHERE root = asked.root AND level = change.level;
    IF change.limit_text IS NOT NULL THEN
      INSERT INTO gris.limits VALUES (asked.root, change.level, change.limit_text);
    END IF;
  END LOOP;
  draft.outcome := json_build_array('limits', version::text);
  RETURN draft;
END $$;
