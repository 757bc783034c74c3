/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The values of org.varlink.certification. */
#include "certification.h"

#define PI   "3.141592653589793"
#define FOUR "\"bool\": false, \"int\": 2, \"float\": " PI ", \"string\": \"a lot of string\""
#define MAP  "\"map\": {\"foo\": \"Foo\", \"bar\": \"Bar\"}"
#define SET  "\"set\": {\"one\": {}, \"two\": {}, \"three\": {}}"
#define MYTYPE                                                                                               \
  "\"mytype\": {"                                                                                            \
  "\"object\": {\"method\": \"org.varlink.certification.Test09\", \"parameters\": {" MAP "}},"               \
  "\"enum\": \"two\","                                                                                       \
  "\"struct\": {\"first\": 1, \"second\": \"2\"},"                                                           \
  "\"array\": [\"one\", \"two\", \"three\"],"                                                                \
  "\"dictionary\": {\"foo\": \"Foo\", \"bar\": \"Bar\"},"                                                    \
  "\"stringset\": {\"one\": {}, \"two\": {}, \"three\": {}},"                                                \
  "\"interface\": {\"foo\": [null, {\"Foo\": \"foo\", \"Bar\": \"bar\"}, null, {\"one\": \"foo\", \"two\": " \
  "\"bar\"}],"                                                                                               \
  " \"anon\": {\"foo\": true, \"bar\": false}}"                                                              \
  "}"

const CertificationStep certification_steps[] = {
    {"Test01", "{}", "{\"bool\": true}"},
    {"Test02", "{\"bool\": true}", "{\"int\": 1}"},
    {"Test03", "{\"int\": 1}", "{\"float\": 1.0}"},
    {"Test04", "{\"float\": 1.0}", "{\"string\": \"ping\"}"},
    {"Test05", "{\"string\": \"ping\"}", "{" FOUR "}"},
    {"Test06", "{" FOUR "}", "{\"struct\": {" FOUR "}}"},
    {"Test07", "{\"struct\": {" FOUR "}}", "{" MAP "}"},
    {"Test08", "{" MAP "}", "{" SET "}"},
    {"Test09", "{" SET "}", "{" MYTYPE "}"},
};

const size_t n_certification_steps = sizeof certification_steps / sizeof certification_steps[0];

const char certification_mytype[] = "{" MYTYPE "}";

json_t *certification_reply(unsigned number) {
  return json_sprintf("Reply number %u", number);
}
