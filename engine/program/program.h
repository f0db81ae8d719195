// SPDX-License-Identifier: Apache-2.0
// Tensor programs as text (.ein): parsed once, built and compiled for any inputs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../graph/compiled.h"
#include "../graph/expr.h"
#include "words.h"

namespace einkern {

/// Dtype and sizes of an input; sizes may be `dyn("name")`.
struct InputType {
  InputType(const Shape& sizes, DType element = f32) : shape(sizes), dtype(element) {}
  InputType(std::initializer_list<std::int64_t> sizes) : shape(sizes) {}

  Shape shape;
  DType dtype = f32;
};

/// A program in the language of docs/language.md. Immutable; used from any number of threads.
class Program {
 public:
  /// Parses a text and resolves its names; `name` stands for the file in messages. SyntaxError with
  /// file, line and carets. An import needs a file.
  static Program parse(std::string_view text, const std::string& name = "program");
  /// The same from a file, with what it imports. IoError when one cannot be read.
  static Program from_file(const std::filesystem::path& path);

  // The same with other words than those of ops and attention; they outlive the program.
  static Program parse(std::string_view text, const std::string& name, const Words& words);
  static Program from_file(const std::filesystem::path& path, const Words& words);

  /// Names that the program takes from outside, in the order of use, or of declaration.
  const std::vector<std::string>& inputs() const noexcept;
  /// Names of what it returns: of the variables, else `out0`, `out1`, ... by place.
  std::vector<std::string> outputs() const;
  /// The canonical form of the main text.
  std::string str() const;

  /// An input as `input q: f32[b, h, q, 64]` declares it.
  struct Declared {
    DType dtype;
    Shape shape;                      // `dyn` for names
    std::vector<std::string> labels;  // empty where the size is a number, or the name repeats
  };
  /// Nothing when the input is not declared.
  std::optional<Declared> declared(std::string_view input) const;

  /// ValueError listing both sets unless these are the names of all inputs.
  void check_inputs(const std::vector<std::string>& given) const;

  /// The lazy expressions of its results over these inputs; a number (`Expr(0.5)`) may stand where
  /// a number is needed. ValueError listing both sets when inputs are missing or unknown;
  /// ShapeError or TypeError, with file, line and carets, when one is not as declared.
  std::vector<Expr> build(const std::map<std::string, Expr>& inputs) const;

  /// `eval(build(inputs))`.
  std::vector<Tensor> operator()(const std::map<std::string, Expr>& inputs,
                                 const EvalOptions& options = {}) const;

  /// A reusable plan over inputs of these types, in the order of `inputs()`. Declared inputs need
  /// not be given. Errors: as `build`.
  Compiled compile(const std::map<std::string, InputType>& types = {}) const;

  /// What every assigned name and every result will be.
  struct Outline {
    std::vector<std::pair<std::string, Expr>> inputs, steps, outputs;
  };
  /// Checks shapes, labels and dtypes without data: the expressions have the right types and are
  /// not to be evaluated. Sizes may stay symbols. Errors: as `build`.
  Outline outline(const std::map<std::string, InputType>& types = {}) const;

 private:
  struct State;
  explicit Program(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  static Program make(std::string_view text, const std::string& name,
                      const std::optional<std::filesystem::path>& path, const Words& words);

  std::shared_ptr<const State> state_;
};

}  // namespace einkern
