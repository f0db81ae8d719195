// SPDX-License-Identifier: Apache-2.0
// A plan as text for people and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "../base/caret.h"
#include "attend_cut.h"
#include "attend_visible.h"
#include "builder.h"
#include "loops.h"
#include "operands.h"

namespace einkern::plan {
namespace {

std::string kind_of(const Step& step) {
  if (const auto* s = std::get_if<Contract>(&step)) return std::string(name_of(s->regime));
  if (const auto* s = std::get_if<SelectContract>(&step)) {
    return fmt::format("select_{}", name_of(s->contract.regime));
  }
  if (const auto* s = std::get_if<Reduce>(&step)) {
    return fmt::format("reduce_{}", name_of(s->op));
  }
  if (const auto* s = std::get_if<Softmax>(&step)) {
    constexpr std::string_view kNames[] = {"softmax", "log_softmax", "logsumexp"};
    return std::string(kNames[static_cast<std::size_t>(s->kind)]);
  }
  return std::string(name_of(step));
}

const Contract* contract_of(const Step& step) {
  if (const auto* s = std::get_if<SelectContract>(&step)) return &s->contract;
  return std::get_if<Contract>(&step);
}

/// The operations of a program, each once, without those that only fetch or convert.
std::vector<std::string> operations_of(const map::Program& program) {
  std::vector<std::string> names;
  for (const map::Instruction& instruction : program.code) {
    if (map::arity(instruction.op) == 0 || instruction.op == map::Op::cast) continue;
    std::string name(map::name_of(instruction.op));
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(std::move(name));
    }
  }
  return names;
}

const Map* epilogue_of(const Step& step) {
  const auto* s = std::get_if<Contract>(&step);
  return s != nullptr && s->epilogue ? &*s->epilogue : nullptr;
}

/// Operands that a streamed pass reads through a table.
std::vector<std::string> taken_of(const Step& step) {
  std::vector<std::string> names;
  const auto* s = std::get_if<Attend>(&step);
  if (s != nullptr && s->k_taken) names.emplace_back("k");
  if (s != nullptr && s->v_taken) names.emplace_back("v");
  return names;
}

/// The kind, and what a contraction does with its sums or a streamed pass reads through tables:
/// `matmul + map (add, tanh)`, `attend + take (k, v)`.
std::string kind_and_epilogue(const Step& step) {
  if (const auto taken = taken_of(step); !taken.empty()) {
    return fmt::format("{} + take ({})", kind_of(step), fmt::join(taken, ", "));
  }
  const Map* epilogue = epilogue_of(step);
  if (epilogue == nullptr) return kind_of(step);
  return fmt::format("{} + map ({})", kind_of(step),
                     fmt::join(operations_of(epilogue->program), ", "));
}

/// M x N x K x batch of a contraction, kept x reduced of a reduction, the shape of anything else.
std::string size_of(const Step& step) {
  if (const Contract* s = contract_of(step)) {
    return fmt::format("{:.0f} x {:.0f} x {:.0f} x {:.0f}", extent(s->m), extent(s->n),
                       extent(s->k), extent(s->batch));
  }
  if (const auto* s = std::get_if<Reduce>(&step)) {
    return fmt::format("{:.0f} x {:.0f}", extent(s->kept), extent(s->reduced));
  }
  if (const auto* s = std::get_if<Attend>(&step)) {
    double batch = 1, rows = 1, keys = 1;
    for (const ScoreAxis& axis : s->axes) {
      (axis.role == ScoreAxis::Role::batch ? batch
       : axis.role == ScoreAxis::Role::row ? rows
                                           : keys) *= static_cast<double>(axis.size);
    }
    return fmt::format("{:.0f} x {:.0f} x {:.0f}+{:.0f} x {:.0f}", rows, keys, extent(s->inner),
                       extent(s->columns), batch);
  }
  return to_string(written_by(step).layout.shape);
}

/// Three significant digits and a prefix: 2.1 M, 512, 34.4 n.
std::string scaled(double value, std::string_view unit) {
  constexpr std::array<std::string_view, 8> kPrefixes = {"n", "u", "m", "", "k", "M", "G", "T"};
  std::size_t prefix = 3;
  while (value >= 999.5 && prefix + 1 < kPrefixes.size()) value /= 1000, ++prefix;
  while (value > 0 && value < 0.9995 && prefix > 0) value *= 1000, --prefix;
  std::string text = fmt::format("{:.3g}", value);
  if (!kPrefixes[prefix].empty() || !unit.empty()) {
    text += fmt::format(" {}{}", kPrefixes[prefix], unit);
  }
  return text;
}

using Row = std::vector<std::string>;

std::size_t width_of(const std::string& text) { return decode_utf8(text).size(); }

/// Columns two blanks apart: the first `texts` to the left, numbers to the right; no blanks at the
/// end.
std::string table(const std::vector<Row>& rows, std::size_t texts) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - width_of(row[i]), ' ');
      if (i > 0) line += "  ";
      line += i < texts ? row[i] + padding : padding + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

