// SPDX-License-Identifier: Apache-2.0
// A ZIP archive from pieces: local headers, members, directory, end.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "../../base/error.h"
#include "deflate.h"
#include "shown.h"
#include "zip.h"
#include "zip_format.h"

namespace einkern::io {
namespace {

using namespace zip;
using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kAlignment = 64;
constexpr std::uint64_t kDate = 0x21;  // 1980-01-01, as NumPy writes: equal content, equal bytes
constexpr std::uint64_t kMode = 0100644;

void put(Bytes& bytes, std::uint64_t value, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    bytes.push_back(static_cast<std::byte>(value >> (8 * i) & 255));
  }
}

void put(Bytes& bytes, const std::string& text) {
  for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
}

struct Written {
  std::string name;
  std::uint32_t crc = 0;
  std::uint64_t size = 0, stored = 0, local = 0;
  std::uint16_t flags = 0, method = kStored;
};

class Writer {
 public:
  Writer(const std::string& source, const ZipOptions& options)
      : source_(source), options_(options) {}

  void add(const ZipContent& content) {
    const std::string& name = content.name;
    if (name.empty() || name.size() > kMaxName || name.find('\0') != name.npos) {
      fail<IoError>(fmt::format("{}: the name '{}' has {} bytes, not 1 to {}, or a zero", source_,
                                shown(name), name.size(), kMaxName));
    }
    Written member{.name = name};
    member.crc = crc32_of(content.pieces);
    for (const auto piece : content.pieces) member.size += piece.size();
    member.stored = member.size;
    member.local = at_;
    if (std::any_of(name.begin(), name.end(), [](char c) { return c < 0; })) member.flags = kUtf8;
    Bytes deflated_bytes;
    if (options_.deflate) {
      deflated_bytes = deflated(content.pieces);
      member.method = kDeflated;
      member.stored = deflated_bytes.size();
    }
    append(local_header(member));
    if (options_.deflate) {
      append(std::move(deflated_bytes));
    } else {
      for (const auto piece : content.pieces) append(piece);
    }
    members_.push_back(std::move(member));
  }

  ZipParts finish() {
    const std::uint64_t directory = at_;
    for (const Written& member : members_) append(central_header(member));
    append(end_records(directory));
    return std::move(parts_);
  }

 private:
  bool is_big(std::uint64_t value) const { return value >= options_.size_limit; }
  /// A 32-bit field, which says nothing when the number is in the ZIP64 field.
  void put_size(Bytes& bytes, std::uint64_t value, bool big) const {
    put(bytes, big ? kBig : value, 4);
  }

  void append(std::span<const std::byte> piece) {
    parts_.pieces.push_back(piece);
    at_ += piece.size();
  }
  void append(Bytes&& bytes) {
    parts_.owned.push_back(std::move(bytes));
    append(std::span<const std::byte>(parts_.owned.back()));
  }

  /// What both headers of a member say: from the flags to the sizes.
  void put_facts(Bytes& bytes, const Written& member, bool big_size, bool big_stored) const {
    put(bytes, member.flags, 2);
    put(bytes, member.method, 2);
    put(bytes, kDate << 16, 4);
    put(bytes, member.crc, 4);
    put_size(bytes, member.stored, big_stored);
    put_size(bytes, member.size, big_size);
    put(bytes, member.name.size(), 2);
  }

  Bytes local_header(const Written& member) const {
    // A local ZIP64 field holds both sizes.
    const bool big = is_big(member.size) || is_big(member.stored);
    Bytes extra;
    if (big) {
      put(extra, kZip64Field, 2);
      put(extra, 16, 2);
      put(extra, member.size, 8);
      put(extra, member.stored, 8);
    }
    const std::uint64_t end = at_ + kLocalBytes + member.name.size() + extra.size();
    if (!options_.deflate && end % kAlignment != 0) {
      std::uint64_t pad = kAlignment - end % kAlignment;
      if (pad < 6) pad += kAlignment;  // the head of the field and its alignment
      put(extra, kAlignmentField, 2);
      put(extra, pad - 4, 2);
      put(extra, kAlignment, 2);
      extra.resize(extra.size() + pad - 6);
    }
    Bytes bytes;
    put(bytes, kLocal, 4);
    put(bytes, big ? 45 : 20, 2);
    put_facts(bytes, member, big, big);
    put(bytes, extra.size(), 2);
    put(bytes, member.name);
    bytes.insert(bytes.end(), extra.begin(), extra.end());
    return bytes;
  }

  Bytes central_header(const Written& member) const {
    Bytes numbers;
    for (const std::uint64_t value : {member.size, member.stored, member.local}) {
      if (is_big(value)) put(numbers, value, 8);
    }
    Bytes bytes;
    put(bytes, kCentral, 4);
    put(bytes, 3 << 8 | 45, 2);  // made on Unix
    put(bytes, numbers.empty() ? 20 : 45, 2);
    put_facts(bytes, member, is_big(member.size), is_big(member.stored));
    put(bytes, numbers.empty() ? 0 : numbers.size() + 4, 2);
    put(bytes, 0, 2 + 2 + 2);  // comment, disk, internal attributes
    put(bytes, kMode << 16, 4);
    put_size(bytes, member.local, is_big(member.local));
    put(bytes, member.name);
    if (!numbers.empty()) {
      put(bytes, kZip64Field, 2);
      put(bytes, numbers.size(), 2);
      bytes.insert(bytes.end(), numbers.begin(), numbers.end());
    }
    return bytes;
  }

  Bytes end_records(std::uint64_t directory) const {
    const std::uint64_t size = at_ - directory, count = members_.size();
    const bool many = count >= options_.count_limit;
    Bytes bytes;
    if (many || is_big(size) || is_big(directory)) {
      put(bytes, kEnd64, 4);
      put(bytes, kEnd64Bytes - 12, 8);
      put(bytes, 3 << 8 | 45, 2);
      put(bytes, 45, 2);
      put(bytes, 0, 4 + 4);  // disks
      put(bytes, count, 8);
      put(bytes, count, 8);
      put(bytes, size, 8);
      put(bytes, directory, 8);
      put(bytes, kLocator, 4);
      put(bytes, 0, 4);
      put(bytes, at_, 8);
      put(bytes, 1, 4);
    }
    put(bytes, kEnd, 4);
    put(bytes, 0, 2 + 2);
    put(bytes, many ? 0xffff : count, 2);
    put(bytes, many ? 0xffff : count, 2);
    put_size(bytes, size, is_big(size));
    put_size(bytes, directory, is_big(directory));
    put(bytes, 0, 2);
    return bytes;
  }

  const std::string& source_;
  const ZipOptions& options_;
  ZipParts parts_;
  std::vector<Written> members_;
  std::uint64_t at_ = 0;
};

}  // namespace

ZipParts format_zip(const std::vector<ZipContent>& contents, const std::string& source,
                    const ZipOptions& options) {
  Writer writer(source, options);
  for (const ZipContent& content : contents) writer.add(content);
  return writer.finish();
}

}  // namespace einkern::io
