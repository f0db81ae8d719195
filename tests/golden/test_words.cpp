// SPDX-License-Identifier: Apache-2.0
// The table of words against the headers it stands for, and the editor's grammar made from it.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "../../einkern.h"
#include "../tools/process.h"

using namespace einkern;
using namespace einkern::test;

namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(std::string(EINKERN_SOURCE_ROOT) + "/" + path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Names of the functions that the headers of a folder, and of the folders in it, declare and that
/// give expressions, results of attention, tensors or numbers.
std::set<std::string> declared_in(const std::string& folder) {
  static const std::regex kFunction(
      R"((?:^|\n)(?:inline )?(?:Expr|BoolExpr|Mask|Tensor|double|[A-Z][a-z]+(?:Result|Attention)) )"
      R"(([a-z_0-9]+)\()");
  const std::filesystem::path root(EINKERN_SOURCE_ROOT);
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
    if (entry.path().extension() != ".h") continue;
    const std::string text = text_of(std::filesystem::relative(entry.path(), root).string());
    for (std::sregex_iterator found(text.begin(), text.end(), kFunction), end; found != end;
         ++found) {
      names.insert((*found)[1]);
    }
  }
  return names;
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("every function of ops and attention is a word") {
    // Steps that functions share, under names that users do not call.
    const std::set<std::string> inner = {"causal_by",     "permute_as",  "attend",
                                         "project",       "labelled_as", "scaled_attention",
                                         "masked_scores", "weighted_sum"};
    int found = 0;
    for (const char* folder : {"ops", "attention"}) {
      for (const std::string& name : declared_in(folder)) {
        if (inner.contains(name)) continue;
        CAPTURE(name);
        CHECK(words().find(name) != nullptr);
        ++found;
      }
    }
    CHECK(found > 80);
  }

  TEST_CASE("rows of a table have names, summaries and parameters that can be told apart") {
    for (const std::string& name : words().names()) {
      CAPTURE(name);
      const Word& word = *words().find(name);
      CHECK((word.build != nullptr));
      CHECK_FALSE(word.summary.empty());
      std::set<std::string> parameters;
      bool keyword = false;
      for (const Parameter& parameter : word.parameters) {
        CHECK(parameters.insert(parameter.name).second);
        // What is given by name only stands behind the rest.
        CHECK((parameter.keyword || !keyword));
        keyword |= parameter.keyword;
      }
    }
    const WordTable twice = {*words().find("exp"), *words().find("exp")};
    CHECK_THROWS_WITH_AS(Words{&twice}, "words: two rows are named 'exp'", ValueError);
  }

  TEST_CASE("the editor's grammar is made from the table") {
    const Finished made = einkern_in("/", {"words", "--textmate"});
    CHECK(made.code == 0);
    CHECK(made.out == text_of("tools/editors/einkern.tmLanguage.json"));
  }
}