/// What explain knows beside the steps: the scalars are empty where they are not known.
struct Circumstances {
  const Target& target;
  std::vector<map::Scalar> scalars;
};

Circumstances circumstances(const Plan& plan, const Target& target,
                            std::span<const map::Scalar> scalars) {
  Circumstances result{target, {scalars.begin(), scalars.end()}};
  if (std::ssize(scalars) != plan.scalars) return {target, {}};
  result.scalars.insert(result.scalars.end(), plan.constants.begin(), plan.constants.end());
  return result;
}

/// What a mask leaves; everything where there is none, or a scalar is not known.
VisibleShare visible_part(const Attend& step, const Circumstances& known) {
  for (const map::Instruction& code : step.scores.code) {
    if (code.op == map::Op::scalar && code.arg >= std::ssize(known.scalars)) return {};
  }
  return has_mask(step) ? visible_share(step, known.scalars) : VisibleShare{};
}

/// How a streamed step is cut, what a mask leaves, and why it is streamed.
std::string streamed_text(std::size_t number, const Attend& step, const Estimate& estimate,
                          const Circumstances& known) {
  const AttendCut cut = cut_attend(step, known.target);
  const std::string name = fmt::format("step {}: ", number);
  std::string text = name;
  text += cut.few_rows ? std::string("few rows at once")
                       : fmt::format("tiles of {} rows by {} keys", cut.tile_rows, cut.key_block());
  if (cut.pieces > 1) {
    text += fmt::format(", {} pieces of {} keys{}", cut.pieces, cut.piece_keys,
                        cut.side_by_side(cut.round) ? "" : " in turn");
  }
  text += fmt::format(", {} {}, about {} extra\n", cut.tasks(), cut.tasks() == 1 ? "task" : "tasks",
                      scaled(cut.extra_bytes, "B"));
  if (cut.copies_keys || cut.copies_values) {
    text += fmt::format("{}copies of {} {}, {} at a time\n", name,
                        !cut.copies_values ? "keys"
                        : !cut.copies_keys ? "values"
                                           : "keys and values",
                        cut.why_copied, scaled(cut.copied_bytes, "B"));
  }
  if (has_mask(step)) {
    const VisibleShare visible = visible_part(step, known);
    text += fmt::format("{}at most {:.0f} % of scores visible, {} flops, and {:.0f} % of keys\n",
                        name, 100 * visible.scores, scaled(visible.scores * estimate.flops, ""),
                        100 * visible.keys);
  }
  return text + fmt::format("{}streamed: {} of scores {} and read take {} more\n", name,
                            scaled(cut.score_bytes, "B"),
                            step.normalise ? "twice written" : "written",
                            scaled(seconds_of_scores(cut, step, known.target), "s"));
}

std::string json_cut(const Attend& step, const Circumstances& known) {
  const AttendCut cut = cut_attend(step, known.target);
  const VisibleShare visible = visible_part(step, known);
  return fmt::format(
      ",\n     \"cut\": {{\"form\": {}, \"tile_rows\": {}, \"key_block\": {}, \"tiles\": {}, "
      "\"pieces\": {}, \"piece_keys\": {}, \"tasks\": {},\n      \"copies_keys\": {}, "
      "\"copies_values\": {}, \"extra_bytes\": {:.0f}, \"visible_scores\": {:.4g}, "
      "\"visible_keys\": {:.4g},\n      \"score_bytes\": {:.0f}, \"score_seconds\": {:.4g}}}",
      quoted(cut.few_rows ? "few rows" : "tiles"), cut.tile_rows, cut.key_block(),
      cut.batch * cut.tiles, cut.pieces, cut.piece_keys, cut.tasks(), cut.copies_keys,
      cut.copies_values, cut.extra_bytes, visible.scores, visible.keys, cut.score_bytes,
      seconds_of_scores(cut, step, known.target));
}

struct Copies {
  std::size_t count = 0;
  double bytes = 0;
};

Copies copies_of(const Plan& plan) {
  Copies copies;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    if (!std::holds_alternative<Copy>(plan.steps[i])) continue;
    ++copies.count;
    copies.bytes += plan.estimates[i].bytes_written;
  }
  return copies;
}

