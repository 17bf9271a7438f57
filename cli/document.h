// SPDX-License-Identifier: Apache-2.0
// Reading the daemon's documents for display: what is missing or null is "not known", so that berthctl and
// berthd need not be of one version.
#pragma once

#include "cli/problem.h"

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace berth::cli {

using Document = nlohmann::json;

// Problem failed for what is not JSON; `what` names it.
Outcome<Document> parse_document(const std::string& text, const char* what);

// A member of an object; a null for anything else.
const Document& member(const Document& object, const char* name);
// A text member, "" where there is none.
std::string text_of(const Document& object, const char* name);
std::optional<double> number_of(const Document& object, const char* name);
bool flag_of(const Document& object, const char* name);
// Its elements; empty for what is no array.
const Document::array_t& list_of(const Document& object, const char* name);

}  // namespace berth::cli
