// SPDX-License-Identifier: Apache-2.0
// Numbers of the ZIP format, for its reader and its writer.
#pragma once

#include <cstdint>

namespace einkern::io::zip {

// Signatures, as little-endian numbers, and the fixed parts of the records they begin.
inline constexpr std::uint32_t kLocal = 0x04034b50;
inline constexpr std::uint64_t kLocalBytes = 30;
inline constexpr std::uint32_t kCentral = 0x02014b50;
inline constexpr std::uint64_t kCentralBytes = 46;
inline constexpr std::uint32_t kEnd = 0x06054b50;
inline constexpr std::uint64_t kEndBytes = 22;
inline constexpr std::uint32_t kEnd64 = 0x06064b50;
inline constexpr std::uint64_t kEnd64Bytes = 56;
inline constexpr std::uint32_t kLocator = 0x07064b50;
inline constexpr std::uint64_t kLocatorBytes = 20;

inline constexpr std::uint16_t kZip64Field = 0x0001;
inline constexpr std::uint16_t kAlignmentField = 0xd935;  // as zipalign of Android writes it
inline constexpr std::uint64_t kBig = 0xffffffff;         // the number stands in the ZIP64 field

inline constexpr std::uint16_t kStored = 0, kDeflated = 8;
inline constexpr std::uint16_t kEncrypted = 1 | 1 << 6 | 1 << 13, kUtf8 = 1 << 11;

inline constexpr std::uint64_t kMaxComment = 0xffff;
inline constexpr std::uint64_t kMaxName = 4096;  // ours

}  // namespace einkern::io::zip
