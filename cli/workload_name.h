// SPDX-License-Identifier: Apache-2.0
// Finds workloads by short names.
#pragma once

#include "cli/daemon_client.h"
#include "cli/problem.h"

#include <string>
#include <vector>

namespace berth::cli {

// The one of `ids` that `given` means: itself, else the one with that last path component, with or without
// its unit's ".service" or ".scope". Returns `given` where there is none. Problem wrong_use where several are
// meant. A user may name its groups like others' work, so of `users` (ids, ascending) each is meant by its
// whole id alone; problem wrong_use where the name is only of these.
Outcome<std::string> meant_by(const std::string& given, const std::vector<std::string>& ids,
                              const std::vector<std::string>& users = {});

// "; did you mean system.slice/nginx.service?" of the ids that resemble `given` (cli/similar.h). Otherwise of
// those whose last component does, with or without its unit's ".service" or ".scope". At most three; "" where
// none does.
std::string meant_perhaps(const std::string& given, const std::vector<std::string>& ids);

struct Addressed {
  DaemonClient daemon;
  std::string id;
  std::string hint;  // as of meant_perhaps(), where the daemon has no workload `id`; otherwise ""

  // The daemon's problem with `id`, with the hint where it failed.
  Problem hinted(Problem problem) const;
};

// The daemon, and the one workload that `given` means. Returns `given` itself where the daemon has no such
// workload, so that the user reads the daemon's own answer. Problem wrong_use where it cannot be an id;
// otherwise the problems of meant_by() and DaemonClient::connect().
Outcome<Addressed> address(const std::string& given);

}  // namespace berth::cli
