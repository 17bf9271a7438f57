// SPDX-License-Identifier: Apache-2.0
#include "integrations/extender/http_message.h"

#include <string>

#include <gtest/gtest.h>

namespace berth::extender {
namespace {

const std::string kRequest =
    "POST /filter HTTP/1.1\r\nHost: 127.0.0.1:8472\r\nContent-Type: application/json\r\nContent-Length: "
    "7\r\n\r\n";

RequestHead good(const std::string& text) {
  const auto head = parse_head(text);
  EXPECT_TRUE(head && *head) << text;
  return head && *head ? **head : RequestHead();
}

TEST(ExtenderHttpMessage, IsRead) {
  const RequestHead head = good(kRequest + "{\"a\":1}");
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.path, "/filter");
  EXPECT_EQ(head.head_bytes, kRequest.size());
  EXPECT_EQ(head.body_bytes, 7U);
  EXPECT_TRUE(head.keep);
  EXPECT_FALSE(head.continues);
}

TEST(ExtenderHttpMessage, HeadersAreUnderstoodInAnyCase) {
  const RequestHead head =
      good("POST / HTTP/1.1\r\nCONTENT-LENGTH:\t9 \r\nConnection: Close\r\nexpect: 100-Continue\r\n\r\n");
  EXPECT_EQ(head.body_bytes, 9U);
  EXPECT_FALSE(head.keep);
  EXPECT_TRUE(head.continues);
  EXPECT_FALSE(good("GET / HTTP/1.0\r\n\r\n").keep);
}

TEST(ExtenderHttpMessage, APartIsWaitedFor) {
  for (std::size_t length = 0; length < kRequest.size(); ++length) {
    const auto head = parse_head(kRequest.substr(0, length));
    EXPECT_TRUE(head && !*head) << length;
  }
}

TEST(ExtenderHttpMessage, IsRefused) {
  for (const char* bad :
       {"\r\n\r\n", "POST\r\n\r\n", "POST /\r\n\r\n", "POST / HTTP/2\r\n\r\n", "PO\tST / HTTP/1.1\r\n\r\n",
        "POST /a b HTTP/1.1\r\n\r\n", "POST / HTTP/1.1\r\nno colon\r\n\r\n", "POST / HTTP/1.1\r\n: x\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: 1x\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n"})
    EXPECT_FALSE(parse_head(bad)) << bad;
  EXPECT_FALSE(parse_head(std::string(kMaxHeadBytes, 'x')));
}

TEST(ExtenderHttpMessage, BytesThatNoRequestLineHasAreRefusedAtOnce) {
  for (const char* bad : {"\r", "\n", "\x16\x03", "POST /\tfilter", "GET / HTTP/1.1\n"})
    EXPECT_FALSE(parse_head(bad)) << bad;
}

TEST(ExtenderHttpMessage, AHandshakeOfTlsIsKnown) {
  EXPECT_TRUE(is_tls("\x16\x03\x01"));
  EXPECT_TRUE(is_tls("\x16"));
  EXPECT_FALSE(is_tls(""));
  EXPECT_FALSE(is_tls("P\x16"));
}

TEST(ExtenderHttpMessage, AnAnswerIsOneText) {
  EXPECT_EQ(to_text({.status = 200, .body = "[]"}, true),
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n[]");
  EXPECT_EQ(to_text({.status = 413, .body = ""}, false),
            "HTTP/1.1 413 Content Too Large\r\nContent-Type: application/json\r\nContent-Length: "
            "0\r\nConnection: close\r\n\r\n");
}

}  // namespace
}  // namespace berth::extender