std::string json_step(const Step& step, const Estimate& estimate, const std::string& note,
                      const Circumstances& known) {
  std::string text =
      fmt::format("{{\"kind\": {}, \"term\": {}, \"dtype\": {}", quoted(kind_of(step)),
                  quoted(note), quoted(name_of(written_by(step).dtype)));
  if (const Contract* s = contract_of(step)) {
    text += fmt::format(", \"m\": {:.0f}, \"n\": {:.0f}, \"k\": {:.0f}, \"batch\": {:.0f}",
                        extent(s->m), extent(s->n), extent(s->k), extent(s->batch));
    if (const Map* epilogue = epilogue_of(step)) {
      std::vector<std::string> names = operations_of(epilogue->program);
      for (std::string& name : names) name = quoted(name);
      text += fmt::format(", \"epilogue\": [{}]", fmt::join(names, ", "));
    }
  } else if (const auto* r = std::get_if<Reduce>(&step)) {
    text +=
        fmt::format(", \"kept\": {:.0f}, \"reduced\": {:.0f}", extent(r->kept), extent(r->reduced));
  } else {
    text += fmt::format(", \"shape\": [{}]", fmt::join(written_by(step).layout.shape, ", "));
    if (auto taken = taken_of(step); !taken.empty()) {
      for (std::string& name : taken) name = quoted(name);
      text += fmt::format(", \"taken\": [{}]", fmt::join(taken, ", "));
    }
    if (const auto* a = std::get_if<Attend>(&step)) text += json_cut(*a, known);
  }
  return text + fmt::format(
                    ",\n     \"flops\": {:.0f}, \"bytes_read\": {:.0f}, \"bytes_written\": {:.0f}, "
                    "\"seconds\": {:.4g}}}",
                    estimate.flops, estimate.bytes_read, estimate.bytes_written, estimate.seconds);
}

}  // namespace

std::string explain(const Plan& plan, const Target& target, std::span<const map::Scalar> scalars) {
  const Circumstances known = circumstances(plan, target, scalars);
  std::string text = fmt::format("target {}", target.name);
  if (plan.path.find(';') != std::string::npos) text += fmt::format(", path {}", plan.path);
  text += "\n";
  std::vector<Row> rows = {
      {"step", "kind", "term", "dtype", "M x N x K x batch", "flops", "read", "written", "time"}};
  Estimate total;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Estimate& estimate = plan.estimates[i];
    rows.push_back({std::to_string(i), kind_and_epilogue(plan.steps[i]), plan.notes[i],
                    std::string(name_of(written_by(plan.steps[i]).dtype)), size_of(plan.steps[i]),
                    scaled(estimate.flops, ""), scaled(estimate.bytes_read, "B"),
                    scaled(estimate.bytes_written, "B"), scaled(estimate.seconds, "s")});
    total.flops += estimate.flops;
    total.bytes_read += estimate.bytes_read;
    total.bytes_written += estimate.bytes_written;
    total.seconds += estimate.seconds;
  }
  if (plan.steps.size() > 1) {
    rows.push_back({"all", "", "", "", "", scaled(total.flops, ""), scaled(total.bytes_read, "B"),
                    scaled(total.bytes_written, "B"), scaled(total.seconds, "s")});
  }
  text += plan.steps.empty() ? "nothing to do\n" : table(rows, 5);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const auto* s = std::get_if<Attend>(&plan.steps[i]);
    if (s != nullptr) text += streamed_text(i, *s, plan.estimates[i], known);
  }
  const Copies copies = copies_of(plan);
  text += copies.count == 0
              ? "copies: none\n"
              : fmt::format("copies: {}, {}\n", copies.count, scaled(copies.bytes, "B"));
  text += fmt::format("workspace: {}\n", scaled(static_cast<double>(plan.workspace_bytes()), "B"));
  for (const std::string& miss : plan.unfused) text += fmt::format("not fused: {}\n", miss);
  return text;
}

std::string explain_json(const Plan& plan, const Target& target,
                         std::span<const map::Scalar> scalars) {
  const Circumstances known = circumstances(plan, target, scalars);
  std::string steps;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    steps += fmt::format("{}\n    {}", i > 0 ? "," : "",
                         json_step(plan.steps[i], plan.estimates[i], plan.notes[i], known));
  }
  std::string unfused;
  for (const std::string& miss : plan.unfused) {
    unfused += (unfused.empty() ? "" : ", ") + quoted(miss);
  }
  return fmt::format(
      "{{\n  \"target\": {},\n  \"path\": {},\n  \"steps\": [{}{}],\n  \"copies\": {},\n"
      "  \"workspace_bytes\": {},\n  \"not_fused\": [{}]\n}}\n",
      quoted(target.name), quoted(plan.path), steps, plan.steps.empty() ? "" : "\n  ",
      copies_of(plan).count, plan.workspace_bytes(), unfused);
}

}  // namespace einkern::plan
