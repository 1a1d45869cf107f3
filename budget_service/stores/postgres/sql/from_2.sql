-- From schema 2 to 3: charges say what their policy had published.

ALTER TABLE gris.journal ADD COLUMN policy_statement text NOT NULL DEFAULT '';
