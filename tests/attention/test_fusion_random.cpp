// SPDX-License-Identifier: Apache-2.0
// Attention written in random ways: layouts, views, names, orders, algebra. Every program is
// compared with an oracle on both routes, and nearly all have to stream.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <random>

#include "../../ops/ops.h"
#include "fusion.h"

using namespace einkern;
using namespace einkern::test;

namespace {

using I = std::int64_t;

/// A tensor and the letters of its axes.
struct Written {
  Expr x;
  std::string term;
};

/// Writes one random program over the operands of a pair, and the formula that it stands for.
class Writer {
 public:
  Writer(unsigned seed, std::map<std::string, int>& seen) : random_(seed), seen_(seen) {
    n_ = {.batch = pick(2, 3),
          .heads = 0,
          .groups = pick(1, 3),
          .queries = 2 * pick(3, 4),
          .keys = 4 * pick(2, 3),
          .inner = pick(2, 4),
          .columns = pick(2, 4)};
    shared_ = pick(1, 2);
    n_.heads = n_.groups * shared_;
    dtype_ = flip() ? f32 : f64;
    std::string letters = "abcdefghijklmnopqrstuvwxyz";
    std::shuffle(letters.begin(), letters.end(), random_);
    for (const char name : std::string("bghrqxykuwde")) {
      letter_[name] = letters.back();
      letters.pop_back();
    }
  }

  Expr write(const PairArrays& arrays) {
    const bool grouped = shared_ > 1;
    style_ = grouped ? choose("heads", {"labels", "repeat", "merged"}) : "one to one";
    heads_ = style_ == "labels" || style_ == "merged" ? "gr" : "h";
    rows_ = choose("queries", {"one", "one", "two labels"}) == "one" ? "q" : "xy";
    keys_ = choose("keys", {"one", "one", "two labels"}) == "one" ? "k" : "uw";
    const std::string kept = style_ == "labels" || style_ == "merged" ? "g" : "h";
    Written q = present(arrays.q, "b" + heads_ + rows_ + "d");
    Written k = present(arrays.k, "b" + kept + keys_ + "d");
    Written v = present(arrays.v, "b" + kept + keys_ + "e");
    k.x = repeated(k);
    v.x = repeated(v);

    Expr s = scores(std::move(q), std::move(k));
    s = elementwise(s);
    const std::string kind = choose("weights", {"word", "hand", "hand", "product"});
    if (kind != "product") s = masked(s);
    return output(kind, s, v);
  }

  const PairSizes& sizes() const { return n_; }
  const PairFormula& formula() const { return formula_; }
  DType dtype() const { return dtype_; }
  /// What was chosen.
  const std::string& story() const { return story_; }

 private:
  I pick(I low, I high) { return std::uniform_int_distribution<I>(low, high)(random_); }
  bool flip() { return pick(0, 1) == 1; }
  std::string choose(const std::string& what, const std::vector<std::string>& among) {
    std::string chosen = among[static_cast<std::size_t>(pick(0, std::ssize(among) - 1))];
    ++seen_[what + ": " + chosen];
    story_ += what + ": " + chosen + "; ";
    return chosen;
  }
  std::string named_letters(const std::string& names) const {
    std::string term;
    for (const char name : names) term += letter_.at(name);
    return term;
  }
  std::string shuffled(std::string names) {
    std::shuffle(names.begin(), names.end(), random_);
    return names;
  }

  /// Where heads share keys by repeat, the arrays have groups, and their terms say h.
  Expr repeated(const Written& k) {
    if (style_ != "repeat") return k.x;
    return repeat(k.x, static_cast<I>(k.term.find(letter_['h'])), shared_);
  }

  I size_of(char name) const {
    const std::map<char, I> sizes = {
        {'b', n_.batch},    {'h', n_.heads}, {'g', n_.groups},      {'r', shared_},
        {'q', n_.queries},  {'x', 2},        {'y', n_.queries / 2}, {'k', n_.keys},
        {'u', n_.keys / 4}, {'w', 4},        {'d', n_.inner},       {'e', n_.columns}};
    return sizes.at(name);
  }

