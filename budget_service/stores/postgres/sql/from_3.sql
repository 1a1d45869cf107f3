-- From schema 3 to 4: levels above an account may count another cost than the account.

ALTER TABLE gris.journal ADD COLUMN shared_information bigint, ADD COLUMN shared_calls bigint;
