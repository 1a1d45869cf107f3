-- From schema 6 to 7: every level counts by the day. What the new columns hold is worked out from the journal.

ALTER TABLE gris.balances
  ADD COLUMN rule text NOT NULL DEFAULT '',
  ADD COLUMN day_start bigint NOT NULL DEFAULT 0,
  ADD COLUMN day_end bigint NOT NULL DEFAULT 0,
  ADD COLUMN today_information bigint NOT NULL DEFAULT 0 CHECK (today_information >= 0),
  ADD COLUMN today_calls bigint NOT NULL DEFAULT 0 CHECK (today_calls >= 0);

CREATE TABLE gris.days (
  level text COLLATE "C" NOT NULL,
  day_start bigint NOT NULL,
  day_end bigint NOT NULL,
  information bigint NOT NULL,
  calls bigint NOT NULL,
  PRIMARY KEY (level, day_start)
);
