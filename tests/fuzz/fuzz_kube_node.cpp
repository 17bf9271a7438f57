// SPDX-License-Identifier: Apache-2.0
// Answers of an API server: an answer is refused in one line, or gives a patch that keeps every other taint,
// and after which nothing is to be done.
#include "integrations/kubernetes/node.h"
#include "tests/fuzz/property.h"

#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string key = "berth.org/no-schedule";
  const auto text = fuzz::text_of(data, size);
  fuzz::require(berth::kubernetes::message_of(text).size() <= 4096, "words of a refusal are short");
  const auto node = berth::kubernetes::parse_node(text, "n1", key);
  if (!node) {
    fuzz::require_line(node.error().message());
    return 0;
  }
  for (const char* value : {"", "cpu", "memory"}) {
    const auto patch = berth::kubernetes::taint_patch(*node, key, value);
    if (!patch) continue;
    const std::string others = node->other_taints.substr(1, node->other_taints.size() - 2);
    fuzz::require(patch->find(others) != std::string::npos, "no taint of others is lost");
    auto after = *node;
    after.own_taint = *value == '\0' ? std::nullopt : std::optional<std::string>(value);
    fuzz::require(!berth::kubernetes::taint_patch(after, key, value), "a second patch has nothing to do");
  }
  return 0;
}
