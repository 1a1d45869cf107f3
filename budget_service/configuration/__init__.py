"""The budget file, `budget.yaml`: its schema, its faults, and the check for accounts without a bound."""
