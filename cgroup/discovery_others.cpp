// SPDX-License-Identifier: Apache-2.0
// The groups beside all workloads, which may be confined as a whole.
#include "cgroup/discovery_tree.h"
#include "os/beneath.h"

#include <cerrno>
#include <optional>
#include <utility>

namespace berth::cgroup {

struct Tree::OtherSearch {
  const Discovery::Spared& spared;
  std::size_t most;
  std::map<std::string, OtherGroup> groups = {};
  std::size_t more = 0;
};

std::map<std::string, OtherGroup> Tree::other_groups(const Discovery::Spared& spared, std::size_t most,
                                                     std::size_t& more) {
  OtherSearch search{.spared = spared, .most = most};
  std::vector<Node*> whole;
  for (const auto& [name, child] : root_.children) {
    if (!must_be_divided(*child, true, search)) whole.push_back(child.get());
  }
  for (Node* node : whole) add_other(*node, {}, search);
  more = search.more;
  return std::move(search.groups);
}

// Whether the node must not be confined as a whole. Then adds the parts that may be. `named_by_root`: only
// root can make cgroups beside it.
bool Tree::must_be_divided(Node& node, bool named_by_root, OtherSearch& search) {
  const bool trusted = named_by_root && is_trusted(node);
  if (node.verdict)
    return named_by_root || node.verdict->workload_class == model::WorkloadClass::latency_sensitive;
  if (node.ignored_by) return true;  // by a rule that takes no name of a user
  if (trusted) {
    if (auto why = search.spared(node.path())) {
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
  if (!divided) return false;
  // A user made and named what lies below its own group.
  for (Node* part : whole) {
    if (trusted) add_other(*part, {}, search);
  }
  return true;
}

// From here on it is watched: the groups change when it gets processes, or loses the last one.
void Tree::add_other(Node& node, std::string left_alone, OtherSearch& search) {
  std::string path = node.path();
  if (search.groups.size() >= search.most) {
    ++search.more;
    return;
  }
  auto cgroup = Cgroup::open(root_path_, path);
  if (!cgroup || (*cgroup)->id() != node.id) return;  // its events are on the way
  if (!node.verdict && node.events_watch < 0) {
    watch(node, (*cgroup)->fd(), Watched::events);
    refresh_populated(node, (*cgroup)->fd());
  }
  if (!node.populated) return;
  OtherGroup group{.target = {}, .left_alone = std::move(left_alone)};
  group.target.cgroup = std::move(*cgroup);
  group.target.identity.id = path;
  describe_place(node, group.target);
  search.groups.emplace(std::move(path), std::move(group));
}

}  // namespace berth::cgroup
