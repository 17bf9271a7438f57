// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/document.h"

#include <string>

namespace berth::cli {

// An entry of berth.log/1, or a news of berth.watch/1, as a sentence without a full stop: the decision and
// its outcome, without the reason. A kind that is not known is told by its members. The text may have any
// characters.
std::string sentence_of(const Document& entry);

}  // namespace berth::cli
