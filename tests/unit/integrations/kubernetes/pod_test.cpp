// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/pod.h"

#include "model/json_text.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::kubernetes {
namespace {

using model::Departure;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kUid = "6f1b2c4e-0000-4000-8000-1234567890ab";

TEST(KubernetesPod, TheUidIsInThePathOfItsGroup) {
  for (const std::string path :
       {"kubepods.slice/kubepods-pod6f1b2c4e_0000_4000_8000_1234567890ab.slice/cri-containerd-1.scope",
        "kubepods.slice/kubepods-besteffort.slice/"
        "kubepods-besteffort-pod6f1b2c4e_0000_4000_8000_1234567890ab.slice/crio-1.scope/container",
        "kubepods.slice/kubepods-burstable.slice/"
        "kubepods-burstable-pod6f1b2c4e_0000_4000_8000_1234567890ab.slice",
        "kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
        "kubelet-kubepods-besteffort-pod6f1b2c4e_0000_4000_8000_1234567890ab.slice/cri-containerd-1.scope",
        "a.slice/a-b.slice/a-b-kubepods.slice/a-b-kubepods-burstable.slice/"
        "a-b-kubepods-burstable-pod6f1b2c4e_0000_4000_8000_1234567890ab.slice/cri-containerd-1.scope",
        "kubepods-besteffort-pod6f1b2c4e_0000_4000_8000_1234567890ab.slice:cri-containerd:1",
        "a-kubepods-pod6f1b2c4e_0000_4000_8000_1234567890ab.slice:crio:1",
        "kubepods/besteffort/pod6f1b2c4e-0000-4000-8000-1234567890ab/1",
        "kubepods/pod6f1b2c4e-0000-4000-8000-1234567890ab/1",
        "kubelet/kubepods/burstable/pod6f1b2c4e-0000-4000-8000-1234567890ab/1"})
    EXPECT_EQ(pod_uid_of(path), kUid) << path;
}

TEST(KubernetesPod, AUserCannotPretendToBeOne) {
  const std::string pod = "kubepods-besteffort-pod6f1b2c4e_0000_4000_8000_1234567890ab.slice";
  for (const std::string& path :
       {std::string(), std::string("/"), "user.slice/kubepods.slice/kubepods-besteffort.slice/" + pod + "/1",
        "system.slice/docker-1.scope/kubepods.slice/kubepods-besteffort.slice/" + pod,
        // Of another class, at another place, or of no class.
        "kubepods.slice/kubepods-burstable.slice/" + pod, "kubepods.slice/" + pod,
        "kubepods.slice/other.slice/" + pod, "kubepods.slice/kubepods-besteffort.slice/x/" + pod,
        std::string("kubepods/besteffort/burstable/pod6f1b2c4e-0000/1"),
        // Without a UID, or with one that cannot be.
        std::string("kubepods/besteffort/pod"), std::string("kubepods/podA/1"),
        std::string("kubepods/pod../1"), "kubepods/pod" + std::string(64, 'a') + "/1",
        std::string("kubepods.slice"), std::string("kubepods.slice/kubepods-pod.slice/1"),
        // In the notation of a slice, inside another group or of another slice.
        "system.slice/x.service/" + pod + ":cri-containerd:1", std::string("-poda.slice:cri-containerd:1"),
        std::string("batch-poda.slice:cri-containerd:1"),
        // A slice where systemd would not put it.
        "a.slice/b-kubepods.slice/b-kubepods-besteffort.slice/b-" + pod})
    EXPECT_EQ(pod_uid_of(path), std::nullopt) << path;
  // A group below a pod's own is of that pod, whatever its name.
  EXPECT_EQ(pod_uid_of("kubepods/pod1-2/x/kubepods.slice/kubepods-besteffort.slice/" + pod), "1-2");
}

json list(const json& items) {
  return {{"kind", "PartialObjectMetadataList"}, {"metadata", json::object()}, {"items", items}};
}

json item(const std::string& name, const std::string& space = "batch") {
  return {
      {"kind", "PartialObjectMetadata"},
      {"metadata", {{"name", name}, {"namespace", space}, {"uid", "u-" + name}, {"labels", {{"a", "b"}}}}}};
}

std::string refusal(const json& document) {
  const auto page = parse_pods(model::json_text(document));
  EXPECT_FALSE(page);
  return page ? "" : page.error().message();
}

TEST(KubernetesPod, ListsAreRead) {
  json document = list({item("a"), item("b", "default")});
  document["metadata"] = {{"resourceVersion", "7"}, {"continue", "eyJ2IjoibWV0YS5rOHMuaW8vdjEi_-"}};
  auto page = parse_pods(model::json_text(document));
  ASSERT_TRUE(page) << page.error().message();
  EXPECT_THAT(page->pods, ElementsAre(Pod{"batch", "a", "u-a"}, Pod{"default", "b", "u-b"}));
  EXPECT_EQ(page->next, "eyJ2IjoibWV0YS5rOHMuaW8vdjEi_-");
  page = parse_pods(R"({"kind":"PodList","items":null})");
  ASSERT_TRUE(page) << page.error().message();
  EXPECT_TRUE(page->pods.empty() && page->next.empty());
}

TEST(KubernetesPod, HostileListsAreRefused) {
  EXPECT_THAT(refusal({{"kind", "Status"}}), HasSubstr("$.kind: is no list of pods"));
  for (const char* bad : {"", "..", "a/b", "a?b", "A", "a\nb"}) {
    EXPECT_THAT(refusal(list(json::array({item(bad)}))), HasSubstr("$.items[0].metadata.name")) << bad;
    EXPECT_THAT(refusal(list(json::array({item("a", bad)}))), HasSubstr("$.items[0].metadata.namespace"))
        << bad;
  }
  json document = list(json::array({item("a")}));
  document["metadata"]["continue"] = "a&limit=1000000";
  EXPECT_THAT(refusal(document), HasSubstr("$.metadata.continue: is no mark of a list"));
  EXPECT_FALSE(parse_pods("<html>"));
}

Departure eviction() {
  return {.kind = Departure::Kind::evict,
          .time = 1790000000.25,
          .workload = "kubepods/pod1-2/3",
          .decision = "d-17",
          .reason = "memory is short"};
}

const Pod kPod{.space = "batch", .name = "sort-1", .uid = "1-2"};

TEST(KubernetesPod, AnEventNamesThePodAndTheReason) {
  EXPECT_EQ(events_path(kPod), "/api/v1/namespaces/batch/events");
  const json event = model::json_of(event_json(kPod, eviction(), "n1"));
  EXPECT_EQ(event["metadata"]["namespace"], "batch");
  EXPECT_EQ(event["involvedObject"], json({{"apiVersion", "v1"},
                                           {"kind", "Pod"},
                                           {"name", "sort-1"},
                                           {"namespace", "batch"},
                                           {"uid", "1-2"}}));
  EXPECT_EQ(event["reason"], "EvictedByBerth");
  EXPECT_EQ(event["message"], "berth ends kubepods/pod1-2/3 (d-17): memory is short");
  EXPECT_EQ(event["source"], json({{"component", "berth-kube"}, {"host", "n1"}}));
  EXPECT_EQ(event["firstTimestamp"], "2026-09-21T14:13:20Z");
  Departure departure = eviction();
  departure.kind = Departure::Kind::relocate;
  departure.decision.clear();
  const json other = model::json_of(event_json(kPod, departure, "n1"));
  EXPECT_EQ(other["reason"], "RelocationNeeded");
  EXPECT_EQ(other["message"], "kubepods/pod1-2/3 should run on another node: memory is short");
  // Nobody's text is too long for the API.
  departure.workload = std::string(4000, 'x');
  EXPECT_LE(model::json_of(event_json(kPod, departure, "n1"))["message"].get<std::string>().size(), 1024U);
}

TEST(KubernetesPod, OneDepartureHasOneEvent) {
  const auto name = [](const Departure& departure, const Pod& pod = kPod) {
    return model::json_of(event_json(pod, departure, "n1"))["metadata"]["name"].get<std::string>();
  };
  EXPECT_TRUE(name(eviction()).starts_with("1-2."));
  EXPECT_EQ(name(eviction()).size(), 4 + 16U);
  Departure other = eviction();
  other.reason = "in other words";
  EXPECT_EQ(name(other), name(eviction()));
  other.time += 1;
  EXPECT_NE(name(other), name(eviction()));
  other = eviction();
  other.decision = "d-18";
  EXPECT_NE(name(other), name(eviction()));
  other = eviction();
  other.kind = Departure::Kind::relocate;
  EXPECT_NE(name(other), name(eviction()));
}

TEST(KubernetesPod, AnEvictionIsOfThatPodAlone) {
  EXPECT_EQ(eviction_path(kPod), "/api/v1/namespaces/batch/pods/sort-1/eviction");
  EXPECT_EQ(model::json_of(eviction_json(kPod)),
            json({{"apiVersion", "policy/v1"},
                  {"kind", "Eviction"},
                  {"metadata", {{"name", "sort-1"}, {"namespace", "batch"}}},
                  {"deleteOptions", {{"preconditions", {{"uid", "1-2"}}}}}}));
}

}  // namespace
}  // namespace berth::kubernetes
