-- From schema 8 to 9: a checkpoint has the states of accounts.

ALTER TABLE gris.checkpoints ADD COLUMN states text NOT NULL DEFAULT '';
