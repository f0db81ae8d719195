// SPDX-License-Identifier: Apache-2.0
// The directory of a ZIP archive: every number is checked before it is used.
#include "zip.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "../../base/error.h"
#include "deflate.h"
#include "shown.h"
#include "zip_format.h"

namespace einkern::io {
namespace {

using namespace zip;

class DirectoryReader {
 public:
  DirectoryReader(std::span<const std::byte> file, const std::string& source)
      : file_(file), source_(source) {}

  std::vector<ZipMember> read() {
    find_directory();
    std::vector<ZipMember> members;
    std::uint64_t at = directory_;
    for (std::uint64_t i = 0; i < count_; ++i) at = read_entry(at, members);
    if (at != directory_end_) {
      fail_archive(
          fmt::format("its directory has {} bytes after its last entry", directory_end_ - at));
    }
    check_overlaps();
    return members;
  }

 private:
  [[noreturn]] void fail_archive(const std::string& fact) const {
    fail<IoError>(fmt::format("{}: {}", source_, fact));
  }
  [[noreturn]] void fail_member(std::string_view name, const std::string& fact) const {
    fail<IoError>(fmt::format("{}: member '{}': {}", source_, shown(name), fact));
  }

  /// A number of so many bytes; the caller has checked that they are there.
  std::uint64_t number(std::uint64_t at, std::size_t bytes) const {
    std::uint64_t value = 0;
    for (std::size_t i = bytes; i-- > 0;) {
      value = value << 8 | std::to_integer<std::uint64_t>(file_[at + i]);
    }
    return value;
  }
  std::string_view text(std::uint64_t at, std::uint64_t bytes) const {
    return {reinterpret_cast<const char*>(file_.data()) + at, bytes};
  }
  bool has_signature(std::uint64_t at, std::uint32_t signature) const {
    return number(at, 4) == signature;
  }

  /// Where the end record begins: it is followed by a comment that ends with the file.
  std::uint64_t find_end_record() const {
    if (file_.size() < 4 || (!has_signature(0, kLocal) && !has_signature(0, kEnd))) {
      fail_archive("not a zip archive: it does not begin with PK");
    }
    const std::uint64_t longest = kEndBytes + kMaxComment;
    const std::uint64_t last = file_.size() < kEndBytes ? 0 : file_.size() - kEndBytes;
    const std::uint64_t first = file_.size() > longest ? file_.size() - longest : 0;
    for (std::uint64_t at = last + 1; at-- > first && file_.size() >= kEndBytes;) {
      if (has_signature(at, kEnd) && at + kEndBytes + number(at + 20, 2) == file_.size()) {
        return at;
      }
    }
    fail_archive("the archive has no end record; it is cut off or damaged");
  }

  void find_directory() {
    std::uint64_t end = find_end_record();
    std::uint64_t disk = number(end + 4, 2), first_disk = number(end + 6, 2);
    std::uint64_t here = number(end + 8, 2);
    count_ = number(end + 10, 2);
    std::uint64_t bytes = number(end + 12, 4);
    directory_ = number(end + 16, 4);
    if (end >= kLocatorBytes && has_signature(end - kLocatorBytes, kLocator)) {
      const std::uint64_t locator = end - kLocatorBytes;
      const std::uint64_t end64 = number(locator + 8, 8);
      if (number(locator + 4, 4) != 0 || number(locator + 16, 4) > 1) {
        fail_archive("archives in several files are not supported");
      }
      if (locator < kEnd64Bytes || end64 > locator - kEnd64Bytes || !has_signature(end64, kEnd64)) {
        fail_archive("the archive has no ZIP64 end record where it should be");
      }
      end = end64;
      disk = number(end + 16, 4), first_disk = number(end + 20, 4);
      here = number(end + 24, 8);
      count_ = number(end + 32, 8);
      bytes = number(end + 40, 8);
      directory_ = number(end + 48, 8);
    }
    if (disk != 0 || first_disk != 0 || here != count_) {
      fail_archive("archives in several files are not supported");
    }
    if (directory_ > end || bytes != end - directory_) {
      fail_archive(
          fmt::format("its directory, {} bytes from {} on, does not end where the end "
                      "record begins, at {}",
                      bytes, directory_, end));
    }
    directory_end_ = end;
    if (count_ > bytes / kCentralBytes) {
      fail_archive(fmt::format("its directory of {} bytes cannot hold {} members", bytes, count_));
    }
  }

  struct Entry {
    std::uint64_t size = 0, stored = 0, local = 0;
  };

  /// Numbers of an entry that stand in its ZIP64 field.
  void read_zip64(Entry& entry, std::uint64_t at, std::uint64_t bytes,
                  std::string_view name) const {
    const bool wants[] = {entry.size == kBig, entry.stored == kBig, entry.local == kBig};
    std::uint64_t* const numbers[] = {&entry.size, &entry.stored, &entry.local};
    if (!wants[0] && !wants[1] && !wants[2]) return;
    const std::uint64_t end = at + bytes;
    while (end - at >= 4) {
      const std::uint64_t id = number(at, 2), length = number(at + 2, 2);
      at += 4;
      if (length > end - at) break;
      if (id == kZip64Field) {
        std::uint64_t from = at;
        for (int i = 0; i < 3; ++i) {
          if (!wants[i]) continue;
          if (at + length - from < 8) fail_member(name, "its ZIP64 field is too short");
          *numbers[i] = number(from, 8);
          from += 8;
        }
        return;
      }
      at += length;
    }
    fail_member(name, "its ZIP64 field is missing");
  }

