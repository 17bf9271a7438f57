// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"

namespace berth::spark {

// Answers berthd's questions on a connected stream socket until the other side closes it. A round that takes
// longer than 30 s ends this process by SIGALRM: berthd has given it up by then, and starts another one.
// Error `invalid_input` for a message that is no question, else the fault of the connection.
model::Result<void> serve(int socket);

}  // namespace berth::spark
