// SPDX-License-Identifier: Apache-2.0
// Arguments of one command to values: options anywhere, the rest by position, and the help text.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace einkern::tools {

/// What `--help` shows beside the options.
struct HelpText {
  std::string command;                // "eval"
  std::string usage;                  // what follows "einkern eval"
  std::string summary;                // what the command does
  std::vector<std::string> examples;  // whole command lines
};

/// The options of a command. Declare them, then parse once.
class Options {
 public:
  explicit Options(HelpText text);
  ~Options();
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  /// `--name`, which takes no value.
  void flag(const std::string& names, bool& target, const std::string& help);
  /// `--name VALUE` or `--name=VALUE`.
  void value(const std::string& names, const std::string& metavar,
             std::optional<std::string>& target, const std::string& help);
  /// The same, any number of times.
  void values(const std::string& names, const std::string& metavar,
              std::vector<std::string>& target, const std::string& help);
  /// `--name`, which stands for `otherwise`, or `--name=VALUE`; never takes the next argument.
  void optional_value(const std::string& names, const std::string& metavar,
                      const std::string& otherwise, std::optional<std::string>& target,
                      const std::string& help);

  /// What is left, in order; nothing when help was asked for (and printed). Errors: UsageError.
  std::optional<std::vector<std::string>> parse(const std::vector<std::string>& arguments);

  /// UsageError that begins with the command's name.
  [[noreturn]] void refuse(const std::string& fact) const;
  std::string help() const;
  const std::string& command() const noexcept { return text_.command; }

 private:
  struct Option;
  struct Parser;

  void add(Option option);
  [[noreturn]] void refuse_unknown(const std::string& argument, bool first) const;
  void store(const Option& option) const;

  HelpText text_;
  std::vector<Option> options_;
  std::unique_ptr<Parser> parser_;
};

}  // namespace einkern::tools
