"""Three regions and a home under a simulated clock and network: the real services, rules and leases, one event loop."""
