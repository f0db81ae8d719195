// SPDX-License-Identifier: Apache-2.0
// The header of a safetensors file: read event by event, so that a key that stands twice is seen
// and nothing is stored that does not belong there.
#include "safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>

#include "../../base/error.h"
#include "shown.h"

namespace einkern::io {
namespace {

using nlohmann::json;

constexpr std::size_t kSizeBytes = 8;
constexpr std::size_t kMaxSafetensorsHeader =
    100'000'000;  // the limit of the format's own implementation
constexpr std::string_view kMetadata = "__metadata__";

struct SafetensorsType {
  std::string_view code;
  DType dtype;
};
constexpr SafetensorsType kSafetensorsTypes[] = {
    {"BOOL", DType::boolean}, {"I8", DType::i8},   {"I16", DType::i16},
    {"I32", DType::i32},      {"I64", DType::i64}, {"F16", DType::f16},
    {"BF16", DType::bf16},    {"F32", DType::f32}, {"F64", DType::f64}};

std::string_view code_of(DType dtype) {
  const auto* type = std::find_if(std::begin(kSafetensorsTypes), std::end(kSafetensorsTypes),
                                  [&](const SafetensorsType& t) { return t.dtype == dtype; });
  EINKERN_CHECK(type != std::end(kSafetensorsTypes));
  return type->code;
}

/// Takes the events of the JSON reader and builds the header from them.
class HeaderReader final : public json::json_sax_t {
 public:
  HeaderReader(SafetensorsHeader& header, const std::string& source)
      : header_(header), source_(source) {}

  bool null() override { return refuse("null"); }
  bool boolean(bool value) override { return refuse(value ? "true" : "false"); }
  bool number_float(double, const std::string& text) override { return refuse(text); }
  bool binary(json::binary_t&) override { return refuse("binary data"); }

  bool number_integer(std::int64_t value) override {
    if (place_ == Place::numbers) {
      fail_here(fmt::format("has the negative number {} in its '{}'", value, field_));
    }
    return refuse(std::to_string(value));
  }
  bool number_unsigned(std::uint64_t value) override {
    if (place_ != Place::numbers) return refuse(std::to_string(value));
    if (value > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
      fail_here(fmt::format("has a number beyond 64 bits in its '{}'", field_));
    }
    if (field_ == "shape") {
      entry_.shape.push_back(static_cast<std::int64_t>(value));
    } else {
      if (offsets_ < 2) (offsets_ == 0 ? entry_.begin : entry_.end) = value;
      ++offsets_;
    }
    return true;
  }

  bool string(std::string& text) override {
    if (place_ == Place::metadata) {
      header_.metadata.emplace(field_, text);
    } else if (place_ == Place::tensor && field_ == "dtype") {
      const auto* type = std::find_if(std::begin(kSafetensorsTypes), std::end(kSafetensorsTypes),
                                      [&](const SafetensorsType& t) { return t.code == text; });
      if (type == std::end(kSafetensorsTypes)) {
        fail<IoError>(
            fmt::format("{}: tensor '{}': dtype '{}' is not supported; the choices are "
                        "BOOL, I8, I16, I32, I64, F16, BF16, F32, F64",
                        source_, shown(entry_.name), shown(text)));
      }
      entry_.dtype = type->dtype;
    } else {
      return refuse("the text '" + shown(text) + "'");
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (place_ == Place::outside) {
      place_ = Place::file;
    } else if (place_ == Place::file) {
      place_ = entry_.name == kMetadata ? Place::metadata : Place::tensor;
    } else {
      return refuse("an object");
    }
    fields_.clear();
    return true;
  }
  bool key(std::string& text) override {
    if (place_ == Place::file) {
      if (!names_.insert(text).second) {
        fail<IoError>(fmt::format("{}: '{}' stands twice in the header", source_, shown(text)));
      }
      entry_ = {};
      entry_.name = text;
      offsets_ = 0;
      return true;
    }
    if (place_ == Place::tensor && text != "dtype" && text != "shape" && text != "data_offsets") {
      fail_here(fmt::format("has the unknown key '{}'", shown(text)));
    }
    if (!fields_.insert(text).second) fail_here(fmt::format("has the key '{}' twice", shown(text)));
    field_ = text;
    return true;
  }
  bool end_object() override {
    if (place_ == Place::tensor) {
      for (const char* field : {"dtype", "shape", "data_offsets"}) {
        if (fields_.count(field) == 0) fail_here(fmt::format("lacks the key '{}'", field));
      }
      header_.entries.push_back(entry_);
    }
    place_ = place_ == Place::file ? Place::outside : Place::file;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::tensor || field_ == "dtype") return refuse("an array");
    place_ = Place::numbers;
    return true;
  }
  bool end_array() override {
    if (field_ == "data_offsets" && offsets_ != 2) {
      fail_here(fmt::format("has {} numbers in its 'data_offsets', which are two", offsets_));
    }
    place_ = Place::tensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const json::exception&) override {
    fail<IoError>(fmt::format("{}: the header is no JSON from byte {} on", source_, position));
  }