  /// An array over axes `names`, stored in some way and seen through some view.
  Written present(const Array& array, std::string names) {
    Sizes shape;
    for (const char name : names) {
      const bool grouped = name == 'h' && style_ == "repeat" && array.shape[1] == n_.groups;
      shape.push_back(grouped ? n_.groups : size_of(name));
    }
    Tensor stored = to_tensor({shape, array.data}, dtype_);
    if (flip()) {  // another order in memory
      ++seen_["storage: permuted"];
      const std::string order = shuffled(names);
      stored = permute(stored, named_letters(names) + "->" + named_letters(order));
      names = order;
    }
    Expr x = unnamed(stored);
    if (flip()) {  // part of something larger
      ++seen_["storage: slice"];
      const I axis = pick(0, std::ssize(names) - 1);
      const Tensor whole = concat({unnamed(3 * stored + 1), unnamed(stored)}, axis);
      const I size = stored.shape()[static_cast<std::size_t>(axis)];
      x = slice(whole, axis, size, 2 * size);
    }
    if (flip()) {  // two axes in one
      ++seen_["storage: merged"];
      const I axis = pick(0, std::ssize(names) - 2);
      const I inner = x.shape()[static_cast<std::size_t>(axis) + 1];
      const Tensor together = merge(x, {axis, axis + 1});
      x = split(together, axis, {"", ""}, {-1, inner});
    }
    if (flip()) {  // a view that permutes
      ++seen_["storage: view"];
      const std::string order = shuffled(names);
      x = unnamed(permute(x, named_letters(names) + "->" + named_letters(order)));
      names = order;
    }
    return {x, named_letters(names)};
  }

  Expr scores(Written q, Written k) {
    const std::string place = choose("scale", {"none", "q", "k", "both", "scores", "by division",
                                               "negative", "operand", "einsum"});
    double scale = place == "none" ? 1 : 0.5;
    if (place == "q") q.x = q.x * 0.5;
    if (place == "k") k.x = k.x / 2;
    if (place == "both") {
      q.x = -q.x;
      k.x = k.x * -0.5;
    }
    std::vector<Written> operands{q, k};
    if (place == "operand") operands.push_back({full({}, 0.5, dtype_), ""});
    std::shuffle(operands.begin(), operands.end(), random_);
    score_names_ = shuffled("b" + heads_ + rows_ + keys_);
    std::string equation;
    std::vector<Expr> given;
    for (const Written& operand : operands) {
      equation += (given.empty() ? "" : ",") + operand.term;
      given.push_back(operand.x);
    }
    Expr s = einsum(equation + "->" + named_letters(score_names_), given);
    if (place == "scores") s = flip() ? 0.5 * s : s * 0.5;
    if (place == "by division") s = s / 2;
    if (place == "negative") s = -(s * 0.5), scale = -0.5;
    if (place == "einsum") {
      const std::string term = named_letters(score_names_);
      s = einsum(term + "," + named_letters("b") + "->" + term, s, full({n_.batch}, 0.5, dtype_));
    }
    if (style_ == "merged") s = with_heads_merged(s);
    formula_.score = [scale](double dot, const ScoreAt&) { return dot * scale; };
    return s;
  }

  /// Scores over (g, r) as scores over h, which options are then written on.
  Expr with_heads_merged(Expr s) {
    std::string names = score_names_;
    names.erase(std::remove(names.begin(), names.end(), 'r'), names.end());
    names.insert(names.find('g') + 1, "r");
    s = permute(s, named_letters(score_names_) + "->" + named_letters(names));
    const auto at = static_cast<I>(names.find('g'));
    names.replace(names.find('g'), 2, "h");
    score_names_ = names;
    heads_ = "h";
    return merge(s, {at, at + 1}, std::string(1, letter_['h']));
  }

