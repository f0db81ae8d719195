#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Attention problems on einkern, ONNX Runtime and PyTorch in turn: medians and ratios on the screen.
#
#   compare_attention.py [--only REGEX] [--threads 2] [--rounds 5] [--seconds 0.3] [--markdown]
#
# Needs a build, and from PyPI: numpy, onnx, onnxruntime, torch. What is missing is skipped, visibly,
# and so is a problem that a peer has no word for. The problems are the f32 ones of attention.tsv.
# PyTorch runs its own scaled_dot_product_attention; ONNX Runtime the faster of the standard's
# Attention and its own MultiHeadAttention, where that has a word for the problem. Every round times
# each library for a while, one after the other, and answers are compared once.
import argparse
import csv
import json
import pathlib
import re
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
EINKERN = ROOT / "build/tools/einkern"


def skip(what):
    print(f"SKIPPED: {what}")


class Problem:
    def __init__(self, row):
        self.name = row["name"]
        sizes = (int(row[column]) for column in ("B", "Hq", "Hkv", "Nq", "Nk", "dk", "dv"))
        self.b, self.heads, self.kv_heads, self.n, self.m, self.dk, self.dv = sizes
        self.variant = row["variant"]
        self.options = dict(part.split("=", 1) for part in (row["options"] or "").split(",")
                            if "=" in part and ":" not in part)
        self.heads_third = self.options.get("layout") == "bnhd"
        self.causal = "causal" in self.options

    def why_not(self):
        """Why no peer runs it; None where they may."""
        if "kv" in self.options:
            return "keys and values are not f32"
        if self.variant not in ("full", "causal", "decode"):
            return f"peers have no word for {self.variant} that skips anything"
        return None

    def operands(self):
        import numpy as np

        random = np.random.default_rng(5)
        shapes = ((self.heads, self.n, self.dk), (self.kv_heads, self.m, self.dk),
                  (self.kv_heads, self.m, self.dv))
        arrays = []
        for heads, positions, size in shapes:
            shape = (self.b, heads, positions, size)
            if self.heads_third:
                shape = (self.b, positions, heads, size)
            arrays.append(random.uniform(-1, 1, shape).astype("float32"))
        return arrays

    def flops(self):
        pairs = self.n * (self.n + 1) / 2 if self.causal else self.n * self.m
        return 2.0 * self.b * self.heads * pairs * (self.dk + self.dv)


class Timed:
    """Calls something for a while; the median of a call in milliseconds."""

    def milliseconds(self, seconds):
        times = []
        begin = time.perf_counter()
        while len(times) < 3 or time.perf_counter() - begin < seconds:
            start = time.perf_counter()
            self.run()
            times.append(1e3 * (time.perf_counter() - start))
        return statistics.median(times)


class Einkern:
    def __init__(self, problem, options):
        self.command = [EINKERN, "bench", "--problems", "attention", "--json", "--warm"]
        self.command += ["--only", f"^{re.escape(problem.name)}$", "--buffers", "64"]
        self.command += ["--threads", str(options.threads), "--min-time", str(options.seconds)]

    def milliseconds(self, _):
        run = subprocess.run(self.command, capture_output=True, text=True, check=True)
        return json.loads(run.stdout)["results"][0]["median_ms"]


class Torch(Timed):
    def __init__(self, problem, options):
        import torch
        from torch.nn import functional

        torch.set_num_threads(options.threads)
        self.torch, self.attend = torch, functional.scaled_dot_product_attention
        self.name = f"PyTorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}"
        self.operands = [torch.from_numpy(x) for x in problem.operands()]
        if problem.heads_third:
            self.operands = [x.transpose(1, 2) for x in self.operands]
        self.words = {"is_causal": problem.causal, "enable_gqa": problem.kv_heads != problem.heads}
        self.answer = self.run().numpy()

    def run(self):
        with self.torch.inference_mode():
            return self.attend(*self.operands, **self.words)


