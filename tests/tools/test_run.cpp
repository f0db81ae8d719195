// SPDX-License-Identifier: Apache-2.0
// `einkern run`, `check`, `fmt`, `words`, `compare` and `random` on files: what comes out.
#include <doctest/doctest.h>

#include <unistd.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <set>

#include "../../engine/tensor/io/npz.h"
#include "../../engine/tensor/io/safetensors.h"
#include "../support/sanitizer.h"
#include "arrays_folder.h"

using namespace einkern;
using namespace einkern::test;

namespace {

/// A folder with a program as p.ein.
class ProgramFolder : public ArraysFolder {
 public:
  explicit ProgramFolder(const std::string& text) { write("p.ein", text); }
  void write(const std::string& name, const std::string& text) const {
    write_text(scratch() / name, text);
  }
};

bool same(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && allclose(a, b, 0, 0);
}

/// Runs the command line in a shell, with its pipes and redirections.
Finished shell(const ArraysFolder& folder, const std::string& line) {
  const std::string command = std::string("export PATH=") +
                              std::filesystem::path(EINKERN_COMMAND).parent_path().string() +
                              ":$PATH; " + line;
  return Process("/bin/sh", {"-c", command}, folder.scratch().path().string()).wait();
}

}  // namespace

TEST_SUITE("tools") {
  TEST_CASE("a single result is printed, or written where -o says") {
    const ProgramFolder folder("y = x * scale\nreturn y\n");
    const Finished printed = folder.run({"run", "p.ein", "x=A.npy", "scale=2"});
    CHECK(printed.code == 0);
    CHECK(printed.err == "");
    CHECK(printed.out == to_string(Tensor(Expr(folder.load("A")) * 2)) + "\n");
    for (const std::string out : {"y.npy", "y=z.npy"}) {
      const Finished done = folder.run({"run", "p.ein", "x=A.npy", "scale=0.5", "-o", out});
      CHECK(done.code == 0);
      CHECK(done.out == "");
    }
    CHECK(same(folder.load("y"), Expr(folder.load("A")) * 0.5));
    CHECK(same(folder.load("z"), folder.load("y")));
  }

  TEST_CASE("several results are printed under their names, or go where they are sent") {
    const ProgramFolder folder("y = x + 1\nreturn y, 2 * x\n");
    const Finished printed = folder.run({"run", "p.ein", "x=S.npy"});
    CHECK(printed.out == "y =\n3.5\nout1 =\n5.0\n");
    CHECK(folder.run({"run", "p.ein", "x=A.npy", "-o", "y=y.npy", "-o", "out1=d.npy"}).code == 0);
    const Tensor y = Expr(folder.load("A")) + 1, d = 2 * Expr(folder.load("A"));
    CHECK(same(folder.load("y"), y));
    CHECK(same(folder.load("d"), d));
    CHECK(folder
              .run({"run", "p.ein", "x=A.npy", "-o", "all.npz", "-o", "out1=d.npy", "-o",
                    "y=one.safetensors", "-o", "out1=one.safetensors"})
              .code == 0);
    const NamedTensors all = load_npz(folder.scratch() / "all.npz");
    CHECK(all.size() == 2);
    CHECK(same(all["y"], y));
    CHECK(same(all["out1"], d));
    CHECK(same(load_safetensors(folder.scratch() / "one.safetensors").tensors["out1"], d));
  }

  TEST_CASE("inputs come from members of files, and what was mapped may be replaced") {
    const ProgramFolder folder("return a @ b\n");
    folder.write("p.ein", "return einsum(\"ij,jk->ik\", a, b)\n");
    const Tensor a = folder.load("A"), b = folder.load("B"), want = einsum("ij,jk->ik", a, b);
    save_npz(folder.scratch() / "two.npz", {{"first", a}, {"b", b}});
    save_npz(folder.scratch() / "deflated.npz", {{"b", b}}, {.compress = true});
    save_safetensors(folder.scratch() / "w.safetensors",
                     {{{"layer.0.weight", a}, {"b", b.astype(bf16)}}, {}});
    for (const auto& [first, second] : std::vector<std::pair<std::string, std::string>>{
             {"two.npz:first", "two.npz:b"},
             {"w.safetensors:layer.0.weight", "deflated.npz"},
             {"A.npy", "w.safetensors:b"}}) {
      const std::string x = first, y = second;  // what messages capture
      CAPTURE(x);
      const Finished done = folder.run({"run", "p.ein", "a=" + x, "b=" + y, "-o", "c.npy"});
      CHECK(done.err == "");
      CHECK(same(folder.load("c"), want));
    }
  }

  TEST_CASE("standard input and output") {
    const ProgramFolder folder("return x * 2\n");
    const Finished piped =
        shell(folder, "cat A.npy | einkern run p.ein x=- -o - | einkern run p.ein x=- -o y.npy");
    CHECK(piped.err == "");
    CHECK(same(folder.load("y"), Expr(folder.load("A")) * 4));
    CHECK(shell(folder, "einkern run - x=A.npy -o z.npy < p.ein").code == 0);
    CHECK(same(folder.load("z"), Expr(folder.load("A")) * 2));
    CHECK(shell(folder, "head -c 100 A.npy | einkern run p.ein x=- -o w.npy").code == 3);
    CHECK_FALSE(folder.has("w.npy"));
    CHECK(shell(folder, "einkern run p.ein x=A.npy -o - >/dev/full").code == 3);
  }

  TEST_CASE("an input of 4 GiB is mapped, not copied") {
    if (kSanitized) return;  // their own memory is beyond the limit
    const ProgramFolder folder("input x: f32[n, 1024]\nreturn x[1048575:, 1022:] + 1\n");
    // The header of (2^20, 1024) floats, and a hole for the elements.
    const std::string small = read_text(folder.scratch() / "A.npy");
    std::string header = small.substr(0, 128);
    const std::string shape = "(2, 3), }";
    const auto at = header.find(shape);
    REQUIRE(at != header.npos);
    header.replace(at, shape.size(), "(1048576, 1024), }");
    header.erase(header.size() - 1 - (std::string("(1048576, 1024), }").size() - shape.size()),
                 std::string("(1048576, 1024), }").size() - shape.size());
    write_text(folder.scratch() / "big.npy", header);
    std::filesystem::resize_file(folder.scratch() / "big.npy", 128 + (std::uintmax_t{4} << 30));
    // Half a GiB of memory of its own is all that the process may have.
    const Finished done = shell(folder, "ulimit -d 524288; einkern run p.ein x=big.npy");
    CHECK(done.err == "");
    CHECK(done.out == "[[1. 1.]]\n");
    const Finished copied = shell(folder, "ulimit -d 524288; cat big.npy | einkern run p.ein x=-");
    CHECK(copied.code != 0);
  }

  TEST_CASE("a failing run leaves what was there") {
    const ProgramFolder folder("return x * 2, x\n");
    folder.save("y", full({3}, 7));
    const std::string before = read_text(folder.scratch() / "y.npy");
    CHECK(folder.run({"run", "p.ein", "x=broken.npy", "-o", "out0=y.npy"}).code == 3);
    CHECK(folder.run({"run", "p.ein", "x=A.npy", "-o", "out0=y.npy", "-o", "x=/dev/full"}).code ==
          3);
    // The archive cannot hold bf16: nothing is written, not even the file that could.
    save_safetensors(folder.scratch() / "h.safetensors",
                     {{{"h", folder.load("A").astype(bf16)}}, {}});
    CHECK(
        folder.run({"run", "p.ein", "x=h.safetensors", "-o", "out0=y.npy", "-o", "x=h.npz"}).code ==
        3);
    CHECK(read_text(folder.scratch() / "y.npy") == before);
    CHECK_FALSE(folder.has("h.npz"));
    // A truncated file, whole in its header.
    const std::string whole = read_text(folder.scratch() / "A.npy");
    write_text(folder.scratch() / "short.npy", whole.substr(0, whole.size() - 4));
    CHECK(folder.run({"run", "p.ein", "x=short.npy", "-o", "all.npz"}).code == 3);
    CHECK_FALSE(folder.has("all.npz"));
    // Folders that take no new file, the first one not even root's.
    CHECK(folder.run({"run", "p.ein", "x=A.npy", "-o", "/proc/all.npz"}).code == 3);
    if (::geteuid() != 0) {
      std::filesystem::create_directory(folder.scratch() / "closed");
      std::filesystem::permissions(
          folder.scratch() / "closed",
          std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
      CHECK(folder.run({"run", "p.ein", "x=A.npy", "-o", "closed/all.npz"}).code == 3);
    }
  }

  TEST_CASE("a file that outgrows what may be written is taken back") {
    const ProgramFolder folder("return x * 1, x * 2\n");
    folder.save("big", zeros({1 << 16}));
    folder.save("y", full({3}, 7));
    const std::string before = read_text(folder.scratch() / "y.npy");
    // 64 blocks of 512 bytes, or of 1024 where sh is bash: room for a part of each result.
    for (const std::string outs :
         {"-o out0=y.npy -o out1=z.npy", "-o all.npz", "-o all.safetensors"}) {
      CAPTURE(outs);
      const Finished done = shell(folder, "ulimit -f 64; exec einkern run p.ein x=big.npy " + outs);
      CHECK(done.code == 3);
      CHECK(done.err.find(": cannot write: file too large") != std::string::npos);
    }
    CHECK(read_text(folder.scratch() / "y.npy") == before);
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder.scratch().path())) {
      const std::string name = entry.path().filename().string();
      if (name.find("all") != name.npos || name[0] == 'y' || name[0] == 'z') names.insert(name);
    }
    CHECK(names == std::set<std::string>{"y.npy"});
  }

  TEST_CASE("--dtype, --explain, --time, --no-fuse, --threads and --memory-limit") {
    const ProgramFolder folder(
        "s = einsum(\"qd,kd->qk\", x, x)\nreturn einsum(\"qk,kd->qd\", softmax(s, k), x)\n");
    folder.save("wide", random({9, 4}, 3));  // more scores than are better off apart
    const Finished fused = folder.run({"run", "p.ein", "x=wide.npy", "-o", "f.npy", "--explain",
                                       "--time", "--threads", "2", "--memory-limit", "1M"});
    CHECK(fused.code == 0);
    CHECK(fused.err.find("attend") != std::string::npos);
    CHECK(fused.err.find("compute ") != std::string::npos);
    const Finished plain =
        folder.run({"run", "p.ein", "x=wide.npy", "-o", "p.npy", "--explain", "--no-fuse"});
    CHECK(plain.err.find("attend") == std::string::npos);
    CHECK(plain.err.find("softmax") != std::string::npos);
    CHECK(allclose(folder.load("f"), folder.load("p")));
    CHECK(folder.run({"run", "p.ein", "x=wide.npy", "-o", "d.npy", "--dtype", "f64"}).code == 0);
    CHECK(folder.load("d").dtype() == f64);
    CHECK(allclose(folder.load("d"), folder.load("f"), 1e-5, 1e-6));
  }

  TEST_CASE("check prints labels and sizes without data") {
    const ProgramFolder folder(
        "s = einsum(\"qd,kd->qk\", x, y)\nn = size(x, 0)\nreturn softmax(s, k)\n");
    const Finished names = folder.run({"check", "p.ein"});
    CHECK(names.code == 0);
    CHECK(names.out ==
          "inputs: x, y\noutputs: out0\n"
          "shapes are not checked: give --shapes, or declare inputs\n");
    const Finished known = folder.run({"check", "p.ein", "--shapes", "x=5x4,y=7x4:f64"});
    CHECK(known.out ==
          "input  x: f32[5, 4]\ninput  y: f64[7, 4]\n       s: f64[q=5, k=7]\n"
          "output out0: f64[q=5, k=7]\n");
    folder.write("p.ein",
                 "input x: f32[n, d]\ns = einsum(\"nd,md->nm\", x, x)\n"
                 "t = where(index(n) > index(m), s, 0)\nreturn t / size(x, 1)\n");
    const Finished symbols = folder.run({"check", "p.ein"});
    CHECK(symbols.err == "");
    CHECK(symbols.out ==
          "input  x: f32[n, d]\n       s: f32[n, m=n]\n       t: f32[n, m=n]\n"
          "output out0: f32[n, m=n]\n");
    const Finished sizes = folder.run({"check", "p.ein", "--shapes", "x=5x4"});
    CHECK(sizes.out ==
          "input  x: f32[n=5, d=4]\n       s: f32[n=5, m=5]\n       t: f32[n=5, m=5]\n"
          "output out0: f32[n=5, m=5]\n");
  }

  TEST_CASE("fmt prints, checks and replaces") {
    const ProgramFolder folder("y=x+1 # one\nreturn   y");
    const std::string canonical = "y = x + 1  # one\nreturn y\n";
    CHECK(folder.run({"fmt", "p.ein"}).out == canonical);
    CHECK(folder.run({"fmt", "p.ein", "--check"}).code == 1);
    CHECK(folder.run({"fmt", "p.ein", "--write"}).out == "");
    CHECK(read_text(folder.scratch() / "p.ein") == canonical);
    CHECK(folder.run({"fmt", "p.ein", "--check"}).code == 0);
    CHECK(shell(folder, "einkern fmt - < p.ein").out == canonical);
  }

  TEST_CASE("compare finds the worst element, and counts floats between") {
    const ArraysFolder folder;
    Tensor b = folder.load("A").copy();
    CHECK(folder.run({"compare", "A.npy", "A.npy"}).out ==
          "close: 6 elements; worst element (0, 0): 1 and 1, difference 0, 0 ulps of f32\n");
    b(1, 2).fill(static_cast<double>(std::nextafter(6.0F, 7.0F)));
    folder.save("N", b);
    const Finished close = folder.run({"compare", "A.npy", "N.npy"});
    CHECK(close.code == 0);
    CHECK(
        close.out ==
        "close: 6 elements; worst element (1, 2): 6 and 6.0000005, difference 4.77e-07, 1 ulps of "
        "f32\n");
    const Finished exact = folder.run({"compare", "A.npy", "N.npy", "--rtol", "0", "--atol", "0"});
    CHECK(exact.code == 1);
    CHECK(exact.err ==
          "einkern: compare: 1 of 6 elements differ; worst element (1, 2): 6 and 6.0000005, "
          "difference 4.77e-07, 1 ulps of f32\n");
    b(0, 1).fill(NAN);
    folder.save("N", b);
    const Finished nan = folder.run({"compare", "A.npy", "N.npy"});
    CHECK(nan.code == 1);
    CHECK(nan.err ==
          "einkern: compare: 1 of 6 elements differ; worst element (0, 1): 2 and nan, difference "
          "nan, - ulps of f32\n");
    CHECK(folder.run({"compare", "N.npy", "N.npy"}).code == 0);
    folder.save("big", full({1}, 9007199254740992.0, i64));
    folder.save("bigger", Expr(folder.load("big")) + 1);
    CHECK(folder.run({"compare", "big.npy", "bigger.npy", "--rtol", "0", "--atol", "0"}).code == 1);
  }

  TEST_CASE("random numbers depend on the seed alone, and are spread as asked") {
    const ArraysFolder folder;
    const auto drawn = [&](std::vector<std::string> options) {
      options.insert(options.begin(), {"random", "--shape", "100x100", "-o", "r.npy"});
      const Finished done = folder.run(options);
      REQUIRE(done.err == "");
      return folder.load("r");
    };
    CHECK(same(drawn({"--seed", "7"}), drawn({"--seed", "7"})));
    CHECK_FALSE(same(drawn({"--seed", "7"}), drawn({})));
    CHECK(same(drawn({}), random({100, 100}, 0, f64).astype(f32)));
    const auto statistics = [](const Tensor& t) {
      double sum = 0, squares = 0, low = INFINITY, high = -INFINITY;
      for (const double v : t.astype(f64).to_vector<double>()) {
        sum += v, squares += v * v;
        low = std::min(low, v), high = std::max(high, v);
      }
      const double n = static_cast<double>(t.size()), mean = sum / n;
      return std::array{mean, std::sqrt(squares / n - mean * mean), low, high};
    };
    // Bounds of five standard errors of 10,000 draws.
    const auto uniform = statistics(drawn({"--dist", "uniform:-1,3", "--dtype", "f64"}));
    CHECK(std::abs(uniform[0] - 1) < 5 * 4 / std::sqrt(12.0) / 100);
    CHECK(uniform[2] >= -1);
    CHECK(uniform[3] < 3);
    const auto normal = statistics(drawn({"--dist", "normal:2,0.5"}));
    CHECK(std::abs(normal[0] - 2) < 5 * 0.5 / 100);
    CHECK(std::abs(normal[1] - 0.5) < 5 * 0.5 / std::sqrt(2.0) / 100);
    const Tensor integers = drawn({"--dist", "integers:-2,3"});
    CHECK(integers.dtype() == i64);
    const auto whole = statistics(integers);
    CHECK(whole[2] == -2);
    CHECK(whole[3] == 2);
    CHECK(std::abs(whole[0]) < 5 * std::sqrt(2.0) / 100);
  }

  TEST_CASE("words prints signatures") {
    const ArraysFolder folder;
    CHECK(folder.run({"words", "softmax", "split"}).out ==
          "softmax(s, axes=-1, sink=...)\n    exp(s - m) / sum(exp(s - m)) over axes\n"
          "split(x, axis, labels, sizes)\n    one axis as several\n");
  }
}
