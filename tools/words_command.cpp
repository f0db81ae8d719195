// SPDX-License-Identifier: Apache-2.0
// `einkern words`: what programs may call, from the same table that they are read by.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "../einkern.h"
#include "commands.h"
#include "files.h"
#include "options.h"
#include "textmate.h"

namespace einkern::tools {

void words_command(const std::vector<std::string>& arguments) {
  Options options({
      .command = "words",
      .usage = "[NAME...] [OPTIONS]",
      .summary = "Prints the words of programs with their parameters: all, or those named.",
      .examples = {"einkern words softmax mask",
                   "einkern words --textmate > einkern.tmLanguage.json"},
  });
  bool textmate = false;
  options.flag("--textmate", textmate, "print a TextMate grammar of programs for editors");
  const auto positional = options.parse(arguments);
  if (!positional) return;
  if (textmate && !positional->empty()) options.refuse("--textmate takes no names");
  if (textmate) return print(textmate_grammar(words()));
  std::string text;
  for (const std::string& name : positional->empty() ? words().names() : *positional) {
    const Word* word = words().find(name);
    if (word == nullptr) options.refuse(fmt::format("unknown word '{}'", name));
    text += fmt::format("{}\n    {}\n", word->signature(), word->summary);
  }
  print(text);
}

}  // namespace einkern::tools
