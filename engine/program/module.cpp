// SPDX-License-Identifier: Apache-2.0
// A program and its imports: each file once, none from outside the folder, none in a circle.
#include "module.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <system_error>

#include "parse.h"
#include "resolve.h"

namespace einkern::program {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostFiles = 1000;

class Loader {
 public:
  Loader(const Words& words, Modules& modules) : words_(words), modules_(modules) {
    modules_.words = &words;
  }

  Module& load(Source source, const std::optional<fs::path>& path, bool imported) {
    Tree tree = parse_tree(source);
    Module& module = *modules_.all.emplace_back(
        std::make_unique<Module>(Module{std::move(source), std::move(tree)}));
    files_.push_back({path, &module, true});
    const std::size_t file = files_.size() - 1;
    const Import import = [&](const Module& importer, const Statement& statement) -> const Module& {
      return imported_by(importer, statement, files_[file].path);
    };
    resolve(module, words_, import, imported);
    files_[file].loading = false;
    return module;
  }

 private:
  struct File {
    std::optional<fs::path> path;
    Module* module;
    bool loading;  // it or what it imports is being read
  };

  const Module& imported_by(const Module& importer, const Statement& statement,
                            const std::optional<fs::path>& importing) {
    const Node& named = statement.values[0];
    const auto refuse = [&](const std::string& fact) {
      fail_in<SyntaxError>(importer.source, named.span, fact);
    };
    if (!importing) refuse("a text without a file cannot import");
    if (named.name.empty()) refuse("an import names a file");
    const fs::path name(named.name);
    const fs::path folder = importing->parent_path();
    const auto leaves =
        std::any_of(name.begin(), name.end(), [](const fs::path& part) { return part == ".."; });
    std::error_code error;
    const fs::path path = fs::weakly_canonical(folder / name, error);
    const fs::path inside = path.lexically_relative(fs::weakly_canonical(folder, error));
    if (name.is_absolute() || leaves || inside.empty() || *inside.begin() == "..") {
      refuse("an import stays in the folder of its file");
    }
    for (const File& file : files_) {
      if (!file.path || *file.path != path) continue;
      if (file.loading)
        refuse(fmt::format("'{}' imports itself, directly or through others", named.name));
      return *file.module;
    }
    if (files_.size() >= kMostFiles) refuse(fmt::format("more than {} files", kMostFiles));
    std::string text;
    try {
      text = read_program(path);
    } catch (const IoError& read) {
      const std::string reason = read.what();
      fail_in<IoError>(
          importer.source, named.span,
          fmt::format("import '{}': {}", named.name, reason.substr(reason.rfind(": ") + 2)));
    }
    // Named as seen from where the program was named.
    const fs::path shown = fs::path(importer.source.name()).parent_path() / name;
    return load(Source(shown.generic_string(), text), path, true);
  }

  const Words& words_;
  Modules& modules_;
  std::vector<File> files_;
};

}  // namespace

std::string read_program(const fs::path& path) {
  const auto refuse = [&](int number) {
    std::string reason = std::generic_category().message(number);
    if (!reason.empty() && reason[0] >= 'A' && reason[0] <= 'Z') reason[0] += 'a' - 'A';
    fail<IoError>(fmt::format("program: '{}': cannot read: {}", path.string(), reason));
  };
  std::error_code error;
  if (fs::is_directory(path, error)) refuse(EISDIR);
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(errno != 0 ? errno : ENOENT);
  std::string text;
  // One byte beyond the bound tells that there is more.
  constexpr std::size_t kMost = (std::size_t{1} << 20) + 1;
  text.resize(kMost);
  file.read(text.data(), static_cast<std::streamsize>(kMost));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (file.bad()) refuse(EIO);
  return text;
}

Modules load_modules(Source source, const std::optional<fs::path>& file, const Words& words) {
  Modules modules;
  std::optional<fs::path> path;
  std::error_code error;
  if (file) path = fs::weakly_canonical(*file, error);
  Loader(words, modules).load(std::move(source), path, false);
  return modules;
}

}  // namespace einkern::program
