// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"

#include <string>
#include <string_view>

namespace berth::daemon {

// True where standard error is the journal's stream (sd_journal(3), $JOURNAL_STREAM).
bool stderr_is_journal();

// Makes spdlog's default logger, the one global of the program: to the journal where standard error is
// connected to it, otherwise to standard error, a line a message.
void setup_log();

// "trace", "debug", "info", "warning", "error" or "critical". Error invalid_input for another word.
model::Result<void> set_log_level(std::string_view level);
std::string log_level();

}  // namespace berth::daemon
