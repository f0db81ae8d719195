// SPDX-License-Identifier: Apache-2.0
// Attention weights to coloured blocks, or digits where there is no colour.
#pragma once

#include <einkern.h>

#include <string>
#include <vector>

/// Where and how the maps are drawn.
struct HeatMapStyle {
  bool colour = false;
  std::string indent = "  ";
};

/// Is standard output a terminal that wants colour (NO_COLOR unset)?
bool wants_colour();

/// Maps (head, query, key) side by side, a row for every query, under their titles; the tokens name
/// rows and, downward, columns.
std::string heat_maps(const einkern::Tensor& weights, const std::vector<std::string>& tokens,
                      const std::vector<std::string>& titles, const HeatMapStyle& style);

/// What the blocks or digits mean.
std::string heat_map_legend(const HeatMapStyle& style);
