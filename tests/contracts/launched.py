"""A script as people write it for `torchrun`: its ranks meet by the launcher's variables, rank 0 reports and saves."""

from __future__ import annotations

import sys

import torch
from torch import distributed as dist
from torch import nn

import foresail as fs


def main(steps: int) -> None:
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=fs.config(lr=0.1).lr)
    inputs = torch.randn(16, 4, generator=torch.Generator().manual_seed(1))
    mine, targets = inputs[rank::size], inputs.sum(dim=1, keepdim=True)[rank::size]
    kept, first = fs.checkpoint_dir() / "state.pt", 1
    if kept.exists():
        state = torch.load(kept)
        model.load_state_dict(state["model"])
        first = state["step"] + 1
    for step in range(first, steps + 1):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(mine), targets)
        loss.backward()
        optimizer.step()
        mean = loss.detach() / size
        dist.all_reduce(mean)
        leave = torch.zeros(1)
        if rank == 0:
            fs.report(step=step, accuracy=-mean.item(), ranks=size)
            leave += fs.should_stop()
        dist.broadcast(leave, 0)
        if leave.item():
            if rank == 0:
                torch.save({"model": model.state_dict(), "step": step}, kept)
            break
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]))
