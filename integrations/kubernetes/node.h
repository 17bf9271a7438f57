// SPDX-License-Identifier: Apache-2.0
// A node object, as the API server of Kubernetes answers with it.
#pragma once

#include "model/error.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace berth::kubernetes {

// A longer answer is not kept. etcd takes objects of 1.5 MiB; as JSON they are longer.
inline constexpr std::size_t kMaxAnswerBytes = std::size_t{4} << 20;
// An answer with more JSON values is refused: each takes up to 400 bytes, and the unit has 96 MiB.
inline constexpr std::size_t kMaxAnswerValues = 100'000;

struct Node {
  std::string uid;               // a node that was deleted and made again has another one
  std::string resource_version;  // of this state of the object
  // The value of the taint with berth's key and the effect NoSchedule. "" is a value, too.
  std::optional<std::string> own_taint;
  std::string other_taints;  // a JSON array: all others, whole
};

// Reads an answer about the node `name`. Its own taint has this key. Error invalid_input with the JSON path,
// also for another object's answer.
model::Result<Node> parse_node(std::string_view text, std::string_view name, std::string_view taint_key);

// The merge patch that gives the node the taint with this value, or none if that is empty. It keeps all other
// taints, and the API server refuses it (409) if the object has changed meanwhile. nullopt: nothing to
// change.
std::optional<std::string> taint_patch(const Node& node, const std::string& key, const std::string& value);

// The words of a refusal: the member "message" of a Status object; empty without one.
std::string message_of(std::string_view answer);

}  // namespace berth::kubernetes