  Expr position(char name) {
    const auto of = [&](char axis) { return index(std::string(1, letter_[axis])); };
    if (name == 'h' && heads_ == "gr") return of('g') * shared_ + of('r');
    if (name == 'q' && rows_ == "xy") return of('x') * (n_.queries / 2) + of('y');
    if (name == 'k' && keys_ == "uw") return 4 * of('u') + of('w');
    return of(name);
  }
  /// A tensor over some of h, q, k as a named term.
  Expr term(const Array& array, const std::string& over) {
    std::string names;
    for (const char name : over) {
      names += name == 'h' ? heads_ : name == 'q' ? rows_ : keys_;
    }
    Sizes shape;
    for (const char name : names) shape.push_back(size_of(name));
    return named(to_tensor({shape, array.data}, dtype_), named_letters(names));
  }
  static double at(const Array& array, const std::string& over, const ScoreAt& i) {
    Sizes index;
    for (const char name : over) index.push_back(name == 'h' ? i.h : name == 'q' ? i.q : i.k);
    return array.at(index);
  }
  Array noise_over(const std::string& over, unsigned seed) const {
    Sizes shape;
    for (const char name : over) shape.push_back(size_of(name));
    return short_noise(shape, seed);
  }

  Expr elementwise(Expr s) {
    const auto before = formula_.score;
    const std::string kind =
        choose("scores", {"as they are", "soft-cap", "bias", "slope", "function"});
    if (kind == "soft-cap") {
      formula_.score = [before](double dot, const ScoreAt& i) {
        return 2 * std::tanh(before(dot, i) / 2);
      };
      return 2 * tanh(s / 2);
    }
    if (kind == "bias") {
      const std::string over = choose("bias over", {"h", "q", "k", "hk", "qk", "hqk"});
      const Array bias = noise_over(over, 21);
      formula_.score = [=](double dot, const ScoreAt& i) {
        return before(dot, i) + at(bias, over, i);
      };
      return flip() ? s + term(bias, over) : term(bias, over) + s;
    }
    if (kind == "slope") {
      const Array slope = noise_over("h", 22);
      formula_.score = [=](double dot, const ScoreAt& i) {
        return before(dot, i) - at(slope, "h", i) * static_cast<double>(i.q - i.k);
      };
      return s - term(slope, "h") * (position('q') - position('k'));
    }
    if (kind == "function") {
      formula_.score = [before](double dot, const ScoreAt& i) {
        const double x = before(dot, i);
        return x / (1 + std::exp(-x));
      };
      return silu(s);
    }
    return s;
  }

  Expr masked(Expr s) {
    const auto before = formula_.score;
    const std::string kind = choose("mask", {"none", "where", "where not", "mask", "add positions",
                                             "add a tensor", "lowest", "dense", "no key"});
    if (kind == "none") return s;
    const I offset = kind == "no key" ? -2 : pick(0, 2);
    const bool dense = kind == "dense" || kind == "lowest" || kind == "add a tensor";
    Array seen({n_.queries, n_.keys}), added = seen;
    for_each_index(seen.shape, [&](const Sizes& i) {
      seen.at(i) = (i[0] * 3 + i[1] * 5) % 4 == 1 ? 0 : 1;
      added.at(i) = seen.at(i) == 0 ? -INFINITY : 0;
    });
    formula_.score = [=](double dot, const ScoreAt& i) {
      const bool visible = dense ? seen.at({i.q, i.k}) != 0 : i.k <= i.q + offset;
      return visible ? before(dot, i) : -INFINITY;
    };
    const Expr q = position('q'), k = position('k');
    if (kind == "where not") return where(k > q + offset, -inf, s);
    if (kind == "mask") return mask(s, k - q <= offset);
    if (kind == "add positions") {
      return s + where(k <= q + offset, full({}, 0.0, dtype_), -inf);
    }
    if (kind == "add a tensor") return s + term(added, "qk");
    if (kind == "dense") return mask(s, term(seen, "qk") > 0);
    if (kind == "lowest") {
      const Expr m = term(seen, "qk");
      return s * m + (1 - m) * (dtype_ == f32 ? -3.4028234663852886e38 : -1.7e308);
    }
    return where(k <= q + offset, s, -inf);  // and "no key"
  }

