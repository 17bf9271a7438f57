// SPDX-License-Identifier: Apache-2.0
#include "cgroup/kubelet_state.h"
#include "model/json_reader.h"
#include "os/directory.h"
#include "os/file_descriptor.h"
#include "os/proc_files.h"

#include <algorithm>
#include <cstddef>

#include <fcntl.h>

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

bool is_pod_of_the_system(const std::filesystem::path& logs, std::string_view uid) {
  // kubelet runs 110 pods unless it is told otherwise, and directories of former ones stay for a while.
  constexpr std::size_t kMostPods = 4096;
  static constexpr std::string_view kNamespace = "kube-system_";
  if (uid.empty()) return false;
  const os::FileDescriptor directory(open(logs.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto names = directory ? os::subdirectories(directory.get(), kMostPods) : std::nullopt;
  if (!names) return false;
  return std::any_of(names->begin(), names->end(), [uid](std::string_view name) {
    if (!name.starts_with(kNamespace) || !name.ends_with(uid)) return false;
    name.remove_suffix(uid.size());
    return name.size() > kNamespace.size() && name.ends_with('_');
  });
}

}  // namespace berth::cgroup
