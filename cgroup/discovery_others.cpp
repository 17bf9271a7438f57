// SPDX-License-Identifier: Apache-2.0
// The groups beside all workloads, which may be confined as a whole.
#include "cgroup/discovery_tree.h"
#include "cgroup/kubelet_state.h"
#include "cgroup/recognise.h"

#include <cerrno>
#include <optional>
#include <utility>

namespace berth::cgroup {

struct Tree::OtherSearch {
  const Discovery::AboutOthers& about;
  std::size_t most;
  bool pods;  // berth manages them
  const Node* own;
  std::map<std::string, OtherGroup> groups = {};
  std::size_t more = 0;
};

std::map<std::string, OtherGroup> Tree::other_groups(const Discovery::AboutOthers& about, std::size_t most,
                                                     std::size_t& more) {
  OtherSearch search{.about = about, .most = most, .pods = judge_pods(rules_), .own = find(about.own)};
  std::vector<Node*> whole;
  for (const auto& [name, child] : root_.children) {
    if (!must_be_divided(*child, true, search)) whole.push_back(child.get());
  }
  for (Node* node : whole) add_other(*node, {}, search);
  more = search.more;
  return std::move(search.groups);
}

std::optional<std::string> Tree::why_spared(const Node& node, const OtherSearch& search) const {
  const std::string path = node.path();
  if (!search.pods && (is_weighed_by_kubelet(path) || pod_qos(path))) return "no rule is about pods";
  if (is_pod_of_the_system(pod_logs_, pod_uid(path))) return "it is of a pod of kube-system";
  return search.about.spared(path);
}

// Whether the node must not be confined as a whole. Then adds the parts that may be. `named_by_root`: only
// root can make cgroups beside it.
bool Tree::must_be_divided(Node& node, bool named_by_root, OtherSearch& search) {
  const bool trusted = named_by_root && is_trusted(node);
  if (node.verdict) {
    // An empty cgroup of a user is no service, whatever its name.
    return named_by_root ||
           (node.populated && node.verdict->workload_class == model::WorkloadClass::latency_sensitive);
  }
  if (!named_by_root && &node == search.own) return true;
  if (node.ignored_by || node.of_the_system) return true;  // no name of a user makes it that
  if (named_by_root) {
    if (auto why = why_spared(node, search)) {
      add_other(node, *std::move(why), search);
      return true;
    }
  }
  std::vector<Node*> whole;
  bool divided = false;
  for (const auto& [name, child] : node.children) {
    if (must_be_divided(*child, trusted, search)) {
      divided = true;
    } else {
      whole.push_back(child.get());
    }
  }
  if (!divided) {
    auto why = named_by_root ? search.about.limited(node.path()) : std::nullopt;
    if (!why) return false;
    add_other(node, *std::move(why), search);
    return true;
  }
  // A user made and named what lies below its own group.
  for (Node* part : whole) {
    if (trusted) add_other(*part, {}, search);
  }
  return true;
}

// From here on it is watched: the groups change when it gets processes, or loses the last one.
void Tree::add_other(Node& node, std::string left_alone, OtherSearch& search) {
  std::string path = node.path();
  auto cgroup = Cgroup::open(root_path_, path);
  if (!cgroup || (*cgroup)->id() != node.id) return;  // its events are on the way
  const bool has_room = search.groups.size() < search.most;
  if (!node.verdict && node.events_watch < 0) {
    if (has_room) watch(node, (*cgroup)->fd(), Watched::events);
    refresh_populated(node, (*cgroup)->fd());
  }
  if (!node.populated && !search.about.held(path, node.id)) return;
  if (!has_room) {
    ++search.more;
    return;
  }
  OtherGroup group{.target = {}, .left_alone = std::move(left_alone)};
  group.target.cgroup = std::move(*cgroup);
  group.target.identity.id = path;
  describe_place(node, group.target);
  search.groups.emplace(std::move(path), std::move(group));
}

}  // namespace berth::cgroup
