// SPDX-License-Identifier: Apache-2.0
#include "integrations/extender/documents.h"

#include "model/json_text.h"

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::extender {
namespace {

using model::WorkloadClass;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

json container(const json& requests) { return {{"name", "c"}, {"resources", {{"requests", requests}}}}; }

json pod(const json& requests, const std::string& qos = "BestEffort") {
  return {{"metadata", {{"name", "p"}, {"namespace", "batch"}, {"uid", "u-1"}, {"labels", json::object()}}},
          {"spec", {{"containers", json::array({container(requests)})}}},
          {"status", {{"qosClass", qos}}}};
}

std::string question(const json& about, const json& nodes = json::array({"n1", "n2"})) {
  return model::json_text({{"Pod", about}, {"Nodes", nullptr}, {"NodeNames", nodes}});
}

Question read(const json& about) {
  const auto parsed = parse_question(question(about), "berth.org");
  EXPECT_TRUE(parsed) << parsed.error().message();
  return parsed.value_or(Question());
}

std::string refusal(const std::string& text) {
  const auto parsed = parse_question(text, "berth.org");
  EXPECT_FALSE(parsed);
  return parsed ? "" : parsed.error().message();
}

TEST(ExtenderDocuments, ABestEffortPodAsksForItsResources) {
  const Question asked = read(pod({{"berth.org/be-cpu", "2500"}, {"berth.org/be-memory", "2Gi"}}));
  EXPECT_EQ(asked.pod.uid, "u-1");
  EXPECT_THAT(asked.nodes, ElementsAre("n1", "n2"));
  ASSERT_TRUE(asked.pod.request);
  EXPECT_EQ(asked.pod.request->workload_class, WorkloadClass::best_effort);
  EXPECT_EQ(asked.pod.request->vcpus, 3);
  EXPECT_EQ(asked.pod.request->memory_request_bytes, 2147483648U);
  EXPECT_EQ(asked.pod.request->id, "batch/p");
  EXPECT_EQ(asked.pod.request->service, "batch/p");
}

TEST(ExtenderDocuments, AGuaranteedPodWithWholeCpusIsLatencySensitive) {
  json about = pod({{"cpu", "4"}, {"memory", "1Gi"}}, "Guaranteed");
  about["metadata"]["labels"] = {{"app", "old"}, {"app.kubernetes.io/name", "web"}};
  const auto request = read(about).pod.request;
  ASSERT_TRUE(request);
  EXPECT_EQ(request->workload_class, WorkloadClass::latency_sensitive);
  EXPECT_EQ(request->vcpus, 4);
  EXPECT_EQ(request->service, "web");
  about["metadata"]["labels"] = {{"app", "old"}};
  EXPECT_EQ(read(about).pod.request->service, "old");
}

TEST(ExtenderDocuments, OtherPodsAreNotPlaced) {
  EXPECT_EQ(read(pod({{"cpu", "1500m"}}, "Guaranteed")).pod.request, std::nullopt);
  EXPECT_EQ(read(pod({{"cpu", "4"}}, "Burstable")).pod.request, std::nullopt);
  EXPECT_EQ(read(pod(json::object())).pod.request, std::nullopt);
  json bare = pod(json::object());
  bare["spec"]["containers"] = json::array({{{"name", "c"}}});
  bare.erase("status");
  EXPECT_EQ(read(bare).pod.request, std::nullopt);
}

TEST(ExtenderDocuments, APodWithGpusIsPlaced) {
  const auto request =
      read(pod({{"cpu", "1500m"}, {"memory", "4Gi"}, {"nvidia.com/gpu", "2"}}, "Burstable")).pod.request;
  ASSERT_TRUE(request);
  EXPECT_EQ(request->gpus, 2);
  EXPECT_EQ(request->vcpus, 2);
  EXPECT_EQ(request->workload_class, WorkloadClass::best_effort);
  EXPECT_EQ(read(pod({{"cpu", "8"}, {"amd.com/gpu", "1"}}, "Guaranteed")).pod.request->workload_class,
            WorkloadClass::latency_sensitive);
}

TEST(ExtenderDocuments, ContainersAreCountedAsTheSchedulerCounts) {
  json about = pod({{"cpu", "2"}}, "Guaranteed");
  about["spec"]["containers"].push_back(container({{"cpu", "3"}}));
  EXPECT_EQ(read(about).pod.request->vcpus, 5);
  // One after the other, before the others.
  about["spec"]["initContainers"] = json::array({container({{"cpu", "4"}}), container({{"cpu", "4"}})});
  EXPECT_EQ(read(about).pod.request->vcpus, 5);
  about["spec"]["initContainers"].push_back(container({{"cpu", "7"}}));
  EXPECT_EQ(read(about).pod.request->vcpus, 7);
  // A sidecar runs beside all that comes after it.
  about["spec"]["initContainers"][0]["restartPolicy"] = "Always";
  EXPECT_EQ(read(about).pod.request->vcpus, 11);
  about["spec"]["overhead"] = {{"cpu", "1"}};
  EXPECT_EQ(read(about).pod.request->vcpus, 12);
}

TEST(ExtenderDocuments, ResourcesOfTheWholePodCountWhereTheyAreMore) {
  json about = pod({{"cpu", "2"}, {"memory", "1Gi"}}, "Guaranteed");
  about["spec"]["resources"] = {{"requests", {{"cpu", "6"}, {"memory", "512Mi"}}}};
  EXPECT_EQ(read(about).pod.request->vcpus, 6);
  EXPECT_EQ(read(about).pod.request->memory_request_bytes, std::uint64_t{1} << 30)
      << "of each the larger one";
  // Containers without any: the pod's alone.
  about["spec"]["containers"] = json::array({{{"name", "a"}}, {{"name", "b"}}});
  EXPECT_EQ(read(about).pod.request->vcpus, 6);
  about["spec"]["overhead"] = {{"cpu", "1"}};
  EXPECT_EQ(read(about).pod.request->vcpus, 7) << "what the runtime takes comes on top";
  about["spec"]["resources"]["requests"]["cpu"] = "1";
  about["spec"]["containers"] = json::array({container({{"cpu", "2"}}), container({{"cpu", "3"}})});
  EXPECT_EQ(read(about).pod.request->vcpus, 6);
  about["spec"]["resources"]["requests"]["cpu"] = "many";
  EXPECT_THAT(refusal(question(about)), HasSubstr("cpu: is no amount"));
}

TEST(ExtenderDocuments, AreLimited) {
  EXPECT_THAT(refusal("{"), HasSubstr("line 1"));
  EXPECT_THAT(refusal(R"({"Pod":{}})"), HasSubstr("$.Pod.metadata"));
  EXPECT_THAT(refusal(model::json_text({{"Pod", pod({})}, {"Nodes", {{"items", json::array()}}}})),
              HasSubstr("nodeCacheCapable"));
  EXPECT_THAT(refusal(question(pod({{"cpu", "many"}}))), HasSubstr("cpu: is no amount"));
  EXPECT_THAT(refusal(question(pod({{"cpu", 4}}))), HasSubstr("cpu"));
  for (const auto& [member, most] :
       {std::pair("name", 253U), std::pair("uid", 63U), std::pair("namespace", 63U)}) {
    json about = pod({});
    about["metadata"][member] = std::string(most, 'x');
    EXPECT_TRUE(parse_question(question(about), "berth.org")) << member;
    about["metadata"][member] = std::string(most + 1, 'x');
    EXPECT_THAT(refusal(question(about)), HasSubstr("bytes, more than the")) << member;
  }
  json labelled = pod({});
  labelled["metadata"]["labels"]["app"] = std::string(64, 'x');
  EXPECT_THAT(refusal(question(labelled)), HasSubstr("64 bytes, more than the 63"));
  json names = json::array();
  for (std::size_t i = 0; i <= kMaxNodes; ++i) names.push_back("n" + std::to_string(i));
  EXPECT_THAT(refusal(question(pod({}), names)), HasSubstr("one node too many"));
}

TEST(ExtenderDocuments, AreWrittenAsTheSchedulerReadsThem) {
  EXPECT_EQ(to_json(Filtered{.passed = {"n1"}, .failed = {{"n2", "full"}}}),
            R"({"Error":"","FailedNodes":{"n2":"full"},"NodeNames":["n1"]})");
  EXPECT_EQ(to_json(Filtered{}), R"({"Error":"","FailedNodes":{},"NodeNames":[]})");
  EXPECT_EQ(to_json(std::vector<Points>{{.node = "n1", .score = 10}, {.node = "n2", .score = 0}}),
            R"([{"Host":"n1","Score":10},{"Host":"n2","Score":0}])");
  EXPECT_EQ(error_json("no \"pod\""), R"({"Error":"no \"pod\""})");
}

TEST(ExtenderDocuments, AQuestionOfMoreValuesThanNodesExplainIsRefused) {
  std::string text = R"({"NodeNames":["n1"],"Pod":{"metadata":{},"spec":[0)";
  for (std::size_t i = 0; i < kMaxQuestionValues; ++i) text += ",0";
  const auto question = parse_question(text + "]}}", "berth.org");
  ASSERT_FALSE(question);
  EXPECT_THAT(question.error().message(), ::testing::HasSubstr("more than 100000 values"));
}

}  // namespace
}  // namespace berth::extender
