// SPDX-License-Identifier: Apache-2.0
#include "spark/helper.h"

#include "spark/event_log_access.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace berth::spark {

namespace {

using model::ErrorKind;

// The answer to a process that may say anything.
auto nonsense(const std::string& why) {
  return model::fail(ErrorKind::invalid_input, "it sent what is no answer: " + why);
}

}  // namespace

Helper::Helper(std::filesystem::path socket, OpenFile open, std::function<bool()> over)
    : path_(std::move(socket)), open_(std::move(open)), over_(std::move(over)) {}

model::Result<Answer> Helper::ask(const Question& question) {
  if (question.drivers.empty()) {
    socket_ = {};
    return Answer{};
  }
  const auto now = std::chrono::steady_clock::now();
  if (failed_ && now < again_at_) return model::fail(*failed_);
  auto answer = try_ask(question);
  failed_.reset();
  if (answer) return answer;
  socket_ = {};
  failed_ = answer.error();
  again_at_ = std::chrono::steady_clock::now() + kAgain;
  return answer;
}

model::Result<void> Helper::connect(const wire::Patience& patience) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.native().size() >= sizeof(address.sun_path))
    return model::fail(ErrorKind::invalid_input, "the path of its socket is too long");
  std::memcpy(address.sun_path, path_.c_str(), path_.native().size());
  os::FileDescriptor made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made) return model::fail(model::Error::from_errno(errno, "socket"));
  if (patience.over()) return model::fail(ErrorKind::transient, "given up");
  if (::connect(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return model::fail(model::Error::from_errno(
        errno, fmt::format("cannot connect to {} (systemctl start berth-sparkd.socket)", path_.string())));
  }
  socket_ = std::move(made);
  return {};
}

// A driver says where its log is. It gets an event log only of its own user.
model::Result<void> Helper::answer_open(const wire::Open& wanted, const Question& question,
                                        const wire::Patience& patience) {
  const auto driver = std::find_if(question.drivers.begin(), question.drivers.end(),
                                   [&](const DriverPlace& place) { return place.process == wanted.process; });
  if (driver == question.drivers.end()) return nonsense("a file for a process that is no driver");
  const auto opened = [&]() -> model::Result<LogFile> {
    if (!open_ || !driver->user) return model::fail(ErrorKind::unavailable, "its user is not known");
    return open_event_log(open_, wanted.path, *driver->user);
  }();
  wire::Opened answer{.done = opened.has_value(), .kind = {}, .message = {}, .parts = {}};
  if (opened) {
    answer.parts = opened->parts;
  } else {
    answer.kind = opened.error().kind();
    answer.message = opened.error().message();
  }
  return wire::send_frame(socket_.get(), wire::Type::opened, wire::encode(answer), patience,
                          opened ? opened->file.get() : -1);
}

model::Result<Answer> Helper::try_ask(const Question& question) {
  const wire::Patience patience{.until = std::chrono::steady_clock::now() + kPatience, .over = over_};
  if (!socket_) {
    if (auto connected = connect(patience); !connected) return model::fail(connected.error());
  }
  auto sent = wire::send_frame(socket_.get(), wire::Type::question, wire::encode(question), patience);
  if (!sent) return model::fail(sent.error());
  Answer answer;
  std::size_t most_bytes = kMostAnswerBytes;
  std::size_t opens = 0;
  for (;;) {
    const auto frame = wire::receive_frame(socket_.get(), kMostAnswerBytes, patience);
    if (!frame) return model::fail(frame.error());
    switch (frame->type) {
      case wire::Type::open: {
        const auto wanted = wire::decode_open(frame->bytes);
        if (!wanted) return nonsense(wanted.error().message());
        if (++opens > kMostOpens) return nonsense("too many files");
        if (auto done = answer_open(*wanted, question, patience); !done) return model::fail(done.error());
        break;
      }
      case wire::Type::facts: {
        auto facts = wire::decode_facts(frame->bytes, most_bytes);
        if (!facts) return nonsense(facts.error().message());
        if (answer.drivers.size() >= question.drivers.size()) return nonsense("facts of too many drivers");
        answer.drivers.push_back(*std::move(facts));
        break;
      }
      case wire::Type::done: {
        const auto goes_on = wire::decode_done(frame->bytes);
        if (!goes_on) return nonsense(goes_on.error().message());
        answer.goes_on = *goes_on;
        return answer;
      }
      default:
        return nonsense("a message of another kind");
    }
  }
}

}  // namespace berth::spark
