"""The model card: README.md of an exported folder, written from its lineage.

Called by `services`. Pure: a lineage document in, Markdown out. Texts of people are put into it as
they are, but for what would break a table or the front matter.
"""

from __future__ import annotations

from typing import Any

import yaml

from training_core.contract.events import DomainResult, Interval
from training_core.contract.exports import ExportDtype
from webapp.ui.wording import format_points

Document = dict[str, Any]


def render_card(lineage: Document, dtype: ExportDtype) -> str:
    """The card, up to what the export itself adds about its files."""
    run, checkpoint = lineage["run"], lineage["checkpoint"]
    parts = [
        front_matter(lineage),
        f"# {plain(run['name'])}, step {checkpoint['step']:,}\n",
        f"Trained with Temper: run #{run['number']} after {checkpoint['step']:,} of "
        f"{checkpoint['total_steps']:,} steps. Weights in {dtype}.\n",
        _usage(),
        _base(lineage),
        _results(lineage),
        _data(lineage["data"]),
        _program(lineage),
        _limits(lineage),
    ]
    return "\n".join(part for part in parts if part)


def front_matter(lineage: Document) -> str:
    """The YAML head that model hubs read."""
    base = lineage["base_model"]
    facts: Document = {
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        "tags": ["temper", *dict.fromkeys(_methods(lineage["stages"]))],
    }
    if base["licence"]:
        facts["license"] = base["licence"]
    if base["ref"] == "smollm2-135m-instruct":
        facts["base_model"] = "HuggingFaceTB/SmolLM2-135M-Instruct"
    elif "/" in base["ref"] and not base["ref"].startswith(("/", ".", "~")):
        facts["base_model"] = base["ref"]
    head = yaml.safe_dump(facts, sort_keys=False, allow_unicode=True)
    return f"---\n{head}---\n"


def plain(text: object) -> str:
    """A person's text for one line of Markdown: no line ends, no cell ends, no markup."""
    line = " ".join(str(text).split())
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>|#" else sign for sign in line)


def _methods(stages: list[Document]) -> list[str]:
    return [stage.get("algorithm") or stage["type"] for stage in stages]


def _usage() -> str:
    return (
        "```python\n"
        "from transformers import AutoModelForCausalLM, AutoTokenizer\n\n"
        'tokenizer = AutoTokenizer.from_pretrained(".")\n'
        'model = AutoModelForCausalLM.from_pretrained(".")\n'
        'turns = [{"role": "user", "content": "What is 17 + 25?"}]\n'
        "inputs = tokenizer.apply_chat_template(\n"
        '    turns, add_generation_prompt=True, return_tensors="pt", return_dict=True\n'
        ")\n"
        "print(tokenizer.decode(model.generate(**inputs, max_new_tokens=64)[0]))\n"
        "```\n"
    )


def _base(lineage: Document) -> str:
    """Base model, licence, and what the weights went through before."""
    base = lineage["base_model"]
    lines = [
        "## Base model\n",
        f"- `{base['ref']}`: {plain(base['origin'])}",
        f"- Licence: {plain(base['licence'] or 'unknown; look at the base model’s own page')}",
        *(f"- {plain(truth)}" for truth in base["truths"]),
        *(
            f"- Went on from step {each['step']:,} of run #{each['run']} ({plain(each['name'])})."
            for each in lineage["continued_from"]
        ),
    ]
    return "\n".join(lines) + "\n"


