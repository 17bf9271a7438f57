// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/document.h"
#include "cli/problem.h"

#include <functional>

namespace berth::cli {

// Follows berthd over the system bus, and calls `told` with each news: an entry of berth.log/1, or a document
// of the same form with the kind "straggler", "relocation" or "mode" (docs/contract/documents.md,
// berth.watch/1). Ends when `told` returns false, or when no process reads standard output any more, as
// SIGPIPE would end it. Problem unreachable where no berthd is on the bus, and where it leaves the bus.
Outcome<void> follow_daemon(const std::function<bool(const Document&)>& told);

}  // namespace berth::cli
