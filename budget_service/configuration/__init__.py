"""The budget file, `budget.yaml`: its schema, what is wrong with one, and which of its accounts have no bound."""