class OnnxRuntime(Timed):
    def __init__(self, problem, options):
        import onnxruntime

        self.name = f"ONNX Runtime {onnxruntime.__version__}"
        arrays = problem.operands()
        best, failures = None, []
        for make in (self.standard, self.contributed):
            try:
                model, feed, shape = make(problem, arrays)
                sessions = onnxruntime.SessionOptions()
                sessions.intra_op_num_threads = options.threads
                sessions.log_severity_level = 3
                self.session = onnxruntime.InferenceSession(
                    model.SerializeToString(), sessions, providers=["CPUExecutionProvider"])
                self.feed = feed
                answer = self.run().reshape(shape)
                spent = self.milliseconds(options.seconds)
            except (NotImplementedError, onnxruntime.capi.onnxruntime_pybind11_state.Fail,
                    onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented,
                    onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument) as error:
                failures.append(str(error).splitlines()[0][:120])
                continue
            if problem.heads_third or make == self.contributed:
                answer = answer.transpose(0, 2, 1, 3)
            if best is None or spent < best[0]:
                best = (spent, self.session, feed, answer, make.__name__)
        if best is None:
            raise NotImplementedError("; ".join(failures))
        _, self.session, self.feed, self.answer, how = best
        self.name += ", Attention" if how == "standard" else ", MultiHeadAttention"

    @staticmethod
    def model_of(node, arrays, out_rank, domains):
        from onnx import TensorProto, helper

        names = ("q", "k", "v")
        inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape)
                  for n, a in zip(names, arrays)]
        outputs = [helper.make_tensor_value_info("o", TensorProto.FLOAT, [None] * out_rank)]
        graph = helper.make_graph([node], "attention", inputs, outputs)
        opsets = [helper.make_opsetid(name, version) for name, version in domains]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        return model, dict(zip(names, arrays))

    def standard(self, p, arrays):
        from onnx import helper

        if p.heads_third:
            raise NotImplementedError("heads stand second")
        node = helper.make_node("Attention", ["q", "k", "v"], ["o"], is_causal=int(p.causal))
        model, feed = self.model_of(node, arrays, 4, [("", 23)])
        return model, feed, (p.b, p.heads, p.n, p.dv)

    def contributed(self, p, arrays):
        from onnx import helper

        if p.kv_heads != p.heads:
            raise NotImplementedError("no grouped heads")
        if not p.heads_third:
            arrays = [x.transpose(0, 2, 1, 3) for x in arrays]
        flat = [x.reshape(x.shape[0], x.shape[1], -1).copy() for x in arrays]
        node = helper.make_node("MultiHeadAttention", ["q", "k", "v"], ["o"], num_heads=p.heads,
                                unidirectional=int(p.causal), domain="com.microsoft")
        model, feed = self.model_of(node, flat, 3, [("", 21), ("com.microsoft", 1)])
        return model, feed, (p.b, p.n, p.heads, p.dv)

    def run(self):
        return self.session.run(None, self.feed)[0]


def compare(problem, options):
    """One row: einkern's median, then per peer its median and ratio, or why there is none."""
    ours, peers, cells = Einkern(problem, options), {}, []
    for kind in (OnnxRuntime, Torch):
        try:
            peers[kind] = kind(problem, options)
        except (ImportError, NotImplementedError) as error:
            skip(f"{problem.name} on {kind.__name__}: {error}")
    if len(peers) == 2:
        differ = abs(peers[Torch].answer - peers[OnnxRuntime].answer).max()
        if differ > 1e-4:
            raise SystemExit(f"{problem.name}: the peers' answers differ by {differ}")
    times = {kind: [] for kind in (Einkern, *peers)}
    for _ in range(options.rounds):
        times[Einkern].append(ours.milliseconds(options.seconds))
        for kind, peer in peers.items():
            time.sleep(0.1)  # until the threads of the one before have stopped to spin
            times[kind].append(peer.milliseconds(options.seconds))
    middle = statistics.median(times[Einkern])
    cells = [problem.name, f"{middle:.4g}", f"{problem.flops() / middle / 1e6:.4g}"]
    for kind in (OnnxRuntime, Torch):
        if kind not in peers:
            cells += ["-", "-"]
            continue
        ratio = statistics.median(t / o for t, o in zip(times[kind], times[Einkern]))
        cells += [f"{statistics.median(times[kind]):.4g}", f"{ratio:.2f}"]
    return cells, {peer.name for peer in peers.values()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    try:
        import numpy  # noqa: F401  (operands are made with it)
    except ImportError:
        return skip("no numpy, so nothing was compared")
    if not EINKERN.exists():
        return skip(f"no {EINKERN.relative_to(ROOT)}; ninja -C build builds it")
    with open(ROOT / "tools/bench/attention.tsv", encoding="utf-8") as file:
        problems = [Problem(row) for row in csv.DictReader(file, delimiter="\t")]
    heading = ["problem", "ms", "GFLOP/s", "ONNX Runtime ms", "its / ours", "PyTorch ms", "its / ours"]
    rows, names = [], set()
    for problem in problems:
        if not re.search(options.only, problem.name):
            continue
        if why := problem.why_not():
            skip(f"{problem.name}: {why}")
            continue
        cells, peers = compare(problem, options)
        rows.append(cells)
        names |= peers
    print(f"{options.threads} threads, {options.rounds} rounds in turn; " + "; ".join(sorted(names)))
    if options.markdown:
        print("| " + " | ".join(heading) + " |\n|---|" + "---:|" * (len(heading) - 1))
        for cells in rows:
            print("| " + " | ".join(cells) + " |")
        return None
    for cells in [heading, *rows]:
        print("".join(f"{cell:<16}" for cell in cells).rstrip())
    return None


if __name__ == "__main__":
    sys.exit(main())
