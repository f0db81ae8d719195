// SPDX-License-Identifier: Apache-2.0
// The header of a .npy file: a strict reader for the one Python literal it holds, and its writer.
#include "npy_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "../../base/error.h"
#include "shown.h"

namespace einkern::io {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kMagic = "\x93NUMPY"sv;
constexpr std::size_t kMaxNpyHeader = 1 << 20;  // as every text that einkern reads

struct NpyType {
  std::string_view code;
  DType dtype;
  std::size_t bytes;
};
constexpr NpyType kNpyTypes[] = {
    {"b1", DType::boolean, 1}, {"i1", DType::i8, 1},  {"i2", DType::i16, 2}, {"i4", DType::i32, 4},
    {"i8", DType::i64, 8},     {"f2", DType::f32, 2}, {"f4", DType::f32, 4}, {"f8", DType::f64, 8},
    {"f2", DType::f16, 2}};  // written only: the first f2 is what a file is read as

/// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`, the keys in any order.
class DictReader {
 public:
  DictReader(std::string_view text, const std::string& source) : text_(text), source_(source) {}

  void read(NpyHeader& header) {
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !descr_) {
        descr_ = descr();
      } else if (key == "fortran_order" && !fortran_order_) {
        fortran_order_ = truth();
      } else if (key == "shape" && !shape_) {
        shape_ = shape();
      } else {
        fail_header(fmt::format("does not expect the key '{}' here", shown(key)));
      }
      if (!accept(',') && peek() != '}') fail_header("has no ',' or '}' after a value");
    }
    if (peek() != 0) fail_header("has something after its '}'");
    if (!descr_ || !fortran_order_ || !shape_) {
      fail_header("lacks one of 'descr', 'fortran_order', 'shape'");
    }
    set_item_type(header);
    header.fortran_order = *fortran_order_;
    header.shape = *shape_;
  }

 private:
  [[noreturn]] void fail_header(std::string_view fact) const {
    fail<IoError>(fmt::format("{}: the header {}: {}", source_, fact, shown(text_)));
  }

  /// The next character that is no blank, 0 at the end.
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail_header(fmt::format("has no '{}' at character {}", c, at_));
  }

  std::string_view quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') {
      fail_header(fmt::format("has no quoted name at character {}", at_));
    }
    const std::size_t begin = ++at_;
    at_ = text_.find(quote, begin);
    if (at_ == text_.npos) fail_header("has a quoted name without an end");
    return text_.substr(begin, at_++ - begin);
  }

  /// A quoted type, or the whole list of a structured one (which is refused later, by its text).
  std::string_view descr() {
    if (peek() != '[') return quoted();
    const std::size_t begin = at_;
    int depth = 0;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '[') ++depth;
      if (text_[at_] == ']' && --depth == 0) return text_.substr(begin, ++at_ - begin);
    }
    fail_header("has a list without an end");
  }

  bool truth() {
    peek();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    }
    fail_header("has neither True nor False for 'fortran_order'");
  }

  Shape shape() {
    expect('(');
    Shape sizes;
    while (!accept(')')) {
      sizes.push_back(size());
      const bool comma = accept(',');
      // (3) is a number in Python; a tuple of one is (3,).
      if (!comma && (peek() != ')' || sizes.size() == 1)) {
        fail_header("has a 'shape' that is not a tuple");
      }
    }
    return sizes;
  }

  std::int64_t size() {
    const bool negative = accept('-');
    if (peek() < '0' || peek() > '9') fail_header("has a 'shape' that is not a tuple of sizes");
    std::int64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, text_[at_] - '0', &value)) {
        fail_header("has a size beyond 64 bits");
      }
    }
    if (negative) fail_header("has a negative size");
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // as Python 2 printed long integers
    return value;
  }

  void set_item_type(NpyHeader& header) const {
    const std::string_view descr = *descr_;
    const char order = descr.empty() ? '\0' : descr.front();
    if (order == '<' || order == '>' || order == '|' || order == '=') {
      for (const NpyType& type : kNpyTypes) {
        if (descr.substr(1) != type.code || (order == '|' && type.bytes > 1)) continue;
        header.dtype = type.dtype;
        header.item_bytes = type.bytes;
        header.big_endian = order == '>';
        return;
      }
    }
    fail<IoError>(fmt::format(
        "{}: dtype '{}' is not supported; the choices are b1, i1, i2, i4, i8, f2, f4, f8", source_,
        shown(descr)));
  }

  std::string_view text_;
  const std::string& source_;
  std::size_t at_ = 0;
  std::optional<std::string_view> descr_;
  std::optional<bool> fortran_order_;
  std::optional<Shape> shape_;
};

