"""What a newcomer meets: four tables, drafted policies, and 48 questions in plain SQL whose truth is known."""
