// SPDX-License-Identifier: Apache-2.0
// Command lines that cannot work: one message each, the right code, no file left behind.
#include <doctest/doctest.h>

#include <algorithm>

#include "../../engine/kernel/kernels.h"
#include "arrays_folder.h"

using namespace einkern::test;

namespace {

struct Malformed {
  std::vector<std::string> arguments;
  int code;
  std::string message;  // after `einkern: `
};

std::vector<std::string> sorted_names(const ArraysFolder& folder) {
  std::vector<std::string> names = folder.scratch().names();
  std::sort(names.begin(), names.end());
  return names;
}

const std::vector<Malformed>& malformed() {
  static const std::vector<Malformed> lines = {
      {{},
       2,
       "no command given; choices: eval, explain, attention, run, check, fmt, words, show, "
       "compare, random, bench (and --help)"},
      {{"evil"},
       2,
       "unknown command 'evil'; choices: eval, explain, attention, run, check, fmt, words, show, "
       "compare, random, bench"},
      {{"--verbose"},
       2,
       "unknown command '--verbose'; choices: eval, explain, attention, run, check, fmt, words, "
       "show, compare, random, bench"},
      {{"eval"}, 2, "eval: no equation given"},
      {{"eval", "ij,jk-", "A.npy"},
       2,
       "eval: the equation 'ij,jk-' ends in '-'; put it in quotes, for to a shell an unquoted > "
       "names an output file"},
      {{"eval", "->", "S.npy"}, 2, "eval: the equation '->' begins with '-'; give it as -e '->'"},
      {{"eval", "->i", "A.npy"},
       2,
       "eval: the equation '->i' begins with '-'; give it as -e '->i'"},
      {{"eval", "-ij>", "A.npy"},
       2,
       "eval: the equation '-ij>' begins with '-'; give it as -e '-ij>'"},
      {{"eval", "-e"}, 2, "eval: --equation needs a value"},
      {{"eval", "A.npy", "ij->ji"},
       2,
       "eval: 'A.npy' is a file; the equation comes first, as in 'ij,jk->ik'"},
      {{"eval", "A.npy"},
       2,
       "eval: 'A.npy' is a file; the equation comes first, as in 'ij,jk->ik'"},
      {{"eval", "ij->k", "A.npy"},
       2,
       "einsum: output label 'k' is in no input, whose labels are 'i', 'j'\n    ij->k\n        ^"},
      {{"eval", "ij=>ji", "A.npy"},
       2,
       "einsum: unknown character '=' (U+003D)\n    ij=>ji\n      ^"},
      {{"eval", "i..j", "A.npy"}, 2, "einsum: an ellipsis is three dots, not 2\n    i..j\n     ^^"},
      {{"eval", "ij", "no.npy"}, 3, "load_npy: 'no.npy': cannot open: no such file or directory"},
      {{"eval", "i%j", "no.npy"}, 2, "einsum: unknown character '%' (U+0025)\n    i%j\n     ^"},
      {{"eval", "ij", "broken.npy"},
       3,
       "load_npy: 'broken.npy': not an npy file: it does not begin with \\x93NUMPY"},
      {{"eval", "ij", "."}, 3, "load_npy: '.': cannot read: is a directory"},
      {{"eval", "ij,jk->ik", "A.npy"},
       3,
       "einsum: the equation has 2 terms but 1 operand was given\n    ij,jk->ik\n       ^^"},
      {{"eval", "ij->ji"},
       3,
       "einsum: the equation has 1 term but 0 operands were given\n    ij->ji\n    ^^"},
      {{"eval", "ij->ji", "A.npy", "B.npy"},
       3,
       "einsum: the equation has 1 term but 2 operands were given\n    ij->ji\n      ^"},
      {{"eval", "ijk->", "A.npy"},
       3,
       "einsum: operand 0 has 2 axes but its term has 3 labels\n    ijk->\n    ^^^"},
      {{"eval", "ij,jk->ik", "A.npy", "A.npy"},
       3,
       "einsum: label 'j' is 3 in operand 0 but 2 in operand 1\n    ij,jk->ik\n     ^ ^"},
      {{"eval", "ij->", "T.npy"}, 3, "einsum: operand 0 is bool; convert it with astype first"},
      {{"eval", "ij->", "A.npy", "--colour"},
       2,
       "eval: unknown option '--colour'; choices: --equation, --out, --path, --threads, --explain, "
       "--time, --help"},
      {{"eval", "ij->", "A.npy", "-x"},
       2,
       "eval: unknown option '-x'; choices: --equation, --out, --path, --threads, --explain, "
       "--time, --help"},
      {{"eval", "ij->", "A.npy", "--colour=red"},
       2,
       "eval: unknown option '--colour'; choices: --equation, --out, --path, --threads, --explain, "
       "--time, --help"},
      {{"eval", "ij->", "A.npy", "--out"}, 2, "eval: --out needs a value"},
      {{"eval", "ij->", "A.npy", "--out="}, 2, "eval: --out has no value behind '='"},
      {{"eval", "ij->", "A.npy", "-o", "x.npy", "--out", "y.npy"}, 2, "eval: --out is given twice"},
      {{"eval", "ij->", "A.npy", "--time=1"}, 2, "eval: --time takes no value"},
      {{"eval", "ij->", "A.npy", "--explain", "--explain"}, 2, "eval: --explain is given twice"},
      {{"eval", "ij->", "A.npy", "--threads", "0"},
       2,
       "eval: --threads: '0' is no number from 1 to 4096"},
      {{"eval", "ij->", "A.npy", "--threads", "two"},
       2,
       "eval: --threads: 'two' is no number from 1 to 4096"},
      {{"eval", "ij,jk->ik", "A.npy", "B.npy", "--path", "best"},
       2,
       "eval: --path: unknown path 'best'; choices: auto, optimal, greedy, or positions such as "
       "0,1;0,1"},
      {{"eval", "ij,jk->ik", "A.npy", "B.npy", "--path", "0,2"},
       3,
       "einsum: step 0 of the path names position 2 of a list of 2 operands"},
      {{"eval", "ij->", "A.npy", "-o", "A.npy"}, 2, "eval: --out 'A.npy' is the input 'A.npy'"},
      {{"eval", "ij->", "A.npy", "-o", "no/x.npy"}, 3, "eval: --out 'no/x.npy' lies in no folder"},
      {{"eval", "ij->", "A.npy", "-o", "."}, 3, "eval: --out '.' is a folder"},
      {{"explain", "ij->"}, 2, "explain: no operands given; name files or use --shapes"},
      {{"explain", "ij->", "A.npy", "--shapes", "2x3"},
       2,
       "explain: operands are given by --shapes or by files, not both"},
      {{"explain", "ij->", "A.npy", "--dtype", "f64"},
       2,
       "explain: --dtype goes with --shapes; files have their own"},
      {{"explain", "ij->", "--shapes", "2by3"},
       2,
       "explain: --shapes: '2by3' is no shape; shapes look like 2x3,3x4 and a scalar is -"},
      {{"explain", "ij->", "--shapes", "2x-3"},
       2,
       "explain: --shapes: '2x-3' is no shape; shapes look like 2x3,3x4 and a scalar is -"},
      {{"explain", "ij->", "--shapes", "4611686018427387904x4"},
       3,
       "explain: shape (4611686018427387904, 4) has more elements than 64-bit offsets can reach"},
      {{"explain", "ij->", "--shapes", "2x3", "--dtype", "f8"},
       2,
       "explain: --dtype: unknown dtype 'f8'; choices: f16, bf16, f32, f64, i64"},
      {{"explain", "ij,jk", "--shapes", "2x3,4x5"},
       3,
       "einsum: label 'j' is 3 in operand 0 but 4 in operand 1\n    ij,jk\n     ^ ^"},
      {{"attention", "A.npy", "A.npy"},
       2,
       "attention: three files are needed, Q.npy K.npy V.npy, not 2"},
      {{"attention", "A.npy", "A.npy", "A.npy", "--causal", "bottom_right"},
       2,
       "attention: --causal takes its value behind '=': --causal=bottom_right"},
      {{"attention", "A.npy", "A.npy", "A.npy", "--causal=left"},
       2,
       "attention: --causal: unknown place 'left'; choices: top_left, bottom_right, or an offset"},
      {{"attention", "A.npy", "A.npy", "A.npy", "--causal=1-2"},
       2,
       "attention: --causal: '1-2' is no whole number"},
      {{"attention", "A.npy", "A.npy", "A.npy", "--window", "3"},
       2,
       "attention: --window: '3' is no window; it looks like 128,0, and -1 is open"},
      {{"attention", "A.npy", "A.npy", "A.npy", "--window", "3,-2"},
       2,
       "attention: --window: '-2' is no whole number from -1 up"},
      {{"attention", "A.npy", "A.npy", "A.npy", "--scale", "big"},
       2,
       "attention: --scale: 'big' is no finite number"},
      {{"attention", "A.npy", "A.npy", "A.npy", "--scale", "nan"},
       2,
       "attention: --scale: 'nan' is no finite number"},
      {{"attention", "A.npy", "A.npy", "A.npy", "--softcap", "0"},
       2,
       "attention: --softcap: '0' is not positive"},
      {{"attention", "A.npy", "A.npy", "A.npy", "--mask", "A.npy"},
       3,
       "dot_product_attention: mask is f32, not bool; numbers to add are given as bias"},
      {{"attention", "A.npy", "A.npy", "A.npy", "--lengths", "A.npy"},
       3,
       "dot_product_attention: lengths are f32, not integers"},
      {{"attention", "A.npy", "B.npy", "B.npy"},
       3,
       "dot_product_attention: features of q (2, 3) and k (3, 4) disagree"},
      {{"attention", "A.npy", "A.npy", "A.npy", "-o", "x.npy", "--lse", "x.npy"},
       2,
       "attention: --out and --lse both name 'x.npy'"},
      {{"attention", "A.npy", "A.npy", "A.npy", "--mask", "T.npy", "--weights", "T.npy"},
       2,
       "attention: --weights 'T.npy' is the input 'T.npy'"},
      {{"show"}, 2, "show: one file is needed, not 0"},
      {{"show", "A.npy", "B.npy"}, 2, "show: one file is needed, not 2"},
      {{"show", "broken.npy"},
       3,
       "load_npy: 'broken.npy': not an npy file: it does not begin with \\x93NUMPY"},
      {{"bench", "ij->ji"}, 2, "bench: no operands given; use --shapes"},
      {{"bench", "ij->ji", "A.npy"},
       2,
       "bench: 'A.npy' is no option; operands are given by --shapes"},
      {{"bench", "ij->ji", "--shapes", "2x3", "--dtype", "i64"},
       2,
       "bench: --dtype: only floats have a peak to compare with"},
      {{"bench", "ij->ji", "--shapes", "2"},
       3,
       "bench: operand 0 has 1 axis but its term has 2 labels\n    ij->ji\n    ^^"},
      {{"bench", "ij->ji", "--shapes", "2x3", "--min-time", "soon"},
       2,
       "bench: --min-time: 'soon' is no finite number"},
      {{"bench", "--problems", "attention", "--strict"},
       2,
       "bench: --strict: attention problems are not flagged"},
      {{"bench", "--calls", "--warm"},
       2,
       "bench: --calls goes with --threads, --target, --min-time, --json and --markdown only"},
  };
  return lines;
}

}  // namespace

