// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/node.h"
#include "model/json.h"
#include "model/json_reader.h"
#include "model/json_text.h"

#include <algorithm>
#include <utility>

namespace berth::kubernetes {

namespace {

using model::JsonObject;
using model::JsonValue;
using nlohmann::json;

constexpr std::string_view kEffect = "NoSchedule";

void read_metadata(const JsonValue& value, std::string_view name, Node& node) {
  JsonObject metadata(value);
  metadata.ignore_unknown();
  const JsonValue given = metadata.required("name");
  if (given.line() != name) given.fail("is another node's");
  node.uid = metadata.required("uid").name();
  node.resource_version = metadata.required("resourceVersion").name();
}

// The value of a taint, if it is berth's own.
std::optional<std::string> own_value(const JsonValue& value, std::string_view key) {
  JsonObject taint(value);
  taint.ignore_unknown();
  const std::string given_key = taint.required("key").line();
  const std::string effect = taint.required("effect").line();
  const auto given = taint.nullable("value");
  std::string text = given ? given->line() : "";
  if (given_key != key || effect != kEffect) return std::nullopt;
  return text;
}

}  // namespace

model::Result<Node> parse_node(std::string_view text, std::string_view name, std::string_view taint_key) {
  const auto document = model::parse_json(text, kMaxAnswerValues);
  if (!document) return model::fail(document.error());
  model::ReadContext context;
  const JsonValue root(context, *document);
  Node node;
  json others = json::array();
  {
    JsonObject object(root);
    object.ignore_unknown();
    const JsonValue kind = object.required("kind");
    if (kind.line() != "Node") kind.fail("is no Node");
    read_metadata(object.required("metadata"), name, node);
    const JsonValue spec_value = object.required("spec");
    JsonObject spec(spec_value);
    spec.ignore_unknown();
    if (const auto taints = spec.nullable("taints")) {
      std::size_t index = 0;
      taints->each([&](const JsonValue& taint) {
        auto own = own_value(taint, taint_key);
        if (own)
          node.own_taint = std::move(own);
        else if (!context.failed())
          others.push_back((*document)["spec"]["taints"][index]);
        ++index;
      });
    }
  }
  if (context.failed()) return model::fail(*context.error());
  node.other_taints = model::json_text(others);
  return node;
}

std::optional<std::string> taint_patch(const Node& node, const std::string& key, const std::string& value) {
  const bool wanted = !value.empty();
  if (wanted ? node.own_taint == value : !node.own_taint) return std::nullopt;
  json taints = model::json_of(node.other_taints);
  if (wanted) taints.push_back({{"effect", kEffect}, {"key", key}, {"value", value}});
  return model::json_text(
      {{"metadata", {{"resourceVersion", node.resource_version}}}, {"spec", {{"taints", taints}}}});
}

std::string message_of(std::string_view answer) {
  const auto document = model::parse_json(answer, kMaxAnswerValues);
  if (!document || !document->is_object()) return "";
  const auto found = document->find("message");
  if (found == document->end() || !found->is_string()) return "";
  return found->get<std::string>().substr(0, model::kMaxNameBytes);
}

}  // namespace berth::kubernetes
