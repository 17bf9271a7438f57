// SPDX-License-Identifier: Apache-2.0
// Converts nlohmann's documents to text and back, for directories that build or read some. Its parser and its
// serializer are 50 kB of templates. This file instantiates them once for all.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace berth::model {

// One line of text. Bytes that are not UTF-8 become U+FFFD: messages of the kernel and libraries, and names
// of cgroups, need not be UTF-8. The bus takes nothing else.
std::string json_text(const nlohmann::json& document);

// Throws nlohmann::json::exception for text that is not JSON. Sets no limits: for text of berth's own.
nlohmann::json json_of(std::string_view text);
// The same, but a value that is_discarded() for text that is not JSON.
nlohmann::json json_or_discarded(std::string_view text);

}  // namespace berth::model
