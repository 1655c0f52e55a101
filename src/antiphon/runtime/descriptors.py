"""How many files and connections this process may have open at once."""

import resource

MAX_DESCRIPTORS = 1024 * 1024
"""What a process without a limit counts on; no default of ours comes near it."""


def raise_descriptor_limit() -> None:
    """Raise the soft limit to the hard one, for this process and those that it starts.

    The soft limit is low, 1,024 as a rule, for the sake of programs that use select(2), which fails above that number.
    Neither the server nor its workers do. Source: systemd.exec(5), LimitNOFILE=.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def descriptor_limit() -> int:
    """The soft limit as it stands, MAX_DESCRIPTORS where there is none."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft
