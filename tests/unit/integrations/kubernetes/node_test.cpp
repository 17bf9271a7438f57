// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/node.h"

#include "model/json_text.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::kubernetes {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kKey = "berth.org/no-schedule";

json answer() {
  return {{"kind", "Node"},
          {"apiVersion", "v1"},
          {"metadata", {{"name", "n1"}, {"uid", "u-1"}, {"resourceVersion", "42"}, {"labels", {{"a", "b"}}}}},
          {"spec", {{"podCIDR", "10.0.0.0/24"}}},
          {"status", {{"capacity", {{"cpu", "8"}}}}}};
}

json other_taints() {
  return json::array(
      {{{"key", "dedicated"}, {"value", "gpu"}, {"effect", "NoSchedule"}, {"fromTheFuture", {1, 2.5}}},
       {{"key", kKey}, {"effect", "NoExecute"}, {"timeAdded", "2026-11-25T00:00:00Z"}}});
}

json own_taint(const std::string& value) {
  return {{"key", kKey}, {"effect", "NoSchedule"}, {"value", value}};
}

Node node(const json& document) {
  const auto read = parse_node(model::json_text(document), "n1", kKey);
  EXPECT_TRUE(read) << read.error().message();
  return read.value_or(Node());
}

std::string refusal(const std::string& text) {
  const auto read = parse_node(text, "n1", kKey);
  EXPECT_FALSE(read);
  return read ? "" : read.error().message();
}

TEST(KubernetesNode, IsRead) {
  const Node read = node(answer());
  EXPECT_EQ(read.uid, "u-1");
  EXPECT_EQ(read.resource_version, "42");
  EXPECT_EQ(read.own_taint, std::nullopt);
  EXPECT_EQ(read.other_taints, "[]");
}

TEST(KubernetesNode, IsRefusedIfItIsAnotherOne) {
  json other = answer();
  other["metadata"]["name"] = "n2";
  EXPECT_THAT(refusal(model::json_text(other)), HasSubstr("$.metadata.name: is another node's"));
  other = answer();
  other["kind"] = "Pod";
  EXPECT_THAT(refusal(model::json_text(other)), HasSubstr("$.kind: is no Node"));
  other = answer();
  other["metadata"].erase("resourceVersion");
  EXPECT_THAT(refusal(model::json_text(other)), HasSubstr("$.metadata.resourceVersion"));
  other = answer();
  other["spec"]["taints"] = "none";
  EXPECT_THAT(refusal(model::json_text(other)), HasSubstr("$.spec.taints"));
  other["spec"]["taints"] = json::array({own_taint("cpu"), {{"key", 7}}});
  EXPECT_THAT(refusal(model::json_text(other)), HasSubstr("$.spec.taints[1].key"));
}

TEST(KubernetesNode, HostileTextIsRefused) {
  EXPECT_FALSE(refusal("").empty());
  EXPECT_FALSE(refusal("<html>").empty());
  EXPECT_FALSE(refusal(std::string(100'000, '[')).empty());
  EXPECT_FALSE(refusal(R"({"kind":"Node","kind":"Node"})").empty());
}

TEST(KubernetesNode, TheTaintIsAddedBesideOthers) {
  json document = answer();
  document["spec"]["taints"] = other_taints();
  const auto patch = taint_patch(node(document), kKey, "cpu");
  ASSERT_TRUE(patch);
  const json made = model::json_of(*patch);
  json taints = other_taints();
  taints.push_back(own_taint("cpu"));
  EXPECT_EQ(made, (json{{"metadata", {{"resourceVersion", "42"}}}, {"spec", {{"taints", taints}}}}));
}

TEST(KubernetesNode, ItsOwnTaintAloneIsRemoved) {
  json document = answer();
  document["spec"]["taints"] = other_taints();
  document["spec"]["taints"].insert(document["spec"]["taints"].begin() + 1, own_taint("cpu"));
  const Node read = node(document);
  EXPECT_EQ(read.own_taint, "cpu");
  const auto patch = taint_patch(read, kKey, "");
  ASSERT_TRUE(patch);
  EXPECT_EQ(model::json_of(*patch)["spec"]["taints"], other_taints());
}

TEST(KubernetesNode, TheValueIsReplaced) {
  json document = answer();
  document["spec"]["taints"] = json::array({own_taint("cpu")});
  const auto patch = taint_patch(node(document), kKey, "memory");
  ASSERT_TRUE(patch);
  EXPECT_EQ(model::json_of(*patch)["spec"]["taints"], json::array({own_taint("memory")}));
}

TEST(KubernetesNode, NothingIsChangedWhereNothingIsToChange) {
  json document = answer();
  EXPECT_EQ(taint_patch(node(document), kKey, ""), std::nullopt);
  document["spec"]["taints"] = json::array({own_taint("cpu")});
  EXPECT_EQ(taint_patch(node(document), kKey, "cpu"), std::nullopt);
  // Somebody's hand left the value out; then it is berth's own taint all the same.
  document["spec"]["taints"][0].erase("value");
  EXPECT_NE(taint_patch(node(document), kKey, ""), std::nullopt);
}

TEST(KubernetesNode, ARefusalHasWords) {
  EXPECT_EQ(message_of(R"({"kind":"Status","message":"nodes \"n1\" not found"})"), "nodes \"n1\" not found");
  for (const char* none : {"", "<html>", "[]", R"({"message":7})", R"({"kind":"Status"})"})
    EXPECT_EQ(message_of(none), "") << none;
}

TEST(KubernetesNode, AnAnswerOfMoreValuesThanItsMemoryHoldsIsRefused) {
  std::string text = R"({"kind":"Node","other":[0)";
  for (std::size_t i = 0; i < kMaxAnswerValues; ++i) text += ",0";
  const auto node = parse_node(text + "]}", "n1", "berth.org/no-schedule");
  ASSERT_FALSE(node);
  EXPECT_THAT(node.error().message(), HasSubstr("more than 100000 values"));
}

}  // namespace
}  // namespace berth::kubernetes