def _results(lineage: Document) -> str:
    """Held-out results with intervals; whether they are of these very weights is said."""
    found = lineage["evaluations"]
    if not found:
        return "## Held-out results\n\nThis run was not evaluated up to this step.\n"
    step = lineage["checkpoint"]["step"]
    lines = [
        "## Held-out results\n",
        "With 95 % intervals.\n",
        "| weights | domain | solved (pass@1) | mean reward | items |",
        "|---|---|---|---|---|",
    ]
    for evaluation in found:
        results = [DomainResult.model_validate(item) for item in evaluation["results"]]
        shown = results if len(results) != 2 else results[:1]  # one domain is `all`
        lines += [
            f"| {plain(evaluation['title'])}, step {evaluation['step']:,} | {plain(each.domain)} | "
            f"{_interval(each.pass_at_1)} | {_interval(each.reward)} | {each.pass_at_1.n:,} |"
            for each in shown
        ]
    newest = found[-1]
    if newest["step"] != step:
        lines.append(
            f"\nThese weights (step {step:,}) were not evaluated; the nearest evaluation before "
            f"them is of step {newest['step']:,}."
        )
    for item in newest["results"][:1]:
        lines += _changes(DomainResult.model_validate(item))
    return "\n".join(lines) + "\n"


def _changes(result: DomainResult) -> list[str]:
    """Paired differences, and whether they show anything."""
    lines = []
    for change in result.compared:
        it = change.difference
        low = format_points(it.low).removesuffix(" points")
        claim = "" if it.low > 0 or it.high < 0 else ": no difference is shown"
        lines.append(
            f"\n{format_points(it.value)} against {plain(change.against_label)} (paired 95 % "
            f"interval {low} to {format_points(it.high)}, {it.n:,} items){claim}."
        )
    return lines


def _interval(it: Interval) -> str:
    return f"{it.value:.3f} [{it.low:.3f}, {it.high:.3f}]"


def _data(data: list[Document]) -> str:
    """Every source of prompts with the hash or the settings that fix it."""
    lines = ["## Training data\n"]
    for each in data:
        share = "" if each["weight"] else " (evaluated only, weight 0)"
        if each["type"] == "dataset":
            name = plain(each["dataset"] or "a dataset that is gone")
            records = f", {each['records']:,} records" if each["records"] is not None else ""
            lines.append(
                f"- {plain(each['domain'])}: dataset {name}, version {each['version'] or '?'}"
                f"{records}{share}; SHA-256 of its records `{each['content_hash'] or 'not noted'}`"
            )
        else:
            params = ", ".join(f"{key}={value}" for key, value in each["params"].items())
            lines.append(
                f"- {plain(each['domain'])}: generated by reasoning-gym `{each['generator']}`"
                f"{f' ({plain(params)})' if params else ''}{share}"
            )
    return "\n".join(lines) + "\n"


def _program(lineage: Document) -> str:
    """Stages, rewards, and what computed them."""
    lines = ["## Program\n"]
    for stage in lineage["stages"]:
        size = (
            f"{stage['prompts_per_step']} prompts × {stage['group_size']} completions a step"
            if stage["type"] == "rl"
            else f"{stage['batch_size']} demonstrations a step"
        )
        control = "; rewards shuffled (a control)" if stage.get("shuffled_rewards") else ""
        lines.append(
            f"- {plain(stage['name'])}: {stage.get('algorithm') or stage['type']}, "
            f"{stage['steps']:,} steps, {size}, learning rate {stage['learning_rate']:g}{control}"
        )
    rewards = ", ".join(f"{each['name']} × {each['weight']:g}" for each in lineage["rewards"])
    computed = lineage["computed_on"]
    versions = ", ".join(f"{name} {number}" for name, number in computed["versions"].items())
    lines.append(f"- Rewards: {plain(rewards)}")
    lines.append(f"- Seed {lineage['run']['seed']}")
    if computed["device"]:
        kind = computed["compute_dtype"]
        lines.append(f"- Computed on {plain(computed['device'])} in {kind}; {plain(versions)}")
    lines.append("- `training_spec.yaml` is the whole spec; `lineage.json` has this card as data.")
    return "\n".join(lines) + "\n"


def _limits(lineage: Document) -> str:
    """What nobody measured."""
    domains = ", ".join(plain(each["domain"]) for each in lineage["data"])
    return (
        "## Limits\n\n"
        f"Measured on held-out prompts of {domains} alone. Nothing is known about safety, bias or "
        "other tasks beyond what the base model's own card says.\n"
    )
