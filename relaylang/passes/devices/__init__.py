"""Devices: a domain for the values that must lie together, constraints between domains, and PlanDevices."""
