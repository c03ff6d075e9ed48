"""PlanDevices: a device for every value, with copies where values go from one to another."""
