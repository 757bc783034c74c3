/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The ordered set: what goes in comes out in order, whatever the order of arrival, and knows its rank. */
#include "libmigrate/core/tree.h"

#include "tests/unit/core/rows.h"

#define NUMBERS 2000

typedef struct Number {
  MigTreeNode node; /* the first member */
  unsigned value;
} Number;

static int compare(const MigTreeNode *a, const MigTreeNode *b) {
  unsigned x = ((const Number *)a)->value, y = ((const Number *)b)->value;

  return x < y ? -1 : x > y;
}

static unsigned depth_of(const MigTreeNode *node) {
  unsigned left, right;

  if (!node)
    return 0;
  left = depth_of(node->left);
  right = depth_of(node->right);
  return 1 + (left > right ? left : right);
}

/* Walks all of it: in order, ranks and parents right, not much deeper than it must be. */
static void assert_whole(const MigTree *tree, unsigned count) {
  const MigTreeNode *before = NULL;
  unsigned seen = 0;

  assert_int_equal(mig_tree_count(tree), count);
  for (MigTreeNode *node = mig_tree_first(tree); node; node = mig_tree_next(node)) {
    assert_true(mig_tree_holds(node));
    assert_int_equal(mig_tree_rank(node), seen);
    assert_true(!before || compare(before, node) < 0);
    assert_true(!node->left || (node->left->parent == node && node->left->weight <= node->weight));
    assert_true(!node->right || (node->right->parent == node && node->right->weight <= node->weight));
    before = node;
    seen++;
  }
  assert_int_equal(seen, count);
  assert_true(depth_of(tree->root) <= 50);
}

static const struct Order {
  const char *name;
  unsigned step; /* the i-th to come is i × step modulo NUMBERS: a permutation if step has no common factor */
} orders[] = {
    {"in order", 1},
    {"backwards", NUMBERS - 1},
    {"scattered", 1237},
    {"in long jumps", 999},
};

static void arrivals_in_any_order(void **state) {
  const struct Order *row = *state;
  static Number numbers[NUMBERS];
  MigTree tree;

  mig_tree_init(&tree, compare);
  assert_null(mig_tree_first(&tree));
  for (unsigned i = 0; i < NUMBERS; i++) {
    numbers[i] = (Number){.value = (unsigned)((uint64_t)i * row->step % NUMBERS)};
    mig_tree_insert(&tree, &numbers[i].node);
  }
  assert_whole(&tree, NUMBERS);
  for (unsigned i = 0; i < NUMBERS; i++)
    assert_int_equal(mig_tree_rank(&numbers[i].node), numbers[i].value);

  /* Every other one leaves, then the rest, from the front. */
  for (unsigned i = 0; i < NUMBERS; i += 2) {
    mig_tree_remove(&tree, &numbers[i].node);
    assert_false(mig_tree_holds(&numbers[i].node));
  }
  assert_whole(&tree, NUMBERS / 2);
  for (unsigned left = NUMBERS / 2; left > 0; left--) {
    assert_int_equal(mig_tree_count(&tree), left);
    mig_tree_remove(&tree, mig_tree_first(&tree));
  }
  assert_null(mig_tree_first(&tree));
  assert_int_equal(mig_tree_count(&tree), 0);
}

static void who_left_may_come_again(void **state) {
  Number one = {.value = 1}, two = {.value = 2};
  MigTree tree;

  mig_tree_init(&tree, compare);
  mig_tree_insert(&tree, &one.node);
  mig_tree_insert(&tree, &two.node);
  mig_tree_remove(&tree, &one.node);
  assert_whole(&tree, 1);
  one.value = 3;
  mig_tree_insert(&tree, &one.node);
  assert_whole(&tree, 2);
  assert_ptr_equal(mig_tree_first(&tree), &two.node);
  assert_int_equal(mig_tree_rank(&one.node), 1);
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD_ROWS(&tests, arrivals_in_any_order, orders);
  tests_add(&tests, "who left may come again", who_left_may_come_again, NULL);
  return tests_run(&tests, "tree");
}
