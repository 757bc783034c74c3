/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An ordered set of items that the caller owns: a balanced tree of nodes embedded in them, which knows each one's
 * rank. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Embedded in the item. All zero: in no tree. */
typedef struct MigTreeNode {
  struct MigTreeNode *parent, *left, *right;
  uint32_t weight; /* of the heap that keeps the tree balanced; 0: in no tree */
  uint32_t count;  /* of the nodes in the subtree */
} MigTreeNode;

/* Below 0: a comes first. Never 0 for two different nodes, and constant while they are in the tree. */
typedef int (*MigTreeCompare)(const MigTreeNode *a, const MigTreeNode *b);

typedef struct MigTree {
  MigTreeNode *root;
  MigTreeCompare compare;
  uint32_t random; /* generator of the weights */
} MigTree;

void mig_tree_init(MigTree *tree, MigTreeCompare compare);

/* Both are O(log n) on average. The node to insert must be in no tree; the node to remove must be in this one. */
void mig_tree_insert(MigTree *tree, MigTreeNode *node);
void mig_tree_remove(MigTree *tree, MigTreeNode *node);

static inline bool mig_tree_holds(const MigTreeNode *node) {
  return node->weight != 0;
}

static inline unsigned mig_tree_count(const MigTree *tree) {
  return tree->root ? tree->root->count : 0;
}

/* NULL if the tree is empty. */
MigTreeNode *mig_tree_first(const MigTree *tree);

/* The next node, or NULL. */
MigTreeNode *mig_tree_next(const MigTreeNode *node);

/* How many nodes come before it. O(log n). */
unsigned mig_tree_rank(const MigTreeNode *node);
