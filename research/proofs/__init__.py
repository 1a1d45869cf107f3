"""Proofs for Coq, and what runs it."""