  std::uint64_t read_entry(std::uint64_t at, std::vector<ZipMember>& members) {
    if (directory_end_ - at < kCentralBytes || !has_signature(at, kCentral)) {
      fail_archive(fmt::format("entry {} of its directory is damaged", members.size()));
    }
    const std::uint64_t flags = number(at + 8, 2), method = number(at + 10, 2);
    const std::uint64_t name_bytes = number(at + 28, 2), extra = number(at + 30, 2);
    const std::uint64_t next = at + kCentralBytes + name_bytes + extra + number(at + 32, 2);
    if (next > directory_end_) {
      fail_archive(fmt::format("entry {} of its directory is damaged", members.size()));
    }
    const std::string_view name = text(at + kCentralBytes, name_bytes);
    if (name.empty() || name_bytes > kMaxName || name.find('\0') != name.npos) {
      fail_archive(fmt::format("the name of member {} has {} bytes, not 1 to {}, or a zero",
                               members.size(), name_bytes, kMaxName));
    }
    if (!names_.insert(name).second) fail_member(name, "stands twice in the archive");
    if ((flags & kEncrypted) != 0) fail_member(name, "encrypted members are not supported");
    if (method != kStored && method != kDeflated) {
      fail_member(name, fmt::format("method {} is not supported; the choices are stored and "
                                    "deflated",
                                    method));
    }
    if (number(at + 34, 2) != 0 && number(at + 34, 2) != 0xffff) {
      fail_archive("archives in several files are not supported");
    }
    Entry entry{number(at + 24, 4), number(at + 20, 4), number(at + 42, 4)};
    read_zip64(entry, at + kCentralBytes + name_bytes, extra, name);

    ZipMember member;
    member.name = name;
    member.is_deflated = method == kDeflated;
    member.crc = static_cast<std::uint32_t>(number(at + 16, 4));
    member.size = entry.size;
    member.stored = find_data(entry, flags, method, name);
    const bool possible = member.is_deflated ? entry.size <= max_inflated(member.stored.size())
                                             : entry.size == member.stored.size();
    if (!possible) {
      fail_member(name, fmt::format("{} bytes cannot hold the {} that it claims", entry.stored,
                                    entry.size));
    }
    members.push_back(std::move(member));
    return next;
  }

  /// The bytes of a member, behind its local header.
  std::span<const std::byte> find_data(const Entry& entry, std::uint64_t flags,
                                       std::uint64_t method, std::string_view name) {
    const std::uint64_t at = entry.local;
    if (at > directory_ || directory_ - at < kLocalBytes || !has_signature(at, kLocal)) {
      fail_member(name, fmt::format("there is no member at byte {}", at));
    }
    const std::uint64_t name_bytes = number(at + 26, 2);
    const std::uint64_t begin = at + kLocalBytes + name_bytes + number(at + 28, 2);
    if (begin > directory_ || text(at + kLocalBytes, name_bytes) != name ||
        number(at + 6, 2) != flags || number(at + 8, 2) != method) {
      fail_member(name, "the member and the directory disagree about it");
    }
    if (entry.stored > directory_ - begin) {
      fail_member(name, fmt::format("its {} bytes reach beyond the members", entry.stored));
    }
    places_.push_back({at, begin + entry.stored, std::string(name)});
    return file_.subspan(begin, entry.stored);
  }

  void check_overlaps() {
    std::sort(places_.begin(), places_.end(),
              [](const Place& a, const Place& b) { return a.begin < b.begin; });
    for (std::size_t i = 1; i < places_.size(); ++i) {
      if (places_[i].begin < places_[i - 1].end) {
        fail_archive(fmt::format("members '{}' and '{}' overlap", shown(places_[i - 1].name),
                                 shown(places_[i].name)));
      }
    }
  }

  struct Place {
    std::uint64_t begin = 0, end = 0;
    std::string name;
  };

  std::span<const std::byte> file_;
  const std::string& source_;
  std::uint64_t directory_ = 0, directory_end_ = 0, count_ = 0;
  std::set<std::string_view> names_;  // in the file
  std::vector<Place> places_;
};

void check_crc(const ZipMember& member, std::span<const std::byte> bytes,
               const std::string& source) {
  const std::span<const std::byte> pieces[] = {bytes};
  const std::uint32_t crc = crc32_of(pieces);
  if (crc != member.crc) {
    fail<IoError>(fmt::format("{}: its check sum is {:08x}, not {:08x}: it is damaged", source, crc,
                              member.crc));
  }
}

}  // namespace

std::vector<ZipMember> parse_zip(std::span<const std::byte> file, const std::string& source) {
  return DirectoryReader(file, source).read();
}

void read_member(const ZipMember& member, std::span<std::byte> to, const std::string& source) {
  EINKERN_CHECK(to.size() == member.size);
  if (member.is_deflated) {
    inflate_into(to, member.stored, source);
  } else {
    std::copy(member.stored.begin(), member.stored.end(), to.begin());
  }
  check_crc(member, to, source);
}

void check_stored(const ZipMember& member, const std::string& source) {
  check_crc(member, member.stored, source);
}

}  // namespace einkern::io
