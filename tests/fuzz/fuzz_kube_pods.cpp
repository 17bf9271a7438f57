// SPDX-License-Identifier: Apache-2.0
// Lists of pods, and paths of cgroups: a list is refused in one line, or its names are safe in the path of a
// request; a path gives no UID, or one that is safe there, too.
#include "integrations/kubernetes/pod.h"
#include "tests/fuzz/property.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace {

constexpr std::size_t kMostEventText = 64;

bool is_safe(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
}

void check_event(const berth::kubernetes::Pod& pod, std::string_view text) {
  using berth::kubernetes::event_json;
  const berth::model::Departure departure{.kind = berth::model::Departure::Kind::evict,
                                          .time = 1,
                                          .workload = std::string(text),
                                          .decision = std::string(text),
                                          .reason = std::string(text)};
  const std::string event = event_json(pod, departure, "n1");
  fuzz::require(event == event_json(pod, departure, "n1"), "an Event is always the same");
  fuzz::require(event.size() < 16'384, "an Event is short");
  fuzz::require(std::none_of(event.begin(), event.end(), [](char c) { return c >= 0 && c < ' '; }),
                "an Event is one line");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = fuzz::text_of(data, size);
  if (const auto uid = berth::kubernetes::pod_uid_of(text)) {
    fuzz::require(is_safe(*uid) && uid->size() <= 63, "a UID is safe");
    fuzz::require(text.starts_with("kube"), "kubelet's own groups begin with its name");
  }
  // It costs more than all else here, and longer texts add nothing.
  if (size <= kMostEventText) check_event({.space = "a", .name = "b", .uid = "c"}, text);
  const auto page = berth::kubernetes::parse_pods(text);
  if (!page) {
    fuzz::require_line(page.error().message());
    return 0;
  }
  for (const auto& pod : page->pods) {
    fuzz::require(is_safe(pod.space) && is_safe(pod.name) && is_safe(pod.uid), "names are safe");
    fuzz::require(berth::kubernetes::eviction_path(pod).starts_with("/api/v1/namespaces/"), "a path is one");
  }
  const std::string path = berth::kubernetes::pods_path("n1", 1, page->next);
  fuzz::require(std::count(path.begin(), path.end(), '&') <= 2, "a mark adds no parameter");
  return 0;
}