 private:
  enum class Place { outside, file, metadata, tensor, numbers };

  [[noreturn]] void fail_here(const std::string& fact) const {
    const bool metadata = entry_.name == kMetadata;
    fail<IoError>(fmt::format(
        "{}: {} {}", source_,
        metadata ? std::string(kMetadata) : fmt::format("tensor '{}'", shown(entry_.name)), fact));
  }
  /// A value where none of its kind belongs.
  [[noreturn]] bool refuse(const std::string& value) const {
    switch (place_) {
      case Place::outside:
        fail<IoError>(fmt::format("{}: the header is {}, not an object", source_, shown(value)));
      case Place::file:
        fail_here(fmt::format("is {}, not an object", shown(value)));
      case Place::metadata:
        fail_here(fmt::format("has {} for '{}', not a text", shown(value), shown(field_)));
      case Place::tensor:
        fail_here(fmt::format("has {} for its '{}'", shown(value), field_));
      case Place::numbers:
        break;
    }
    fail_here(fmt::format("has {} in its '{}'", shown(value), field_));
  }

  SafetensorsHeader& header_;
  const std::string& source_;
  Place place_ = Place::outside;
  SafetensorsEntry entry_;  // the one that is read now
  std::size_t offsets_ = 0;
  std::string field_;
  std::set<std::string> names_, fields_;
};

/// Bytes that the shape needs; nothing when they do not fit i64.
std::optional<std::size_t> bytes_of(const SafetensorsEntry& entry) {
  auto bytes = static_cast<std::int64_t>(size_of(entry.dtype));
  bool overflow = false, empty = false;
  for (const std::int64_t size : entry.shape) {
    empty = empty || size == 0;
    overflow = overflow || __builtin_mul_overflow(bytes, size, &bytes);
  }
  if (empty) return 0;
  if (overflow) return std::nullopt;
  return static_cast<std::size_t>(bytes);
}

void check_entry(const SafetensorsEntry& entry, std::size_t data_bytes, const std::string& source) {
  const auto fail_entry = [&](const std::string& fact) {
    fail<IoError>(fmt::format("{}: tensor '{}': {}", source, shown(entry.name), fact));
  };
  if (entry.begin > entry.end || entry.end > data_bytes) {
    fail_entry(fmt::format("data_offsets [{}, {}] do not lie in the {} bytes of data", entry.begin,
                           entry.end, data_bytes));
  }
  const std::optional<std::size_t> bytes = bytes_of(entry);
  if (!bytes) {
    fail_entry(
        fmt::format("shape {} has more bytes than 64 bits can count", to_string(entry.shape)));
  }
  if (*bytes != entry.end - entry.begin) {
    fail_entry(fmt::format("shape {} of {} needs {} bytes, data_offsets [{}, {}] hold {}",
                           to_string(entry.shape), code_of(entry.dtype), *bytes, entry.begin,
                           entry.end, entry.end - entry.begin));
  }
}

/// Every byte of the data belongs to exactly one tensor; `entries` are in the order of their data.
void check_tiling(const std::vector<SafetensorsEntry>& entries, std::size_t data_bytes,
                  const std::string& source) {
  const auto fail_hole = [&](std::size_t from, std::size_t to) {
    fail<IoError>(
        fmt::format("{}: bytes {} to {} of the data belong to no tensor", source, from, to));
  };
  std::size_t at = 0;
  const SafetensorsEntry* before = nullptr;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin < at) {
      fail<IoError>(fmt::format("{}: tensors '{}' [{}, {}] and '{}' [{}, {}] overlap", source,
                                shown(before->name), before->begin, before->end, shown(entry.name),
                                entry.begin, entry.end));
    }
    if (entry.begin > at) fail_hole(at, entry.begin);
    at = entry.end;
    before = &entry;
  }
  if (at != data_bytes) fail_hole(at, data_bytes);
}

