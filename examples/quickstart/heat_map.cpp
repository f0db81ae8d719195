// SPDX-License-Identifier: Apache-2.0
// Attention weights to coloured blocks, or digits where there is no colour.
#include "heat_map.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace {

// From dark blue over green to light yellow, in the 256-colour palette.
constexpr std::array<int, 10> kColours = {17, 18, 24, 30, 36, 42, 78, 114, 150, 186};
constexpr std::size_t kGap = 5;  // between two maps

std::size_t step_of(double weight) {
  return static_cast<std::size_t>(std::clamp(10 * weight, 0.0, 9.0));
}

std::string block(std::size_t step) {
  return fmt::format("\x1b[48;5;{}m   \x1b[0m", kColours[step]);
}

std::string cell(double weight, const HeatMapStyle& style) {
  if (style.colour) return weight == 0 ? "   " : block(step_of(weight));
  return weight == 0 ? " . " : fmt::format(" {} ", step_of(weight));
}

}  // namespace

bool wants_colour() {
  const char* no_colour = std::getenv("NO_COLOR");
  return (no_colour == nullptr || *no_colour == '\0') && isatty(STDOUT_FILENO) == 1;
}

std::string heat_maps(const einkern::Tensor& weights, const std::vector<std::string>& tokens,
                      const std::vector<std::string>& titles, const HeatMapStyle& style) {
  std::size_t longest = 0;
  for (const std::string& token : tokens) longest = std::max(longest, token.size());
  const std::string gap(kGap, ' ');
  const std::string margin(longest + 1, ' ');
  const std::size_t width = 3 * tokens.size();

  std::vector<std::string> lines;
  std::string line;
  for (const std::string& title : titles)
    line += fmt::format("{} {:<{}}{}", margin, title, width - 1, gap);
  lines.push_back(line);
  for (std::size_t letter = 0; letter < longest; ++letter) {
    line.clear();
    for (std::size_t map = 0; map < titles.size(); ++map) {
      line += margin;
      for (const std::string& token : tokens) {
        const std::size_t blanks = longest - token.size();  // words stand on the map
        line += fmt::format(" {} ", letter < blanks ? ' ' : token[letter - blanks]);
      }
      line += gap;
    }
    lines.push_back(line);
  }
  for (std::size_t query = 0; query < tokens.size(); ++query) {
    line.clear();
    for (std::size_t map = 0; map < titles.size(); ++map) {
      line += fmt::format("{:>{}} ", tokens[query], longest);
      for (std::size_t key = 0; key < tokens.size(); ++key) {
        line += cell(weights(map, query, key).item<double>(), style);
      }
      line += gap;
    }
    lines.push_back(line);
  }
  std::string text;
  for (std::string& each : lines) {
    each.erase(each.find_last_not_of(' ') + 1);
    text += style.indent + each + "\n";
  }
  return text;
}

std::string heat_map_legend(const HeatMapStyle& style) {
  if (!style.colour) return "tenths of its attention, . is hidden";
  std::string text = "none ";
  for (std::size_t step = 0; step < kColours.size(); ++step) text += block(step);
  return text + " all of it";
}
