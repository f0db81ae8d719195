// SPDX-License-Identifier: Apache-2.0
// Arguments of one command to values, by CLI11; its messages and help are worded here.
#include "options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <utility>

#include "exit_code.h"

namespace einkern::tools {

struct Options::Option {
  enum class Kind { flag, value, values, optional_value };
  Kind kind = Kind::flag;
  std::string names, metavar, help;
  std::string otherwise;
  bool* switched = nullptr;
  std::optional<std::string>* target = nullptr;
  CLI::Option* parsed = nullptr;
  std::vector<std::string>* list = nullptr;

  /// The last of the names, which is the long one.
  std::string name() const { return names.substr(names.rfind(',') + 1); }
  /// How help shows it: `-o, --out FILE`, `--causal[=PLACE]`.
  std::string shown() const {
    std::string text = names;
    if (const auto comma = text.find(','); comma != text.npos) text.insert(comma + 1, " ");
    if (kind == Kind::value || kind == Kind::values) text += " " + metavar;
    if (kind == Kind::optional_value) text += "[=" + metavar + "]";
    return text;
  }
};

struct Options::Parser {
  CLI::App app;
};

namespace {

constexpr const char* kGiven = "true";  // what CLI11 stores for a flag without a value

bool looks_like_option(const std::string& argument) {
  return argument.size() > 1 && argument.front() == '-';
}

}  // namespace

Options::Options(HelpText text) : text_(std::move(text)), parser_(std::make_unique<Parser>()) {
  parser_->app.set_help_flag("-h,--help");
  parser_->app.allow_extras();
}

Options::~Options() = default;

void Options::add(Option option) {
  CLI::App& app = parser_->app;
  if (option.kind == Option::Kind::value || option.kind == Option::Kind::values) {
    option.parsed = app.add_option(option.names)->expected(1);
  } else {
    option.parsed = app.add_flag(option.names);
  }
  // Counted here: what CLI11 makes of an option that is given twice names none.
  option.parsed->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  options_.push_back(std::move(option));
}

void Options::flag(const std::string& names, bool& target, const std::string& help) {
  add({Option::Kind::flag, names, "", help, "", &target, nullptr, nullptr});
}

void Options::value(const std::string& names, const std::string& metavar,
                    std::optional<std::string>& target, const std::string& help) {
  add({Option::Kind::value, names, metavar, help, "", nullptr, &target, nullptr});
}

void Options::values(const std::string& names, const std::string& metavar,
                     std::vector<std::string>& target, const std::string& help) {
  add({Option::Kind::values, names, metavar, help, "", nullptr, nullptr, nullptr, &target});
}

void Options::optional_value(const std::string& names, const std::string& metavar,
                             const std::string& otherwise, std::optional<std::string>& target,
                             const std::string& help) {
  add({Option::Kind::optional_value, names, metavar, help, otherwise, nullptr, &target, nullptr});
}

void Options::refuse(const std::string& fact) const {
  throw UsageError(text_.command + ": " + fact);
}

void Options::refuse_unknown(const std::string& argument, bool first) const {
  const bool takes_equation =
      std::any_of(options_.begin(), options_.end(),
                  [](const Option& option) { return option.name() == "--equation"; });
  if (takes_equation && first && argument.find('>') != argument.npos) {
    refuse(fmt::format("the equation '{0}' begins with '-'; give it as -e '{0}'", argument));
  }
  std::string choices;
  for (const Option& option : options_) choices += option.name() + ", ";
  refuse(fmt::format("unknown option '{}'; choices: {}--help",
                     argument.substr(0, argument.find('=')), choices));
}

void Options::store(const Option& option) const {
  const std::vector<std::string>& results = option.parsed->results();
  if (results.empty()) return;
  if (results.size() > 1 && option.kind != Option::Kind::values)
    refuse(fmt::format("{} is given twice", option.name()));
  switch (option.kind) {
    case Option::Kind::flag:
      if (results[0] != kGiven) refuse(fmt::format("{} takes no value", option.name()));
      *option.switched = true;
      break;
    case Option::Kind::value:
      *option.target = results[0];
      break;
    case Option::Kind::values:
      *option.list = results;
      break;
    case Option::Kind::optional_value:
      *option.target = results[0] == kGiven ? option.otherwise : results[0];
      break;
  }
}

std::optional<std::vector<std::string>> Options::parse(const std::vector<std::string>& arguments) {
  // What follows `--` is no option, whatever it looks like.
  const auto mark = std::find(arguments.begin(), arguments.end(), "--");
  std::vector<std::string> reversed(std::make_reverse_iterator(mark), arguments.rend());
  for (const std::string& argument : reversed) {
    // CLI11 would take the next argument for the value.
    if (argument.starts_with("--") && argument.find('=') + 1 == argument.size()) {
      refuse(fmt::format("{} has no value behind '='", argument.substr(0, argument.size() - 1)));
    }
  }
  CLI::App& app = parser_->app;
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    std::cout << help();
    return {};
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string message = error.what();
    refuse(message.substr(0, message.find(':')) + " needs a value");
  } catch (const CLI::ParseError& error) {
    refuse(error.what());
  }
  std::vector<std::string> positional = app.remaining();
  for (std::size_t i = 0; i < positional.size(); ++i) {
    if (looks_like_option(positional[i])) refuse_unknown(positional[i], i == 0);
  }
  for (const Option& option : options_) store(option);
  if (mark != arguments.end()) positional.insert(positional.end(), mark + 1, arguments.end());
  return positional;
}

std::string Options::help() const {
  std::string text =
      fmt::format("{}\n\nusage: einkern {} {}\n\n", text_.summary, text_.command, text_.usage);
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Option& option : options_) rows.emplace_back(option.shown(), option.help);
  rows.emplace_back("-h, --help", "this text");
  std::size_t width = 0;
  for (const auto& [shown, help] : rows) width = std::max(width, shown.size());
  for (auto& [shown, help] : rows) {
    // Further lines of an option's help stand below its first.
    for (std::size_t end = 0; (end = help.find('\n', end)) != help.npos;) {
      help.insert(++end, width + 4, ' ');
    }
    text += fmt::format("  {:<{}}  {}\n", shown, width, help);
  }
  text += "\nexamples:\n";
  for (const std::string& example : text_.examples) text += "  " + example + "\n";
  return text;
}

}  // namespace einkern::tools