std::string quoted(const std::string& text, const std::string& source) {
  try {
    return json(text).dump();
  } catch (const json::exception&) {
    fail<IoError>(fmt::format("{}: '{}' is no UTF-8", source, shown(text)));
  }
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file,
                                           const std::string& source) {
  if (file.size() < kSizeBytes) {
    fail<IoError>(fmt::format("{}: not a safetensors file: {} bytes, which are too few", source,
                              file.size()));
  }
  std::uint64_t length = 0;
  for (std::size_t i = kSizeBytes; i-- > 0;) {
    length = length << 8 | std::to_integer<std::uint64_t>(file[i]);
  }
  if (length > kMaxSafetensorsHeader) {
    fail<IoError>(fmt::format("{}: not a safetensors file: a header of {} bytes, more than {}",
                              source, length, kMaxSafetensorsHeader));
  }
  if (length > file.size() - kSizeBytes) {
    fail<IoError>(fmt::format("{}: the file ends inside its header, after {} of {} bytes", source,
                              file.size(), kSizeBytes + length));
  }
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + kSizeBytes, length);
  if (!text.starts_with('{')) {
    fail<IoError>(fmt::format("{}: the header does not begin with '{{'", source));
  }

  SafetensorsHeader header;
  HeaderReader reader(header, source);
  json::sax_parse(text, &reader);
  header.data_offset = kSizeBytes + length;
  const std::size_t data_bytes = file.size() - header.data_offset;
  for (const SafetensorsEntry& entry : header.entries) check_entry(entry, data_bytes, source);
  std::stable_sort(header.entries.begin(), header.entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  check_tiling(header.entries, data_bytes, source);
  return header;
}

std::string format_safetensors_header(const std::vector<SafetensorsEntry>& entries,
                                      const std::map<std::string, std::string>& metadata,
                                      const std::string& source) {
  std::string text = "{";
  const auto begin_item = [&](const std::string& name) {
    if (text.back() != '{') text += ',';
    text += quoted(name, source) + ":";
  };
  if (!metadata.empty()) {
    begin_item(std::string(kMetadata));
    text += '{';
    for (const auto& [key, value] : metadata) {
      begin_item(key);
      text += quoted(value, source);
    }
    text += '}';
  }
  for (const SafetensorsEntry& entry : entries) {
    if (entry.name == kMetadata) {
      fail<IoError>(fmt::format("{}: no tensor may be called '{}'", source, kMetadata));
    }
    begin_item(entry.name);
    text += fmt::format(R"({{"dtype":"{}","shape":[)", code_of(entry.dtype));
    for (std::size_t axis = 0; axis < entry.shape.size(); ++axis) {
      text += fmt::format("{}{}", axis == 0 ? "" : ",", entry.shape[axis]);
    }
    text += fmt::format(R"(],"data_offsets":[{},{}]}})", entry.begin, entry.end);
  }
  text += '}';
  constexpr std::size_t kAlignment = 64;
  text.resize((kSizeBytes + text.size() + kAlignment - 1) / kAlignment * kAlignment - kSizeBytes,
              ' ');
  if (text.size() > kMaxSafetensorsHeader) {
    fail<IoError>(fmt::format("{}: the header would have {} bytes, more than {}", source,
                              text.size(), kMaxSafetensorsHeader));
  }
  std::string header;
  for (std::size_t i = 0; i < kSizeBytes; ++i) {
    header += static_cast<char>(text.size() >> (8 * i) & 255);
  }
  return header + text;
}

}  // namespace einkern::io