  /// Names of the scores without the keys.
  std::string row_names() const {
    std::string names;
    for (const char name : score_names_) {
      if (keys_.find(name) == std::string::npos) names += name;
    }
    return names;
  }
  Axes key_axes() const {
    std::vector<Axis> axes;
    for (const char name : keys_) axes.emplace_back(std::string(1, letter_.at(name)));
    return axes;
  }

  Expr output(const std::string& kind, const Expr& s, const Written& v) {
    const Axes over = key_axes();
    const std::string row = named_letters(row_names());
    std::optional<Expr> divisor;
    Expr p = s;
    if (kind == "product") {
      formula_.normalise = false;
      p = choose("product", {"gated", "scaled"}) == "gated" ? gated(s) : scaled(s);
    } else if (kind == "word") {
      p = softmax(s, over);
    } else {
      formula_.nan_when_empty = true;
      const Expr m = max(s, over);
      const std::string way =
          choose("by hand", {"quotient", "reciprocal", "after", "reciprocal after", "kept", "log",
                             "word log", "raised", "guarded", "einsum"});
      const std::string top = choose("maximum", {"minus", "plus"});
      const auto e_of = [&](const Expr& most) {
        return exp(top == "minus" ? s - most[row] : s + -most[row]);
      };
      const Expr e = way == "raised"    ? e_of(maximum(m, -1e30))
                     : way == "guarded" ? e_of(where(m == -inf, 0, m))
                                        : e_of(m);
      const Expr z = sum(e, over);
      if (way == "guarded") formula_.nan_when_empty = false;
      if (way == "after") divisor = z;
      if (way == "reciprocal after") divisor = 1 / z;
      after_by_product_ = way == "reciprocal after";
      p = way == "reciprocal" ? (1 / z)[row] * e
          : way == "kept"     ? kept(s, over)
          : way == "log"      ? exp(s - (log(z) + m)[row])
          : way == "word log" ? exp(s - logsumexp(s, over)[row])
          : way == "guarded"  ? e / where(z == 0, 1, z)[row]
          : way == "einsum"   ? e * (1 / einsum(named_letters(score_names_) + "->" + row, e))[row]
          : divisor           ? e
                              : e / z[row];
    }
    std::optional<Written> operand;  // a factor that the einsum multiplies with
    if (kind != "product" && !divisor) p = factored(p, operand);

    // Heads apart again, as values need them.
    std::string weights = score_names_;
    if (style_ == "merged") {
      const std::string g(1, letter_['g']), r(1, letter_['r']);
      p = split(p, static_cast<I>(weights.find('h')), {g, r}, {n_.groups, -1});
      weights.replace(weights.find('h'), 1, "gr");
    }
    const std::string names = shuffled(
        "b" + std::string(style_ == "one to one" || style_ == "repeat" ? "h" : "gr") + rows_ + "e");
    std::vector<Written> operands{{p, named_letters(weights)}, v};
    if (operand) operands.push_back(*operand);
    std::shuffle(operands.begin(), operands.end(), random_);
    std::string equation;
    std::vector<Expr> given;
    for (const Written& each : operands) {
      equation += (given.empty() ? "" : ",") + each.term;
      given.push_back(each.x);
    }
    Expr o = einsum(equation + "->" + named_letters(names), given);
    if (divisor) {
      Expr z = *divisor;
      if (style_ == "merged") {
        const std::string g(1, letter_['g']), r(1, letter_['r']);
        std::string apart = row_names();
        z = split(z, static_cast<I>(apart.find('h')), {g, r}, {n_.groups, -1});
        apart.replace(apart.find('h'), 1, "gr");
        z = named(z, named_letters(apart));
      } else {
        z = z[row];
      }
      o = after_by_product_ ? o * z : o / z;
    }
    return canonical(o, names);
  }

  /// Softmax by hand with axes kept.
  static Expr kept(const Expr& s, const Axes& over) {
    const Expr e = exp(s - max(s, over, {.keep = true}));
    return e / sum(e, over, {.keep = true});
  }
  Expr scaled(const Expr& s) {
    const auto before = formula_.score;
    formula_.score = [before](double dot, const ScoreAt& i) { return 1.5 * before(dot, i); };
    return s * 1.5;
  }
  Expr gated(const Expr& s) {
    const Array gates = noise_over("qk", 23);
    const auto before = formula_.score;
    formula_.score = [=](double dot, const ScoreAt& i) {
      return before(dot, i) * at(gates, "qk", i);
    };
    return s * term(gates, "qk");
  }

