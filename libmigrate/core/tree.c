/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An ordered set of items that the caller owns.
 *
 * A treap: ordered from left to right by the caller's comparison, and from top to bottom by random weights, so that
 * its depth is logarithmic whatever the order of insertion. Each node counts its subtree, which gives its rank on the
 * way up. The random sequence is fixed: same calls, same tree. */
#include "libmigrate/core/tree.h"

#include <stddef.h>

static unsigned count_of(const MigTreeNode *node) {
  return node ? node->count : 0;
}

static void recount(MigTreeNode *node) {
  node->count = 1 + count_of(node->left) + count_of(node->right);
}

/* Never 0, which marks a node that is in no tree. */
static uint32_t next_weight(MigTree *tree) {
  tree->random ^= tree->random << 13;
  tree->random ^= tree->random >> 17;
  tree->random ^= tree->random << 5;
  return tree->random;
}

void mig_tree_init(MigTree *tree, MigTreeCompare compare) {
  *tree = (MigTree){.compare = compare, .random = 0x9e3779b9};
}

static void put_in_place_of(MigTree *tree, const MigTreeNode *old, MigTreeNode *parent, MigTreeNode *node) {
  if (!parent)
    tree->root = node;
  else if (parent->left == old)
    parent->left = node;
  else
    parent->right = node;
  if (node)
    node->parent = parent;
}

/* Lifts a node above its parent. */
static void rotate_up(MigTree *tree, MigTreeNode *node) {
  MigTreeNode *parent = node->parent;
  MigTreeNode *moved;

  put_in_place_of(tree, parent, parent->parent, node);
  if (parent->left == node) {
    moved = node->right;
    parent->left = moved;
    node->right = parent;
  } else {
    moved = node->left;
    parent->right = moved;
    node->left = parent;
  }
  if (moved)
    moved->parent = parent;
  parent->parent = node;
  recount(parent);
  recount(node);
}

void mig_tree_insert(MigTree *tree, MigTreeNode *node) {
  MigTreeNode *parent = NULL;
  bool left = false;

  for (MigTreeNode *at = tree->root; at; at = left ? at->left : at->right) {
    parent = at;
    at->count++;
    left = tree->compare(node, at) < 0;
  }
  *node = (MigTreeNode){.parent = parent, .weight = next_weight(tree), .count = 1};
  if (!parent)
    tree->root = node;
  else if (left)
    parent->left = node;
  else
    parent->right = node;
  while (node->parent && node->parent->weight < node->weight)
    rotate_up(tree, node);
}

void mig_tree_remove(MigTree *tree, MigTreeNode *node) {
  while (node->left && node->right)
    rotate_up(tree, node->left->weight > node->right->weight ? node->left : node->right);
  for (MigTreeNode *at = node->parent; at; at = at->parent)
    at->count--;
  put_in_place_of(tree, node, node->parent, node->left ? node->left : node->right);
  *node = (MigTreeNode){0};
}

MigTreeNode *mig_tree_first(const MigTree *tree) {
  MigTreeNode *node = tree->root;

  while (node && node->left)
    node = node->left;
  return node;
}

MigTreeNode *mig_tree_next(const MigTreeNode *node) {
  MigTreeNode *at;

  if (node->right) {
    for (at = node->right; at->left; at = at->left)
      ;
    return at;
  }
  while (node->parent && node->parent->right == node)
    node = node->parent;
  return node->parent;
}

unsigned mig_tree_rank(const MigTreeNode *node) {
  unsigned rank = count_of(node->left);

  for (; node->parent; node = node->parent)
    if (node->parent->right == node)
      rank += 1 + count_of(node->parent->left);
  return rank;
}
