// SPDX-License-Identifier: Apache-2.0
// Reads the daemon's documents for display. A missing or null member is "not known", so that berthctl and
// berthd need not have one version.
#pragma once

#include "cli/problem.h"
#include "model/topology.h"

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace berth::cli {

using Document = nlohmann::json;

// Problem failed where the text is no JSON; `what` names the document.
Outcome<Document> parse_document(const Outcome<std::string>& text, const char* what);

// A member of an object; null for anything else.
const Document& member(const Document& object, const char* name);
// A text member, "" where there is none.
std::string text_of(const Document& object, const char* name);
std::optional<double> number_of(const Document& object, const char* name);
bool flag_of(const Document& object, const char* name);
// The elements of an array member; empty for anything else.
const Document::array_t& list_of(const Document& object, const char* name);

// The kind of the domains that services share, by a berth.status/1 document.
model::DomainKind shared_domain_of(const Document& status);

}  // namespace berth::cli
