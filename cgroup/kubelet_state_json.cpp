// SPDX-License-Identifier: Apache-2.0
#include "cgroup/kubelet_state.h"
#include "model/json_reader.h"
#include "os/proc_files.h"

#include <cstddef>

namespace berth::cgroup {

std::optional<ExclusiveOfKubelet> read_exclusive_of_kubelet(const std::filesystem::path& state) {
  // Far above what 110 pods take, which is what kubelet runs unless it is told otherwise.
  constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  const auto document = model::parse_json(os::read_start(state, kMostBytes));
  if (!document) return std::nullopt;
  model::ReadContext context;
  ExclusiveOfKubelet exclusive;
  {
    const model::JsonValue root(context, *document);
    model::JsonObject object(root);
    object.ignore_unknown();
    const bool is_static = object.required("policyName").text() == "static";
    const auto entries = object.optional("entries");
    if (is_static && entries) {
      entries->each_member([&exclusive](const std::string& uid, const model::JsonValue& pod) {
        pod.each_member([&of_pod = exclusive[uid]](const std::string&, const model::JsonValue& container) {
          of_pod.push_back(container.cpulist());
        });
      });
    }
  }
  if (context.failed()) return std::nullopt;
  return exclusive;
}

}  // namespace berth::cgroup
