// SPDX-License-Identifier: Apache-2.0
#include "spark/sparkd/serve.h"

#include "spark/frames.h"
#include "spark/interview.h"
#include "spark/sparkd/http_get.h"
#include "spark/sparkd/interviewer.h"
#include "spark/wire.h"

#include <optional>
#include <string>
#include <utility>

#include <unistd.h>

namespace berth::spark {

namespace {

using model::ErrorKind;

constexpr unsigned kLongestRound_s = 30;

// Ends this process if a round takes too long.
struct RoundLimit {
  RoundLimit() { alarm(kLongestRound_s); }
  RoundLimit(const RoundLimit&) = delete;
  RoundLimit& operator=(const RoundLimit&) = delete;
  ~RoundLimit() { alarm(0); }
};

// Has berthd open a part of an event log.
model::Result<LogFile> opened_by_berthd(int socket, const ProcessId& driver,
                                        const std::filesystem::path& path) {
  if (path.native().size() > wire::Open::kMostPathBytes)
    return model::fail(ErrorKind::refused, "the path is too long");
  const wire::Open wanted{.process = driver, .path = path.string()};
  if (auto sent = wire::send_frame(socket, wire::Type::open, wire::encode(wanted)); !sent)
    return model::fail(sent.error());
  auto frame = wire::receive_frame(socket, wire::kMostFrameBytes, {}, true);
  if (!frame) return model::fail(frame.error());
  const auto answer = wire::decode_opened(frame->bytes);
  if (frame->type != wire::Type::opened || !answer ||
      answer->done != (static_cast<bool>(frame->file) || answer->parts))
    return model::fail(ErrorKind::invalid_input, "berthd sent no file and no reason");
  if (!answer->done) return model::fail(answer->kind, answer->message);
  return LogFile{.file = std::move(frame->file), .parts = answer->parts};
}

model::Result<void> send_answer(int socket, const Answer& answer) {
  for (const DriverFacts& facts : answer.drivers) {
    if (auto sent = wire::send_frame(socket, wire::Type::facts, wire::encode(facts)); !sent) return sent;
  }
  return wire::send_frame(socket, wire::Type::done, wire::encode_done(answer.goes_on));
}

}  // namespace

model::Result<void> serve(int socket) {
  HttpClient client;
  Interviewer interviewer([&client](const std::string& url) { return client.get(url); },
                          [socket](const ProcessId& driver, const std::filesystem::path& path) {
                            return opened_by_berthd(socket, driver, path);
                          });
  for (;;) {
    const auto frame = wire::receive_frame(socket, wire::kMostFrameBytes);
    if (!frame && frame.error().kind() == ErrorKind::gone) return {};
    if (!frame) return model::fail(frame.error());
    const auto question = wire::decode_question(frame->bytes);
    if (frame->type != wire::Type::question || !question)
      return model::fail(ErrorKind::invalid_input, "the other side is not berthd: it sent no question");
    const RoundLimit limit;
    auto sent = send_answer(socket, interviewer.ask(*question));
    if (!sent) return sent.error().kind() == ErrorKind::gone ? model::Result<void>() : sent;
  }
}

}  // namespace berth::spark
