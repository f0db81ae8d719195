// SPDX-License-Identifier: Apache-2.0
// Malformed programs and command lines, listed in messages.txt: the whole message, the exit code,
// and no file left behind.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "../../engine/tensor/io/npz.h"
#include "../../engine/tensor/io/safetensors.h"
#include "../tools/arrays_folder.h"

using namespace einkern;
using namespace einkern::test;

namespace {

/// One entry of messages.txt: `### title`, `| line` of p.ein (or of the file that `@ name` names),
/// `$ arguments`, `= code`, and what standard error says.
struct Message {
  std::string title;
  std::vector<std::pair<std::string, std::string>> files;
  std::vector<std::string> arguments;
  int code = 0;
  std::string text;
};

std::vector<Message> read_messages() {
  std::ifstream file(EINKERN_MESSAGES);
  std::vector<Message> messages;
  std::string name = "p.ein";
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("### ")) {
      messages.push_back({line.substr(4), {}, {}, 0, ""});
      name = "p.ein";
      continue;
    }
    if (messages.empty()) continue;  // what the file says of itself
    Message& message = messages.back();
    if (message.arguments.empty() && line.starts_with("|")) {
      if (message.files.empty() || message.files.back().first != name) {
        message.files.emplace_back(name, "");
      }
      message.files.back().second += (line.size() > 2 ? line.substr(2) : "") + "\n";
    } else if (message.arguments.empty() && line.starts_with("@ ")) {
      name = line.substr(2);
    } else if (line.starts_with("$ ")) {
      std::istringstream words(line.substr(2));
      for (std::string word; words >> word;) message.arguments.push_back(word);
    } else if (line.starts_with("= ")) {
      message.code = std::stoi(line.substr(2));
    } else {
      message.text += line + "\n";
    }
  }
  return messages;
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("every message of messages.txt") {
    const ArraysFolder folder;
    folder.save("L", full({2}, 4e9, i64));
    write_text(folder.scratch() / "broken.npz", "no archive");
    const Tensor a = folder.load("A"), b = folder.load("B");
    save_npz(folder.scratch() / "two.npz", {{"a", a}, {"b", b}});
    save_safetensors(folder.scratch() / "two.safetensors", {{{"a", a}, {"b", b}}, {}});
    auto before = folder.scratch().names();
    std::sort(before.begin(), before.end());

    const std::vector<Message> messages = read_messages();
    CHECK(messages.size() >= 140);
    for (const Message& message : messages) {
      CAPTURE(message.title);
      REQUIRE(message.code != 0);
      for (const auto& [name, text] : message.files) write_text(folder.scratch() / name, text);
      const Finished done = folder.run(message.arguments);
      CHECK(done.out == "");
      CHECK(done.err == message.text);
      CHECK(done.code == message.code);
      for (const auto& [name, text] : message.files) {
        std::filesystem::remove(folder.scratch() / name);
      }
      auto after = folder.scratch().names();
      std::sort(after.begin(), after.end());
      CHECK(after == before);
    }
  }
}
