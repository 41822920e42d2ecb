"""The evaluation of papers/001 (COND), section V, from runs of our own: parts are measured and stored, a page is made of them."""
