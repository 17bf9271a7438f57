// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policies/vcpus/optimal/layout.h"

#include <vector>

namespace berth::policies::optimal {

// The exchanges that are allowed in a layout while some tenants are open. Open tenants, and vCPUs that no
// tenant owns, change places. All others stay.
class Exchanges {
 public:
  // The layout must outlive it.
  explicit Exchanges(const Layout& layout);

  void open(int tenant) { open_[tenant] = 1; }
  void close(int tenant) { open_[tenant] = 0; }
  bool is_open(int tenant) const { return open_[tenant] != 0; }
  // The positions that may change owners: of open tenants, and givable ones without an owner. Ascending.
  std::vector<int> available() const;

  // Fills `pairs` with an exchange that brings the owner of `from`, an open tenant, to `to`, which is
  // available. The owner of `to` gives way.
  // Mostly that is one pair. Where that would tear a tenant apart between regions, whole tenants change
  // places: the larger of the two with the other, and with as many more vCPUs as it takes. `start` says where
  // in the region the search for these begins. False where there is no exchange, or where it changes no
  // score.
  bool bring(int from, int to, int start, std::vector<Exchange>& pairs);

 private:
  bool stays_whole(int tenant, int position) const;
  bool whole(int mover, int target, int start, std::vector<Exchange>& pairs);
  bool collect(int mover, int region, int start, bool owned);
  bool take(int mover, int position);
  bool displaced_fit(const std::vector<int>& old) const;

  const Layout& layout_;
  const Ground& ground_;
  const Node& node_;
  std::vector<char> open_;
  std::vector<int> taken_;  // positions that the mover gets
  Marks taken_marks_;
};

}  // namespace berth::policies::optimal
