-- Spend what is left of a level: rules._write_off.

CREATE FUNCTION gris_rules.write_off(draft gris_rules.draft) RETURNS gris_rules.draft LANGUAGE plpgsql AS $$
DECLARE
  asked gris_rules.request := draft.asked;
  level gris_rules.level := asked.levels[1];
  counted gris_rules.counted := gris_rules.counted(draft.leaf, level, draft.since);
BEGIN
  asked.information := 0;
  asked.calls := 0;
  IF level.mode = 'enforce' THEN
    asked.information := greatest(level.information - counted.spent_information - counted.reserved_information, 0);
    asked.calls := greatest(level.calls - counted.spent_calls - counted.reserved_calls, 0);
  END IF;
  asked.unit_id := draft.unit_id;
  asked.release_id := '';
  draft.asked := asked;
  IF asked.information > 0 OR asked.calls > 0 THEN
    RETURN gris_rules.spend(draft, 'lost', '', gris_rules.holds(draft));
  END IF;
  draft.outcome := gris_rules.charged(draft);
  RETURN draft;
END $$;
