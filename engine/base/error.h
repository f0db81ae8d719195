// SPDX-License-Identifier: Apache-2.0
// What can go wrong, as types: every exception of the library is one of these.
#pragma once

#include <stdexcept>
#include <string>

namespace einkern {

/// Base of every exception thrown by einkern.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A text (equation, term, program) that does not follow its grammar.
class SyntaxError : public Error {
 public:
  using Error::Error;
};

/// Sizes, ranks or labels that do not fit together.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// A dtype that an operation does not take.
class TypeError : public Error {
 public:
  using Error::Error;
};

/// A value out of its range: an overflow, a division by zero, an unknown option.
class ValueError : public Error {
 public:
  using Error::Error;
};

/// A plan that would need more memory than allowed.
class MemoryLimitError : public Error {
 public:
  using Error::Error;
};

/// A file that cannot be read or written, or is not what it claims to be.
class IoError : public Error {
 public:
  using Error::Error;
};

/// The one place where user errors are thrown. `E` is one of the types above; the message reads
/// `<function>: <fact with the values>`, lower case, no full stop.
template <class E>
[[noreturn]] void fail(const std::string& message);

/// Reports a broken invariant of the library itself (never a user's mistake) and throws
/// `std::logic_error`.
[[noreturn]] void fail_check(const char* condition, const char* file, int line);

}  // namespace einkern

/// Invariant of the library; kept in release builds because it is never in an inner loop.
#define EINKERN_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::einkern::fail_check(#condition, __FILE__, __LINE__))
