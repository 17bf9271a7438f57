// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policies/vcpus/marks.h"
#include "policies/vcpus/optimal/ground.h"

#include <memory>
#include <vector>

namespace berth::policies::optimal {

// Two positions that exchange their contents: the owner, or none.
struct Exchange {
  int a = 0;
  int b = 0;
};

// Tenants on positions, with their score. The score after an exchange costs as much as the cores and tenants
// that the exchange touches, not as much as the node.
class Layout {
 public:
  explicit Layout(const Ground& ground);
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;
  virtual ~Layout() = default;

  // Tenants without a place are absent: they neither suffer nor disturb.
  void set(const Places& places);
  const Places& places() const { return places_; }
  const Ground& ground() const { return ground_; }
  // Tenant that owns a position; -1 where there is none.
  int owner(int position) const { return owner_[position]; }

  // The sum of vcpus * score over the tenants: score_node times the size of the node.
  virtual double total() const = 0;
  // The work of scoring an exchange of one pair, in units of work.h.
  virtual double cost() const = 0;

  // For each tenant, the most that the total can fall if it moves and all others stay. For several that move,
  // it falls by no more than the sum of theirs. Infinite where this is not known.
  virtual std::vector<double> most_gains() const;

  // Exchanges the contents of all pairs. Each position occurs once. Every tenant must lie in one of its
  // regions afterwards. The same exchange once more takes it back.
  void exchange(const std::vector<Exchange>& pairs);

 protected:
  // Computes everything for the present places.
  virtual void rebuild() = 0;
  // Before and after contents change on `cores`. `tenants` have a vCPU on them.
  virtual void lift(const std::vector<int>& cores, const std::vector<int>& tenants) = 0;
  virtual void settle(const std::vector<int>& cores, const std::vector<int>& tenants) = 0;

  // Calls visit(tenant, number of its vCPUs there) for each owner on a core.
  template <typename Visit>
  void for_each_owner(int core, Visit visit) const {
    const std::vector<int>& threads = node_.core_threads(core);
    for (std::size_t i = 0; i < threads.size(); ++i) {
      const int tenant = owner_[threads[i]];
      if (tenant < 0) continue;
      bool first = true;
      for (std::size_t j = 0; j < i; ++j) first = first && owner_[threads[j]] != tenant;
      if (!first) continue;
      int count = 0;
      for (std::size_t j = i; j < threads.size(); ++j) count += owner_[threads[j]] == tenant ? 1 : 0;
      visit(tenant, count);
    }
  }

  // Calls visit(region) for the regions of a core in which some tenant may lie.
  template <typename Visit>
  void for_each_region(int core, Visit visit) const {
    const int position = node_.core_threads(core).front();
    if (node_.domain(position) >= 0) visit(node_.domain(position));
    if (!ground_.spanning()) return;
    if (node_.socket(position) >= 0 && node_.socket(position) != node_.domain(position)) {
      visit(node_.socket(position));
    }
    visit(node_.whole());
  }

  const Ground& ground_;
  const Node& node_;
  Places places_;
  std::vector<int> owner_;

 private:
  void touch(int core);
  void swap_contents(int a, int b);

  std::vector<int> slot_;  // by position: index in the place of its owner
  std::vector<int> cores_;
  std::vector<int> tenants_;
  Marks core_marks_;
  Marks tenant_marks_;
};

// The layout of the ground's weighting; no tenant is placed. The ground must outlive it.
std::unique_ptr<Layout> make_layout(const Ground& ground);
std::unique_ptr<Layout> make_overlap_layout(const Ground& ground);
std::unique_ptr<Layout> make_request_layout(const Ground& ground);

}  // namespace berth::policies::optimal
