// SPDX-License-Identifier: Apache-2.0
// How much of a long test runs under the sanitizers, where everything takes some ten times as long.
#pragma once

namespace einkern::test {

#if defined(__SANITIZE_ADDRESS__)  // GCC
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)  // clang
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

/// `count` random cases or elements; a fifth of them under the sanitizers, never none.
constexpr int fewer_if_sanitized(int count) { return kSanitized ? (count + 4) / 5 : count; }

}  // namespace einkern::test