/// Bytes of the data; IoError when they do not fit i64.
std::size_t data_bytes(const NpyHeader& header, const std::string& source) {
  auto bytes = static_cast<std::int64_t>(header.item_bytes);
  bool overflow = false, empty = false;
  for (const std::int64_t size : header.shape) {
    empty = empty || size == 0;
    overflow = overflow || __builtin_mul_overflow(bytes, size, &bytes);
  }
  if (empty) return 0;
  // Half-precision items become twice as wide in memory.
  if (overflow || bytes > std::numeric_limits<std::int64_t>::max() / 2) {
    fail<IoError>(fmt::format("{}: shape {} has more bytes than 64 bits can count", source,
                              to_string(header.shape)));
  }
  return static_cast<std::size_t>(bytes);
}

std::uint32_t little_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

}  // namespace

NpyHeader parse_npy_header(std::span<const std::byte> file, const std::string& source) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(kMagic)) {
    fail<IoError>(fmt::format("{}: not an npy file: it does not begin with \\x93NUMPY", source));
  }
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : -1;
  };
  const int major = byte(6), minor = byte(7);
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  const std::size_t begin = kMagic.size() + 2 + length_bytes;
  if (major != -1 && minor != -1 && (major < 1 || major > 3 || minor != 0)) {
    fail<IoError>(
        fmt::format("{}: npy version {}.{} is not supported; the choices are 1.0, 2.0, 3.0", source,
                    major, minor));
  }
  if (text.size() < begin) {
    fail<IoError>(
        fmt::format("{}: the file ends inside its header, after {} bytes", source, text.size()));
  }
  const std::size_t length = little_endian(text.substr(begin - length_bytes, length_bytes));
  if (length > kMaxNpyHeader) {
    fail<IoError>(
        fmt::format("{}: the header has {} bytes, more than {}", source, length, kMaxNpyHeader));
  }
  if (text.size() - begin < length) {
    fail<IoError>(fmt::format("{}: the file ends inside its header, after {} of {} bytes", source,
                              text.size(), begin + length));
  }

  NpyHeader header;
  DictReader(text.substr(begin, length), source).read(header);
  header.data_offset = begin + length;
  header.data_bytes = data_bytes(header, source);
  const std::size_t present = text.size() - header.data_offset;
  if (present != header.data_bytes) {
    fail<IoError>(fmt::format("{}: {} bytes of data where shape {} of {}-byte items needs {}",
                              source, present, to_string(header.shape), header.item_bytes,
                              header.data_bytes));
  }
  return header;
}

std::string format_npy_header(DType dtype, const Shape& shape, const std::string& source) {
  if (dtype == DType::bf16) {
    fail<IoError>(
        fmt::format("{}: an npy file cannot hold bf16; convert it with astype first", source));
  }
  const auto* type = std::find_if(std::begin(kNpyTypes), std::end(kNpyTypes), [&](const auto& t) {
    return t.dtype == dtype && t.bytes == size_of(dtype);
  });
  EINKERN_CHECK(type != std::end(kNpyTypes));
  std::string dict = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': {}, }}",
                                 type->bytes == 1 ? '|' : '<', type->code, to_string(shape));
  // NumPy leaves room for the first size to grow to 21 digits in place.
  if (!shape.empty()) dict.append(21 - fmt::formatted_size("{}", shape.front()), ' ');

  const auto padded = [&](std::size_t before) {
    const std::size_t used = before + dict.size() + 1;
    return dict.size() + 1 + (64 - used % 64);
  };
  const bool short_length = padded(10) <= std::numeric_limits<std::uint16_t>::max();
  const std::size_t length_bytes = short_length ? 2 : 4;
  const std::size_t length = padded(8 + length_bytes);
  std::string header(kMagic);
  header += short_length ? '\1' : '\2';
  header += '\0';
  for (std::size_t i = 0; i < length_bytes; ++i) {
    header += static_cast<char>(length >> (8 * i) & 255);
  }
  dict.resize(length - 1, ' ');
  return header + dict + '\n';
}

}  // namespace einkern::io