TEST_SUITE("tools") {
  TEST_CASE("what cannot work says why and leaves nothing") {
    const ArraysFolder folder;
    const auto before = sorted_names(folder);
    CHECK(malformed().size() > 60);
    for (const Malformed& line : malformed()) {
      std::string shown;
      for (const std::string& argument : line.arguments) shown += " '" + argument + "'";
      CAPTURE(shown);
      const Finished done = folder.run(line.arguments);
      CHECK(done.code == line.code);
      CHECK(done.out == "");
      CHECK(done.err == "einkern: " + line.message + "\n");
      CHECK(sorted_names(folder) == before);
    }
  }

  TEST_CASE("help is printed and nothing else is done") {
    const ArraysFolder folder;
    const Finished general = folder.run({"--help"});
    CHECK(general.code == 0);
    CHECK(general.err == "");
    CHECK(folder.run({"-h"}).out == general.out);
    for (const std::string command : {"eval", "explain", "attention", "run", "check", "fmt",
                                      "words", "show", "compare", "random", "bench"}) {
      CAPTURE(command);
      CHECK(general.out.find("\n  " + command + " ") != std::string::npos);
      const Finished help = folder.run({command, "no.npy", "--help"});
      CHECK(help.code == 0);
      CHECK(help.err == "");
      CHECK(help.out.find("usage: einkern " + command + " ") != std::string::npos);
      CHECK(help.out.find("\nexamples:\n  einkern " + command + " ") != std::string::npos);
    }
  }

  TEST_CASE("version names the build and the machine") {
    const ArraysFolder folder;
    const std::string target(einkern::kernel::supported_kernels().back()->target.name);
    const Finished done =
        folder.run({"--version"}, {"EINKERN_TARGET=" + target, "EINKERN_THREADS=3"});
    CHECK(done.code == 0);
    CHECK(done.out.starts_with("einkern " + std::string(einkern::version()) + "\n"));
    CHECK(done.out.find("; chosen " + target + "\n") != std::string::npos);
    CHECK(done.out.find("\nthreads    3\n") != std::string::npos);
  }

  TEST_CASE("the environment is checked too") {
    const ArraysFolder folder;
    const std::vector<std::string> command = {"eval", "ij->", "A.npy"};
    const Finished threads = folder.run(command, {"EINKERN_THREADS=many"});
    CHECK(threads.code == 3);
    CHECK(threads.err ==
          "einkern: EINKERN_THREADS: expected a number from 1 to 4096, got 'many'\n");
    const Finished target = folder.run(command, {"EINKERN_TARGET=MMX"});
    CHECK(target.code == 3);
    CHECK(target.err.starts_with("einkern: EINKERN_TARGET: no target 'MMX' on this processor; "));
  }
}
