"""How should devices be cut for a demand of MIG profiles? Layouts, exact where it can be; moves nothing."""
