#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# The sentence encoder on einkern, ONNX Runtime and PyTorch in turn: medians on the screen.
#
#   compare_encoder.py [--sentences 64] [--tokens 128] [--threads 2] [--rounds 11] [--model FOLDER]
#
# Needs a build, the model (examples/sentence_encoder/fetch), and from PyPI: numpy, onnx, onnxruntime,
# torch. What is missing is skipped, visibly. Every peer gets the weights of the same file: PyTorch the
# module below, with its own scaled dot-product attention; ONNX Runtime that module's graph, optimised
# offline by its transformer optimiser (fused attention, bias and gelu, skip and norm) and again when it
# is loaded. All are timed from numbers of word pieces to vectors, one after the other in every round,
# so that whatever else the machine does meets all alike.
import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADS, EPS = 12, 1e-12
PARTS = ("query", "key", "value")


def skip(what):
    print(f"SKIPPED: {what}")


class Einkern:
    def __init__(self, options, ids, folder):
        import numpy as np

        program = ROOT / "build/examples/sentence_encoder/sentence_encoder"
        if not program.exists():
            raise ImportError(f"no {program.relative_to(ROOT)}; ninja -C build builds it")
        np.save(folder / "ids.npy", ids)
        command = [program, "--model", options.model, "--threads", str(options.threads)]
        command += ["--time", folder / "ids.npy", "--output", folder / "vectors.npy"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.name = self.process.stdout.readline().strip()
        self.vectors = np.load(folder / "vectors.npy")

    def milliseconds(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def read_safetensors(path):
    """Name to array, of a file of float32 and int64."""
    import json
    import numpy as np

    bytes_ = path.read_bytes()
    size = int.from_bytes(bytes_[:8], "little")
    header = json.loads(bytes_[8 : 8 + size])
    data, arrays = memoryview(bytes_)[8 + size :], {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        dtype = {"F32": "<f4", "I64": "<i8"}[entry["dtype"]]
        arrays[name] = np.frombuffer(data[begin:end], dtype).reshape(entry["shape"]).copy()
    return arrays


def torch_module(options, plain):
    """The encoder as a PyTorch module; `plain` writes attention out, which exporters know."""
    import torch
    from torch.nn import functional

    arrays = read_safetensors(options.model / "model.safetensors")
    weights = {name: torch.from_numpy(array) for name, array in arrays.items()}

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.names = {}
            for name, value in weights.items():
                if value.is_floating_point():
                    self.names[name] = name.replace(".", "_")
                    self.register_parameter(self.names[name], torch.nn.Parameter(value, False))
            self.model = weights["embeddings.LayerNorm.weight"].shape[0]
            self.head_dim = self.model // HEADS
            self.blocks = sum(n.endswith("intermediate.dense.weight") for n in weights)

        def get(self, name):
            return getattr(self, self.names[name])

        def linear(self, name, x):
            return functional.linear(x, self.get(name + ".weight"), self.get(name + ".bias"))

        def norm(self, name, x):
            weight, bias = self.get(name + ".weight"), self.get(name + ".bias")
            return functional.layer_norm(x, weight.shape, weight, bias, EPS)

        def heads(self, name, x):
            y = self.linear(name, x)
            return y.view(y.shape[0], y.shape[1], HEADS, self.head_dim).transpose(1, 2)

        def forward(self, words, mask):
            n = words.shape[1]
            x = functional.embedding(words, self.get("embeddings.word_embeddings.weight"))
            x = x + self.get("embeddings.position_embeddings.weight")[:n]
            x = x + self.get("embeddings.token_type_embeddings.weight")[0]
            x = self.norm("embeddings.LayerNorm", x)
            hidden = (1 - mask[:, None, None, :].float()) * torch.finfo(torch.float32).min
            for i in range(self.blocks):
                at = f"encoder.layer.{i}."
                q, k, v = (self.heads(f"{at}attention.self.{s}", x) for s in PARTS)
                if plain:
                    scores = q @ k.transpose(-1, -2) / self.head_dim**0.5 + hidden
                    o = torch.softmax(scores, -1) @ v
                else:
                    o = functional.scaled_dot_product_attention(q, k, v, attn_mask=hidden)
                o = o.transpose(1, 2).reshape(x.shape[0], n, self.model)
                o = self.linear(at + "attention.output.dense", o)
                x = self.norm(at + "attention.output.LayerNorm", x + o)
                h = functional.gelu(self.linear(at + "intermediate.dense", x))
                h = self.linear(at + "output.dense", h)
                x = self.norm(at + "output.LayerNorm", x + h)
            present = mask[:, :, None].float()
            return functional.normalize((x * present).sum(1) / present.sum(1), dim=1)

    return Encoder().eval()


class Torch:
    def __init__(self, options, ids, _):
        import torch

        self.torch = torch
        torch.set_num_threads(options.threads)
        self.words = torch.from_numpy(ids)
        self.mask = torch.ones_like(self.words)
        self.module = torch_module(options, plain=False)
        self.name = f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}"
        self.vectors = self.run()

    def run(self):
        with self.torch.inference_mode():
            return self.module(self.words, self.mask).numpy()

    def milliseconds(self):
        start = time.perf_counter()
        self.run()
        return 1e3 * (time.perf_counter() - start)

    def close(self):
        pass


class OnnxRuntime:
    def __init__(self, options, ids, folder):
        import numpy as np
        import onnx  # noqa: F401  (the exporter writes with it)
        import onnxruntime
        import torch
        from onnxruntime.transformers import optimizer

        words = torch.from_numpy(ids)
        torch.onnx.export(
            torch_module(options, plain=True),
            (words, torch.ones_like(words)),
            str(folder / "encoder.onnx"),
            input_names=["words", "mask"],
            output_names=["vectors"],
            # Sizes that are not known keep products and biases apart, so that the optimiser can fuse
            # the latter with what follows.
            dynamic_axes={"words": {0: "b", 1: "n"}, "mask": {0: "b", 1: "n"}},
            opset_version=17,
            dynamo=False,
        )
        model = optimizer.optimize_model(
            str(folder / "encoder.onnx"), model_type="bert", num_heads=HEADS, opt_level=1,
            hidden_size=384,
        )
        fused = {k: v for k, v in model.get_fused_operator_statistics().items() if v}
        model.save_model_to_file(str(folder / "fused.onnx"))
        sessions = onnxruntime.SessionOptions()
        sessions.intra_op_num_threads = options.threads
        sessions.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        # The faster of the graph as exported and as fused offline.
        self.feed = {"words": ids, "mask": np.ones_like(ids)}
        best = None
        for name in ("encoder", "fused"):
            session = onnxruntime.InferenceSession(
                str(folder / f"{name}.onnx"), sessions, providers=["CPUExecutionProvider"]
            )
            self.session, times = session, []
            self.run()
            for _ in range(3):
                times.append(self.milliseconds())
            if best is None or min(times) < best[0]:
                best = (min(times), name, session)
        self.session = best[2]
        how = "fused offline: " + ", ".join(f"{v} {k}" for k, v in fused.items())
        how = how if best[1] == "fused" else "fused when loaded"
        self.name = f"onnxruntime {onnxruntime.__version__}, {how}"
        self.vectors = self.run()

    def run(self):
        return self.session.run(None, self.feed)[0]

    def milliseconds(self):
        start = time.perf_counter()
        self.run()
        return 1e3 * (time.perf_counter() - start)

    def close(self):
        pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sentences", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / "models/sentence_encoder")
    options = parser.parse_args()
    try:
        import numpy as np
    except ImportError:
        return skip("no numpy, so nothing was compared")
    if not (options.model / "model.safetensors").exists():
        return skip(f"no model in {options.model}; examples/sentence_encoder/fetch gets it")

    ids = np.random.default_rng(7).integers(1000, 30000, (options.sentences, options.tokens))
    ids[:, 0], ids[:, -1] = 101, 102
    runners = {}
    with tempfile.TemporaryDirectory() as scratch:
        for label, kind in (("einkern", Einkern), ("onnxruntime", OnnxRuntime), ("torch", Torch)):
            try:
                runners[label] = kind(options, ids, pathlib.Path(scratch))
            except ImportError as error:
                skip(f"{label}: {error}")
        times = {label: [] for label in runners}
        for _ in range(options.rounds):
            for label, runner in runners.items():
                time.sleep(0.1)  # until the threads of the one before have stopped to spin
                times[label].append(runner.milliseconds())
        print(f"{options.sentences} sentences of {options.tokens} tokens, {options.threads} threads, "
              f"{options.rounds} rounds interleaved")
        ours = times.get("einkern")
        for label, runner in runners.items():
            middle = statistics.median(times[label])
            line = f"{label:<12} {middle:8.1f} ms  least {min(times[label]):8.1f}"
            if ours and label != "einkern":
                ratio = statistics.median(t / o for t, o in zip(times[label], ours))
                differ = abs(runner.vectors - runners["einkern"].vectors).max()
                line += f"  {ratio:5.2f} x einkern's time, vectors differ by {differ:.1e}"
            print(f"{line}\n             {runner.name}")
        for runner in runners.values():
            runner.close()
    return None


if __name__ == "__main__":
    sys.exit(main())
