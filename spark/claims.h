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
//   the driver's sockets are known, it is one of these; or
// - there are no such executors, and all executors of another user do so. A Worker's executors belong to its
//   user, and drivers to theirs. No socket of a third user may listen there.
//
// In each case no other driver that is so qualified may claim the same.
//
// Executors of several other users may name the driver's address. Some of them may be fakes, which do not
// discredit the driver. If several of these users have an executor with the same id, none of them counts as
// that executor.
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
  // The same for one executor of that user. Its user's name is added if it may be a fake, as above.
  std::string name_of_executor(std::optional<uid_t> user, const std::string& app,
                               const std::string& executor) const;

 private:
  using User = std::optional<uid_t>;

  User party_of(User user, const std::string& app) const;
  void note_shared(const std::string& app, const std::vector<User>& users,
                   const std::map<User, std::vector<const Process*>>& executors);

  std::set<ProcessId> believed_;
  std::map<ProcessId, std::string> why_not_;
  std::map<std::string, std::set<User>> users_;           // by application
  std::set<std::pair<std::string, std::string>> shared_;  // executors of several users, by application
  std::map<std::string, std::map<User, User>>
      parties_;  // of executors, their driver's user where it is another
  std::map<std::string, std::set<User>> believed_users_;  // of drivers
};

}  // namespace berth::spark
