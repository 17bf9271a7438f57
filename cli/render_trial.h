// SPDX-License-Identifier: Apache-2.0
// Renders a trial as text and as the document berth.trial/1.
#pragma once

#include "cli/document.h"
#include "cli/text.h"
#include "trial/driver.h"

#include <array>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace berth::cli {

struct ShownTrial {
  std::array<std::string, 2> files;  // of the sides
  Document::array_t differs;         // as in berth.trial-begin/1
  std::uint64_t seed = 0;
  const trial::Measured* measured = nullptr;
  const trial::Result* result = nullptr;
  std::optional<trial::Side> kept;        // its settings stay in force
  std::optional<std::string> not_kept;    // why --keep kept none
  std::optional<std::string> not_undone;  // why it is not known that everything is as before
};

// An element of `figures[]` of a berth.trial/1 document, as people read it. Not yet printable.
struct FigureTexts {
  std::string service;  // "(host)"
  std::string figure;   // with its unit, where the name does not tell it
  std::string a;
  std::string b;
  std::string change;
  std::string interval;
  std::string verdict;
  bool difference = false;
};
FigureTexts texts_of(const Document& figure);

void render_trial(std::ostream& out, const ShownTrial& shown, const Style& style);
Document trial_document(const ShownTrial& shown);

}  // namespace berth::cli
