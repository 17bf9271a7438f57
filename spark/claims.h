// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "spark/endpoints.h"
#include "spark/interview.h"
#include "spark/process.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace berth::spark {

// A driver that says that it is the driver of an application.
struct Claim {
  pid_t pid = 0;
  std::uint64_t started = 0;
  std::optional<uid_t> user;
  std::string app;
  bool fresh = false;  // its facts are not too old
  // Where the driver listens; nullopt where that is not known.
  std::optional<std::vector<std::string>> endpoints;
};

// Decides which driver is believed. A driver may claim any application, and any user can write a command
// line.
//
// An executor's command line names the address of its driver. A driver is believed about an application under
// these conditions:
//
// - this host has no executor of the application; or
// - executors of the driver's own user name addresses of this host where a socket of that user listens. If
// the
//   driver's sockets are known, it is one of these; or
// - there are no such executors, and executors of one other user do so. A Worker's executors belong to its
//   user, and drivers to theirs. No socket of a third user may listen there.
//
// In each case no other driver that is so qualified may claim the same.
class Claims {
 public:
  // `listening`: of all addresses that executors name (listening_among).
  Claims(const std::vector<Claim>& claims, const std::vector<Process>& processes,
         const std::set<UserAddress>& listening);

  // Whether the facts of this driver count.
  bool is_believed(const ProcessId& driver) const { return believed_.count(driver) > 0; }
  // Why it cannot be the driver of the application that it claims; empty where it can.
  std::string why_not(const ProcessId& driver) const;
  // The name of the application for the processes of one user. Usually its id. If processes of several users
  // name it, and they do not belong together, these are several applications: the believed one keeps the id,
  // and others get their user's name.
  std::string name_of(std::optional<uid_t> user, const std::string& app) const;

 private:
  using User = std::optional<uid_t>;

  User party_of(User user, const std::string& app) const;

  std::set<ProcessId> believed_;
  std::map<ProcessId, std::string> why_not_;
  std::map<std::string, std::set<User>> users_;  // by application
  std::map<std::string, std::map<User, User>>
      parties_;  // of executors, their driver's user where it is another
  std::map<std::string, std::set<User>> believed_users_;  // of drivers
};

}  // namespace berth::spark
