"""Time of a step through the stages of a pipeline.

A step is cut into ``m`` micro-batches that follow one another through ``P`` stages without draining: the first of the
next step enters when the first stage is free and its own tokens are there. So a step takes

    ``max(m, P) * t``,  with t the time of the slowest stage for one micro-batch and of what it sends on.

With fewer micro-batches than stages the first stage waits for its tokens: ``(P - m) t`` of the step is a bubble. Every
micro-batch reads the weights of its stage anew. Micro-batches are taken to be alike; where tokens do not divide, each
is as large as the largest. A GPU sends the activations of all tokens of a micro-batch to its counterpart of the next
stage.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from sim.collectives import send_s
from sim.gpu import ACTIVATION_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.gpu import Gpus
    from sim.serving.batch import StepWork
    from sim.serving.parallelism import Parallelism

__all__ = ["PipelineStepModel", "StageModel", "micro_batch"]


class StageModel(Protocol):
    """Time of a step on one stage, and what it was made of so far."""

    def step_s(self, work: StepWork) -> float:
        """Return the seconds that a step takes."""
        ...

    def parts_s(self) -> dict[str, float]:
        """Return the seconds of all steps so far by part."""
        ...


def micro_batch(work: StepWork, parts: int) -> StepWork:
    """Return the largest of so many parts of a step; one part is the step itself."""
    if parts == 1:
        return work

    def share(count: int) -> int:
        return -(-count // parts)

    def shares(counts: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(share(count) for count in counts)

    def means(counts: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(count / parts for count in counts)

    return replace(
        work,
        decoding=share(work.decoding),
        tier_tokens=tuple(-(-count // parts) for count in work.tier_tokens),
        tier_requests=tuple(-(-count // parts) for count in work.tier_requests),
        prompt_requests=share(work.prompt_requests),
        prompt_tokens=share(work.prompt_tokens),
        prompt_pairs=share(work.prompt_pairs),
        prompt_context=shares(work.prompt_context),
        decode_appended=shares(work.decode_appended),
        prompt_appended=shares(work.prompt_appended),
        ending=share(work.ending),
        swapped_tokens=share(work.swapped_tokens),
        tier_held=means(work.tier_held),
        tier_pages=means(work.tier_pages),
        swaps=means(work.swaps),
        tier_fullest=means(work.tier_fullest),
        prompt_parts=(),
    )


class PipelineStepModel:
    """Step times of a pipeline.

    Parameters
    ----------
    stages : sequence of StageModel
        One a stage; stages that are alike may be the same object.
    parallelism : Parallelism
    gpu : Gpus
        Those of a stage, and their links to the next.
    hidden : int
        Elements that a token's activations have between stages.
    """

    def __init__(
        self,
        stages: Sequence[StageModel],
        parallelism: Parallelism,
        gpu: Gpus,
        *,
        hidden: int,
    ) -> None:
        self._stages = list(stages)
        self._parallelism, self._gpu = parallelism, gpu
        self._token_bytes = hidden * ACTIVATION_BYTES
        self._parts: dict[str, float] = {"send": 0.0, "bubble": 0.0}

    def step_s(self, work: StepWork) -> float:
        """Return the seconds that a step takes."""
        count = max(1, min(self._parallelism.micro_batches, work.tokens))
        part = micro_batch(work, count)
        sent = send_s(self._gpu.collectives, part.tokens * self._token_bytes, self._gpu.allreduce_bytes_per_s.number)
        slowest, inside = self._slowest(part)
        stage_s = slowest + sent
        bubble_s = max(0, len(self._stages) - count) * stage_s
        for name, seconds in inside.items():
            self._parts[name] = self._parts.get(name, 0.0) + count * seconds
        self._parts["send"] += count * sent
        self._parts["bubble"] += bubble_s
        return count * stage_s + bubble_s

    def parts_s(self) -> dict[str, float]:
        """Return the seconds of all steps so far by part: those of the slowest stage, and of the pipeline."""
        return dict(self._parts)

    def _slowest(self, part: StepWork) -> tuple[float, dict[str, float]]:
        """Return the time of the slowest stage for a micro-batch, and what it is made of."""
        slowest, inside = -1.0, {}
        for stage in dict.fromkeys(self._stages):
            before = stage.parts_s()
            seconds = stage.step_s(part if stage is self._stages[-1] else replace(part, ending=0))
            if seconds > slowest:
                slowest = seconds
                inside = {name: after - before[name] for name, after in stage.parts_s().items()}
        return slowest, inside
