// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "spark/interview.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include <sys/types.h>

namespace berth::spark {

// One limit for the memory that all drivers together may take, whatever their number.
//
// Each user with a driver has an equal share. A user may use memory beyond its share while other users leave
// it free. So the drivers of one user cannot keep out the driver of another one.
class Budget {
 public:
  using Owner = ProcessId;            // a driver's
  using User = std::optional<uid_t>;  // all drivers of unknown users are one user

  explicit Budget(std::size_t most) : most_(most) {}

  // The driver counts for its user's share from now on.
  void add(const Owner& owner, User user);
  void remove(const Owner& owner);

  struct Answer {
    bool granted = false;
    // A driver of a user beyond its share has to give up its memory first, and then to be asked about again.
    std::optional<Owner> gives_way;
  };
  // Whether the driver may take `bytes` in all. Where it may, they count from now on.
  Answer take(const Owner& owner, std::size_t bytes);

  std::size_t most() const { return most_; }
  std::size_t taken() const { return taken_; }
  std::size_t taken_by(User user) const;
  std::size_t share() const;

 private:
  struct Entry {
    User user;
    std::size_t bytes = 0;
  };
  std::size_t most_;
  std::size_t taken_ = 0;
  std::map<Owner, Entry> entries_;
};

}  // namespace berth::spark
