// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/command.h"
#include "cli/document.h"

#include <functional>
#include <string>

namespace berth::cli {

// Prints a document of the daemon on the session's output: with --json as it is, else by `render`. `what`
// names it where it is no JSON.
Outcome<void> show_document(Session& session, const std::string& text, const char* what,
                            const std::function<void(const Document&)>& render);

}  // namespace berth::cli