  Expr factored(const Expr& p, std::optional<Written>& operand) {
    const std::string kind =
        choose("factor", {"none", "none", "tensor", "select", "positions", "operand", "scalar"});
    const Array gates = noise_over("qk", 24);
    if (kind == "scalar") {
      formula_.factor = [](const ScoreAt&) { return 1.25; };
      return p / 0.8;
    }
    if (kind == "tensor") {
      formula_.factor = [=](const ScoreAt& i) { return at(gates, "qk", i); };
      return flip() ? p * term(gates, "qk") : term(gates, "qk") * p;
    }
    if (kind == "operand") {
      formula_.factor = [=](const ScoreAt& i) { return at(gates, "qk", i); };
      Sizes shape;
      for (const char name : rows_ + keys_) shape.push_back(size_of(name));
      operand = Written{to_tensor({shape, gates.data}, dtype_), named_letters(rows_ + keys_)};
      return p;
    }
    if (kind == "positions") {
      formula_.factor = [](const ScoreAt& i) { return static_cast<double>(1 + i.h + i.k); };
      return p * (1 + position('h') + position('k'));
    }
    if (kind == "select") {
      // Elsewhere the weights of a row without a key are NaN, not 0.
      if (formula_.nan_when_empty) return p;
      formula_.factor = [](const ScoreAt& i) { return (i.q + i.k) % 3 != 0 ? 1.0 : 0.0; };
      const BoolExpr seen = mod(position('q') + position('k'), 3) != 0;
      return flip() ? where(seen, p, 0) : where(!seen, 0.0, p);
    }
    return p;
  }

  /// The output as (b, h, q, e).
  Expr canonical(Expr o, const std::string& names) {
    const std::string heads = style_ == "one to one" || style_ == "repeat" ? "h" : "gr";
    const std::string order = "b" + heads + rows_ + "e";
    o = permute(o, named_letters(names) + "->" + named_letters(order));
    if (rows_ == "xy") {
      const auto at = static_cast<I>(order.find('x'));
      o = merge(o, {at, at + 1});
    }
    return heads == "gr" ? merge(o, {1, 2}) : o;
  }

  std::mt19937 random_;
  std::map<std::string, int>& seen_;
  PairSizes n_;
  I shared_ = 1;
  DType dtype_ = f64;
  mutable std::map<char, char> letter_;
  std::string story_, style_, heads_, rows_, keys_, score_names_;
  bool after_by_product_ = false;
  PairFormula formula_;
};

}  // namespace

TEST_SUITE("attention") {
  TEST_CASE("attention streams however it is written") {
    constexpr int kPrograms = 400;
    std::map<std::string, int> seen;
    int missed = 0;
    for (unsigned seed = 1; seed <= kPrograms; ++seed) {
      CAPTURE(seed);
      Writer writer(seed, seen);
      const PairArrays arrays(writer.sizes(), seed);
      const Expr output = writer.write(arrays);
      CAPTURE(writer.story());
      const PairSizes& n = writer.sizes();
      const I bytes = n.batch * n.heads * n.queries * n.keys * (writer.dtype() == f32 ? 4 : 8);
      if (const std::string fault = streaming_fault({output}, bytes); !fault.empty()) {
        ++missed;
        MESSAGE(fault, "\n", explain({output}));
      }
      const Array want = pair_oracle(arrays, writer.formula());
      const double bound = writer.dtype() == f32 ? 1e-5 : 1e-13;
      CHECK(worst_error(eval(output, {.fuse = false}), want) <= bound);
      CHECK(worst_error(Tensor(output), want) <= bound);
    }
    CHECK(missed * 100 <= kPrograms);
    for (const auto& entry : seen) {
      CAPTURE(entry.first);
      CHECK(entry.second >= 3);
    }
    CHECK(seen.size() >= 55);
  }
}
