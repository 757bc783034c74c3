/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Conditions on domains: what they mean, how they are written, which one is meant when several hold. */
#include "libmigrate/core/match.h"

#include "tests/unit/core/rows.h"

static const struct Glob {
  const char *name;
  const char *pattern, *text;
  bool expected;
} globs[] = {
    {"the same", "web3", "web3", true},
    {"another", "web3", "web4", false},
    {"a longer one", "web", "web3", false},
    {"a shorter one", "web3", "web", false},
    {"other capitals", "Web3", "web3", false},
    {"nothing fits nothing", "", "", true},
    {"nothing fits no text", "", "a", false},
    {"any text at the end", "web*", "web-production-3", true},
    {"no text at the end", "web*", "web", true},
    {"any text at the beginning", "*-db", "orders-db", true},
    {"any text in the middle", "web-*-3", "web-a-b-3", true},
    {"the middle must come back to its end", "web-*-3", "web-3-4", false},
    {"several stars", "*a*b*", "xxaxxbxx", true},
    {"several stars, in order", "*a*b*", "xxbxxaxx", false},
    {"stars beside each other", "a**b", "axb", true},
    {"one character", "web?", "web3", true},
    {"one character is not none", "web?", "web", false},
    {"one character of several bytes", "gr\xc3\xbc?e",
     "gr\xc3\xbc\xc3\x9f"
     "e",
     true},
    {"a star alone", "*", "anything", true},
    {"what would take for ever by trying all", "*a*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
     false},
};

static void glob(void **state) {
  const struct Glob *row = *state;

  assert_int_equal(mig_glob(row->pattern, row->text), row->expected);
}

#define NOVA  "{http://openstack.org/xmlns/libvirt/nova/1.1}"
#define QUERY "{http://x/?a=b}"

static const MigMatchEntry metadata[] = {
    {NOVA "instance", ""},
    {NOVA "instance/flavor@name", "m1.large"},
    {NOVA "instance/owner/project", "shop"},
    {NOVA "instance/port", "one"},
    {NOVA "instance/port", "two"},
    {QUERY "tier", "gold"},
};

static const MigMatchFacts web3 = {
    .name = "web3",
    .title = "Shop front",
    .memory_bytes = UINT64_C(64) << 30,
    .metadata = metadata,
    .n_metadata = LENGTH(metadata),
};

static const struct Condition {
  const char *name;
  const char *text;
  bool expected;
} conditions[] = {
    {"by name", "name=web3", true},
    {"by the beginning of the name", "name=web*", true},
    {"by another name", "name=db*", false},
    {"by title", "title=Shop *", true},
    {"by another title", "title=Shop", false},
    {"memory of at least what it has", "memory>=64G", true},
    {"memory of at least more", "memory>=65G", false},
    {"memory of more than it has", "memory>64GiB", false},
    {"memory of at most what it has", "memory<=65536M", true},
    {"memory of less than it has", "memory<64G", false},
    {"memory of less than more, with spaces", "memory< 1 T", true},
    {"memory in bytes", "memory>=68719476736", true},
    {"an element that is there", "metadata=" NOVA "instance", true},
    {"an element that is not", "metadata=" NOVA "volume", false},
    {"an element of another namespace", "metadata={urn:x}instance", false},
    {"an attribute", "metadata=" NOVA "instance/flavor@name=m1.*", true},
    {"an attribute of another value", "metadata=" NOVA "instance/flavor@name=m2.*", false},
    {"a child's text", "metadata=" NOVA "instance/owner/project=shop", true},
    {"the second of two", "metadata=" NOVA "instance/port=two", true},
    {"none of two", "metadata=" NOVA "instance/port=three", false},
    {"a namespace with an equals sign", "metadata=" QUERY "tier=gold", true},
    {"half a path is none", "metadata=" NOVA "instance/owner", false},
};

static void condition(void **state) {
  const struct Condition *row = *state;
  char message[300] = "";
  MigMatch match;

  if (!mig_match_parse(row->text, &match, message, sizeof message))
    fail_msg("%s", message);
  assert_int_equal(mig_match_holds(&match, &web3), row->expected);
  /* Of a domain of which nothing is known, little holds. */
  if (mig_match_holds(&match, &(MigMatchFacts){0}))
    assert_int_equal(match.kind, MIG_MATCH_MEMORY);
}

static const struct Bad {
  const char *name;
  const char *text;
} bads[] = {
    {"nothing", ""},
    {"a name alone", "web3"},
    {"no pattern for the name", "name="},
    {"no pattern for the title", "title="},
    {"a key that is none", "uuid=4"},
    {"memory without a comparison", "memory=64G"},
    {"memory without a size", "memory>="},
    {"a size without a number", "memory>=G"},
    {"a size with a unit that is none", "memory>=64X"},
    {"a size with a fraction", "memory>=1.5G"},
    {"a size beyond 64 bits", "memory>=99999999999999999999"},
    {"a size beyond 64 bits by its unit", "memory>=99999999999T"},
    {"metadata without a path", "metadata="},
    {"metadata with a pattern alone", "metadata==x"},
    {"a namespace that does not end", "metadata={urn:x=gold"},
    {"a namespace alone", "metadata={urn:x}"},
    {"a path without an end", "metadata={urn:x}a/"},
    {"an attribute without a name", "metadata={urn:x}a@=1"},
};

static void bad(void **state) {
  const struct Bad *row = *state;
  char message[300] = "";
  MigMatch match = {.kind = MIG_MATCH_COUNT};

  assert_false(mig_match_parse(row->text, &match, message, sizeof message));
  assert_non_null(strstr(message, "memory>=SIZE"));
  assert_int_equal(match.kind, MIG_MATCH_COUNT);
}

static const struct Rank {
  const char *name;
  const char *more[3], *less[3];
} ranks[] = {
    {"something before nothing", {"memory>=1"}, {NULL}},
    {"two conditions before one", {"name=web*", "memory>=1"}, {"title=exactly"}},
    {"an exact one before a pattern", {"title=exactly"}, {"title=exact*"}},
    {"a domain's own name before any number of others", {"name=web3"}, {"title=x", "memory>=1", "name=web*"}},
    {"of two with the name, that with more", {"name=web3", "memory>=1"}, {"name=web3"}},
};

static unsigned rank_of(const char *const *texts) {
  MigMatch matches[3];
  char message[300];
  size_t n = 0;

  for (; n < LENGTH(matches) && texts[n]; n++)
    assert_true(mig_match_parse(texts[n], &matches[n], message, sizeof message));
  return mig_match_rank(matches, n);
}

static void rank(void **state) {
  const struct Rank *row = *state;

  assert_true(rank_of(row->more) > rank_of(row->less));
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD_ROWS(&tests, glob, globs);
  TESTS_ADD_ROWS(&tests, condition, conditions);
  TESTS_ADD_ROWS(&tests, bad, bads);
  TESTS_ADD_ROWS(&tests, rank, ranks);
  return tests_run(&tests, "match");
}
