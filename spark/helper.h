// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "os/file_descriptor.h"
#include "spark/frames.h"
#include "spark/interview.h"
#include "spark/wire.h"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>

namespace berth::spark {

// The connection to berth-sparkd, the process that asks drivers. systemd starts one for each connection
// (berth-sparkd.socket), and it ends with the connection. For one thread.
//
// berth-sparkd reads everything that strangers write, so berthd believes nothing of it: each message has a
// limit and is checked. If berth-sparkd dies, hangs, or says nonsense, the connection is closed. berthd
// tries again after kAgain_s.
class Helper {
 public:
  static constexpr std::chrono::seconds kPatience{15};  // for a round, which takes 9 s at most
  static constexpr std::chrono::seconds kAgain{5};
  static constexpr std::size_t kMostOpens = 2000;  // files that a round may ask for

  // `open` opens event logs; without it none is opened. `over`: whether to give up.
  Helper(
      std::filesystem::path socket, OpenFile open, std::function<bool()> over = [] { return false; });

  // Puts the question; see Ask. Connects first where needed. A question without drivers ends the connection.
  model::Result<Answer> ask(const Question& question);

 private:
  model::Result<Answer> try_ask(const Question& question);
  model::Result<void> connect(const wire::Patience& patience);
  model::Result<void> answer_open(const wire::Open& wanted, const Question& question,
                                  const wire::Patience& patience);

  std::filesystem::path path_;
  OpenFile open_;
  std::function<bool()> over_;
  os::FileDescriptor socket_;
  std::optional<model::Error> failed_;  // why there is no connection, until again_at_
  std::chrono::steady_clock::time_point again_at_{};
};

}  // namespace berth::spark
