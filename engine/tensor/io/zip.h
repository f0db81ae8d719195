// SPDX-License-Identifier: Apache-2.0
// ZIP archives: the directory of a file read with suspicion, and files put together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

namespace einkern::io {

/// A member of an archive, as its directory says; `stored` are its bytes in the file.
struct ZipMember {
  std::string name;
  bool is_deflated = false;
  std::uint32_t crc = 0;
  std::size_t size = 0;  // of the member itself
  std::span<const std::byte> stored;
};

/// The members of a whole file, in the order of its directory. ZIP64 is read. IoError, beginning
/// with `source`, for anything else: encrypted members, archives in several files, methods other
/// than stored and deflated, members that stand twice, overlap, or claim more than their bytes can
/// hold. Check sums are not looked at. Source: PKWARE, "APPNOTE.TXT - .ZIP File Format
/// Specification", 6.3.10.
std::vector<ZipMember> parse_zip(std::span<const std::byte> file, const std::string& source);

/// The bytes of a member, if it is stored, or of its inflated copy in `to`. IoError when the check
/// sum disagrees.
void read_member(const ZipMember& member, std::span<std::byte> to, const std::string& source);
void check_stored(const ZipMember& member, const std::string& source);

/// What goes into an archive.
struct ZipContent {
  std::string name;
  std::vector<std::span<const std::byte>> pieces;  // one after the other
};

struct ZipOptions {
  bool deflate = false;
  // Numbers from here on go into the 64-bit fields of ZIP64; tests make them small.
  std::uint64_t size_limit = 0xffffffff;
  std::uint64_t count_limit = 0xffff;
};

/// An archive in pieces, some of which are the caller's and must outlive it.
struct ZipParts {
  std::deque<std::vector<std::byte>> owned;
  std::vector<std::span<const std::byte>> pieces;
};

/// An archive of these members. Stored ones begin at multiples of 64 bytes, so that they can be
/// mapped. IoError, beginning with `source`, for names that are empty or too long.
ZipParts format_zip(const std::vector<ZipContent>& contents, const std::string& source,
                    const ZipOptions& options = {});

}  // namespace einkern::io
