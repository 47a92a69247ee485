"""How many CPU cores a batch runs on: latency by batch size and cores, and the choice of both."""
