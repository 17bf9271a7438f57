// SPDX-License-Identifier: Apache-2.0
#include "model/json_text.h"

#include "model/plain_text.h"

#include <nlohmann/json.hpp>

namespace berth::model {

std::string json_text(const nlohmann::json& document) {
  return plain_json(document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

nlohmann::json json_of(std::string_view text) { return nlohmann::json::parse(text); }

nlohmann::json json_or_discarded(std::string_view text) {
  return nlohmann::json::parse(text, nullptr, false);
}

}  // namespace berth::model
