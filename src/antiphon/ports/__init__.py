"""The seams: Protocols that the runtime calls and that adapters, hosts and clocks fulfil."""
