/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An ordered set of things that the caller owns: a balanced tree of nodes inside them, which knows the rank of each. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Part of the thing that is in the set. All zero: in none. */
typedef struct MigTreeNode {
  struct MigTreeNode *parent, *left, *right;
  uint32_t weight; /* of the heap that keeps the tree balanced; 0: in no tree */
  uint32_t count;  /* of the nodes in the subtree */
} MigTreeNode;

/* Below 0: a comes first. Never 0 for two different nodes, and the same as long as they are in the set. */
typedef int (*MigTreeCompare)(const MigTreeNode *a, const MigTreeNode *b);

typedef struct MigTree {
  MigTreeNode *root;
  MigTreeCompare compare;
  uint32_t random; /* where the weights come from */
} MigTree;

void mig_tree_init(MigTree *tree, MigTreeCompare compare);

/* Both O(log n) on average. The node must not be, or must be, in the tree. */
void mig_tree_insert(MigTree *tree, MigTreeNode *node);
void mig_tree_remove(MigTree *tree, MigTreeNode *node);

static inline bool mig_tree_holds(const MigTreeNode *node) {
  return node->weight != 0;
}

static inline unsigned mig_tree_count(const MigTree *tree) {
  return tree->root ? tree->root->count : 0;
}

/* NULL: it is empty. */
MigTreeNode *mig_tree_first(const MigTree *tree);

/* The one after this, or NULL. */
MigTreeNode *mig_tree_next(const MigTreeNode *node);

/* How many come before it. O(log n). */
unsigned mig_tree_rank(const MigTreeNode *node);
