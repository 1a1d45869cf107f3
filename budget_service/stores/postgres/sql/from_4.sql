-- From schema 4 to 5: an administrator refunds charges, and says why.

ALTER TABLE gris.journal ADD COLUMN reason text NOT NULL DEFAULT '';
