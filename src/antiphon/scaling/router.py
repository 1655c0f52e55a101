"""Ray Serve's request router for the replicas: it hands every choice to the request's own claim."""

from ray.serve.request_router import PendingRequest, RequestRouter, RunningReplica

from antiphon.scaling.choice import Claim, Residency, Seat


class ResidencyRouter(RequestRouter):
    """Chooses by `Claim`. It lives in the process of the front, whose claims come as the first argument."""

    async def choose_replicas(
        self, candidate_replicas: list[RunningReplica], pending_request: PendingRequest | None = None
    ) -> list[list[RunningReplica]]:
        """The replicas, best first, each in a rank of its own; source: ray.serve.request_router.RequestRouter."""
        claim = pending_request.args[0] if pending_request is not None and pending_request.args else None
        if not isinstance(claim, Claim):
            return [candidate_replicas]
        by_name = {it.replica_id.unique_id: it for it in candidate_replicas}
        names = claim.choose([_seat(name, it.routing_stats) for name, it in by_name.items()])
        return [[by_name[name]] for name in names]


def _seat(name: str, told: dict[str, list[int]]) -> Seat:
    """`told` is what `SpeechReplica.record_routing_stats` gives; nothing, before it was asked the first time."""
    return Seat(name, {model: Residency(bool(loaded), slots) for model, (loaded, slots) in told.items()})
